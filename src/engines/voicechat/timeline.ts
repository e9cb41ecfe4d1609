/**
 * One conversation's timeline: at every position the language model hears one audio embedding and writes one token on each
 * channel, and the voice speaks one frame. The offline run and the live stream both advance it frame by frame.
 * docs/voicechat-model.md, section 1.
 */
import { RandomGenerator } from "../../util/rng.ts";
import type { VoiceChatConfig } from "./config.ts";
import type { LanguageModel, LanguageState } from "./language.ts";
import type { Speech, SpeechState } from "./speech.ts";

/** What a timeline runs on. Shared by all sessions. */
export interface TimelineNetworks {
  readonly config: VoiceChatConfig;
  readonly language: LanguageModel;
  readonly speech: Speech;
}

export interface TimelineFrame {
  readonly textId: number;
  readonly functionId: number;
  /** i32 [Q], as the voice drew them; null at the very first position, where it does not speak yet. */
  readonly codes: Int32Array | null;
  /** What the two parts took. */
  readonly languageMs: number;
  readonly speechMs: number;
}

export interface TimelineOptions {
  /** Tokens of the system prompt with BOS and EOS; empty for none. */
  readonly promptIds: readonly number[];
  readonly seed: number;
  readonly signal?: AbortSignal | undefined;
  /** False computes the language model over the whole history at every position: for diagnosis. Default true. */
  readonly useLanguageCache?: boolean;
  /** Called after each position of the prompt. */
  readonly onPromptPosition?: ((done: number) => void) | undefined;
}

export class Timeline {
  readonly #networks: TimelineNetworks;
  #language: LanguageState;
  /** Everything that the language model heard, where it hears it anew at every position. */
  readonly #history: Float32Array[] | null;
  readonly #speech: SpeechState;
  #position = 0;
  #textId: number;
  #functionId: number;

  private constructor(networks: TimelineNetworks, seed: number, useLanguageCache: boolean) {
    const { config, language, speech } = networks;
    this.#networks = networks;
    this.#language = language.initialState();
    this.#history = useLanguageCache ? null : [];
    this.#speech = speech.initialState(new RandomGenerator(seed));
    this.#textId = config.padTokenId;
    this.#functionId = config.padTokenId;
  }

  /** Takes in the system prompt: its positions go by in silence, and the next one hears the first frame. */
  static async begin(networks: TimelineNetworks, options: TimelineOptions): Promise<Timeline> {
    options.signal?.throwIfAborted();
    const timeline = new Timeline(networks, options.seed, options.useLanguageCache ?? true);
    for (const [index, id] of options.promptIds.entries()) {
      options.signal?.throwIfAborted();
      await timeline.#advance(networks.language.embed(id), "prompt");
      options.onPromptPosition?.(index + 1);
    }
    return timeline;
  }

  /**
   * One frame of 80 ms: the projected audio embedding [D]. Calls must not overlap.
   * @throws {EngineError} when a network fails; the timeline cannot go on after that.
   */
  async step(audio: Float32Array): Promise<TimelineFrame> {
    return this.#advance(audio, "frame");
  }

  async #advance(audio: Float32Array, kind: "prompt" | "frame"): Promise<TimelineFrame> {
    const { config, language, speech } = this.#networks;
    const startMs = performance.now();
    const hidden = await this.#hear(this.#fused(audio));
    const silent = { text: config.padTokenId, function: config.padTokenId };
    const tokens = kind === "prompt" ? silent : await language.tokens(hidden);
    this.#textId = tokens.text;
    this.#functionId = tokens.function;
    const heardMs = performance.now();
    const codes = this.#position === 0 ? null : await speech.step(this.#speech, tokens.text);
    this.#position += 1;
    return {
      textId: tokens.text,
      functionId: tokens.function,
      codes,
      languageMs: heardMs - startMs,
      speechMs: performance.now() - heardMs,
    };
  }

  async #hear(fused: Float32Array): Promise<Float32Array> {
    const { language } = this.#networks;
    if (this.#history === null) return language.step(this.#language, fused);
    this.#language = language.initialState();
    for (const past of this.#history) await language.step(this.#language, past);
    this.#history.push(fused);
    return language.step(this.#language, fused);
  }

  /** What was said last on both channels, and what is heard now. */
  #fused(audio: Float32Array): Float32Array {
    const { config, language } = this.#networks;
    const text = language.embed(this.#textId);
    const called = language.embed(this.#functionId);
    const weight = config.functionChannelWeight;
    return audio.map((heard, index) => Math.fround(text[index]! + heard) + Math.fround(weight * called[index]!));
  }
}
