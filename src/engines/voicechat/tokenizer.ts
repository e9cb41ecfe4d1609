/** The checkpoint's tokenizer, as the timeline uses it: prompts in, what the channels say out. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { CheckpointError, ClientError } from "../../errors.ts";
import { Detokenizer } from "../../text/detokenizer.ts";
import type { VoiceChatConfig } from "./config.ts";
import { PROMPT_CHARACTERS_MAX, PROMPT_TOKENS_MAX } from "./limits.ts";

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

  /**
   * Reads `directory`/tokenizer.json.
   * @throws {CheckpointError} when it is missing, not a tokenizer, or has tokens that the model has not.
   */
  static load(directory: string, config: VoiceChatConfig): VoiceChatTokenizer {
    const path = join(directory, "tokenizer.json");
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      const what = code === "ENOENT" ? "missing" : `cannot be read (${code})`;
      throw new CheckpointError("checkpoint_unreadable", `${path}: ${what}`, { cause });
    }
    let tokenizer: Tokenizer;
    try {
      tokenizer = new Tokenizer(JSON.parse(text), { clean_up_tokenization_spaces: false });
    } catch (cause) {
      throw new CheckpointError("checkpoint_corrupt", `${path}: not a tokenizer`, { cause });
    }
    const { vocabSize } = config.textConfig;
    for (const [token, id] of tokenizer.get_vocab(true)) {
      if (id < vocabSize) continue;
      throw new CheckpointError(
        "checkpoint_corrupt",
        `${path}: token ${JSON.stringify(token)} has id ${id}; the model of config.json has ${vocabSize} tokens`,
      );
    }
    return new VoiceChatTokenizer(config, tokenizer);
  }

  /** The id of every token, added ones too. */
  get vocabulary(): ReadonlyMap<string, number> {
    return this.#tokenizer.get_vocab(true);
  }

  /**
   * The ids of a system prompt, BOS and EOS around them; none for a blank one.
   * @throws {ClientError} invalid_value for one that is too long.
   */
  promptIds(prompt: string): number[] {
    if (prompt.length > PROMPT_CHARACTERS_MAX) throw tooLong(prompt.length, "characters", PROMPT_CHARACTERS_MAX);
    if (prompt.trim() === "") return [];
    const { ids } = this.#tokenizer.encode(prompt, { add_special_tokens: false });
    if (ids.length > PROMPT_TOKENS_MAX) throw tooLong(ids.length, "tokens", PROMPT_TOKENS_MAX);
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

const tooLong = (count: number, unit: string, most: number): ClientError =>
  new ClientError(
    "invalid_value",
    `the system prompt has ${count} ${unit}; at most ${most} are taken`,
    "system_prompt",
  );
