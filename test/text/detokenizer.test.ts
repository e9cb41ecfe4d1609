import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Detokenizer } from "../../src/text/detokenizer.ts";

const read = (path: string): unknown =>
  JSON.parse(readFileSync(new URL(`../fixtures/${path}`, import.meta.url), "utf8"));

const checkpoint = "voicechat/tiny-f32/checkpoint";
const byteLevel = new Tokenizer(
  read(`${checkpoint}/tokenizer.json`) as object,
  read(`${checkpoint}/tokenizer_config.json`) as object,
);

/** As Llama's: words begin with U+2581, bytes without a token of their own are written <0x..>. */
const vocabulary = ["<unk>", "<s>", "</s>", "\u2581the", "\u2581", "cat", "\u2581a", "s", "'s", ".", "é", "\u2581東"];
for (let byte = 0; byte < 256; byte++) vocabulary.push(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const metaspace = new Tokenizer(
  {
    added_tokens: ["<unk>", "<s>", "</s>"].map((content, id) => ({ id, content, special: true, normalized: false })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "\u2581" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
      ],
    },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges: [],
      unk_token: "<unk>",
      byte_fallback: true,
    },
  },
  {},
);

const decode = (tokenizer: Tokenizer, ids: number[]): string => {
  const known = ids.filter((id) => tokenizer.id_to_token(id) !== undefined);
  return known.length === 0 ? "" : tokenizer.decode(known, { clean_up_tokenization_spaces: false });
};

describe("Detokenizer", () => {
  it("gives after each token what the reference's decoder makes of the whole list", () => {
    const cases = read("text/decoded.json") as { ids: number[]; texts: string[] }[];
    for (const { ids, texts } of cases) {
      const detokenizer = new Detokenizer(byteLevel);
      expect(ids.map((id) => detokenizer.push(id).text)).toEqual(texts);
    }
  });

  it.each(["assistant_text_delta", "function_delta"])(
    "gives the deltas of the reference's streaming run: %s",
    (kind) => {
      const run = read("voicechat/tiny-f32/reference/stream.json") as {
        events: { kind: string; token_id: number; delta: string; text: string }[];
      };
      const events = run.events.filter((event) => event.kind === kind);
      const detokenizer = new Detokenizer(byteLevel);
      expect(events.length).toBeGreaterThan(5);
      for (const { token_id, delta, text } of events) expect(detokenizer.push(token_id)).toEqual({ delta, text });
    },
  );

  it.each([
    ["byte-level", byteLevel, 329],
    ["metaspace with byte fallback", metaspace, vocabulary.length],
  ] as const)("equals decoding the whole list at each step: %s", (_, tokenizer, size) => {
    const words = fc
      .constantFrom("héllo", " wörld", "😀", "👩‍👧", " 東京", "the", ".", " ok", "ﬀ")
      .map((word) =>
        tokenizer === byteLevel ? tokenizer.encode(word).ids : [...Buffer.from(word)].map((b) => 12 + b),
      );
    const id = fc.integer({ min: 0, max: size + 2 }).map((value) => [value]);
    fc.assert(
      fc.property(fc.array(fc.oneof(words, id), { maxLength: 20 }), (parts) => {
        const ids = parts.flat();
        const detokenizer = new Detokenizer(tokenizer);
        let previous = "";
        for (const [i, token] of ids.entries()) {
          const { delta, text } = detokenizer.push(token);
          expect(text).toBe(decode(tokenizer, ids.slice(0, i + 1)));
          expect(delta).toBe(text.startsWith(previous) ? text.slice(previous.length) : decode(tokenizer, [token]));
          expect(text.startsWith(detokenizer.settledText)).toBe(true);
          previous = text;
        }
      }),
      { seed: 14, numRuns: 300 },
    );
  });

  it("holds an incomplete character back from the settled text", () => {
    const detokenizer = new Detokenizer(byteLevel);
    const settled = byteLevel.encode("a😀b").ids.map((id: number) => {
      detokenizer.push(id);
      return detokenizer.settledText;
    });
    expect(settled).toEqual(["a", "a", "a", "a", "a😀", "a😀b"]);
    expect(detokenizer.text).toBe("a😀b");
  });

  it("says nothing for ids that are no tokens", () => {
    const detokenizer = new Detokenizer(byteLevel);
    expect(detokenizer.push(99999)).toEqual({ delta: "", text: "" });
    expect(new Detokenizer(metaspace).push(-1)).toEqual({ delta: "", text: "" });
  });

  it("does not decode more of a long text than of a short one", () => {
    const decoded = vi.spyOn(metaspace, "decode");
    const detokenizer = new Detokenizer(metaspace);
    for (let i = 0; i < 3000; i++) detokenizer.push(3 + (i % vocabulary.length));
    const longest = Math.max(...decoded.mock.calls.map(([ids]: [number[]]) => ids.length));
    decoded.mockRestore();
    expect(detokenizer.text.length).toBeGreaterThan(3000);
    expect(longest).toBeLessThanOrEqual(32);
  });
});
