/** The checkpoint's tokenizer, as the timeline uses it: prompts in, what the channels say out. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { CheckpointError } from "../../errors.ts";
import { Detokenizer } from "../../text/detokenizer.ts";
import type { VoiceChatConfig } from "./config.ts";

export class VoiceChatTokenizer {
  readonly #config: VoiceChatConfig;
  readonly #tokenizer: Tokenizer;
  /** Ids that say nothing. */
  readonly #silent: ReadonlySet<number>;

  private constructor(config: VoiceChatConfig, tokenizer: Tokenizer) {
    this.#config = config;
    this.#tokenizer = tokenizer;
    const { padTokenId, silenceTokenId, bosTokenId, eosTokenId } = config;
    this.#silent = new Set([padTokenId, silenceTokenId, bosTokenId, eosTokenId]);
  }

  /** Reads `directory`/tokenizer.json. @throws {CheckpointError} when it is missing or not a tokenizer. */
  static load(directory: string, config: VoiceChatConfig): VoiceChatTokenizer {
    const path = join(directory, "tokenizer.json");
    if (!existsSync(path)) throw new CheckpointError("checkpoint_unreadable", `${path}: missing`);
    try {
      const settings = { clean_up_tokenization_spaces: false };
      return new VoiceChatTokenizer(config, new Tokenizer(JSON.parse(readFileSync(path, "utf8")), settings));
    } catch (cause) {
      throw new CheckpointError("checkpoint_corrupt", `${path}: not a tokenizer`, { cause });
    }
  }

  /** The id of every token, added ones too. */
  get vocabulary(): ReadonlyMap<string, number> {
    return this.#tokenizer.get_vocab(true);
  }

  /** The ids of a system prompt, BOS and EOS around them; none for a blank one. */
  promptIds(prompt: string): number[] {
    if (prompt.trim() === "") return [];
    const { ids } = this.#tokenizer.encode(prompt, { add_special_tokens: false });
    return [this.#config.bosTokenId, ...ids, this.#config.eosTokenId];
  }

  /** Whether a token of a channel is part of its text. */
  speaks(id: number): boolean {
    return !this.#silent.has(id);
  }

  /** One channel's text as it grows; give it the tokens that speak. */
  detokenizer(): Detokenizer {
    return new Detokenizer(this.#tokenizer);
  }

  /** What the tokens of a channel say together. */
  text(ids: readonly number[]): string {
    const spoken = ids.filter((id) => this.speaks(id));
    if (spoken.length === 0) return "";
    return this.#tokenizer.decode(spoken, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  }
}
