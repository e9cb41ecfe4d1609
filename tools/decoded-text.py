"""Makes test/fixtures/text/decoded.json: lists of token ids, and what tokenizers 0.23.3 decodes after each token.

    pip install tokenizers==0.23.3; python tools/decoded-text.py
"""
import json
import random

from tokenizers import Tokenizer

SENTENCES = [
    "héllo wörld, naïve 😀👍🏽 東京!",
    "Zażółć gęślą jaźń — “ok” 🇫🇷",
    "The time today is five. ¿Qué?",
    "👨‍👩‍👧‍👦 ok \u0000 \n\t x",
    "Ελληνικά и русский",
    "ﬀ ½ ∑",
]
tokenizer = Tokenizer.from_file("test/fixtures/voicechat/tiny-f32/checkpoint/tokenizer.json")
random.seed(3)
lists = [[random.randrange(tokenizer.get_vocab_size() + 5) for _ in range(40)] for _ in range(6)]
lists += [tokenizer.encode(sentence).ids for sentence in SENTENCES]
cases = [
    {"ids": ids, "texts": [tokenizer.decode(ids[: end + 1], skip_special_tokens=False) for end in range(len(ids))]}
    for ids in lists
]
with open("test/fixtures/text/decoded.json", "w") as file:
    json.dump(cases, file)
