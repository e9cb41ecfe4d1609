/**
 * One answer's voice: streamed text in, clauses with their samples out. One clause is at the voice at a time, so answers
 * take turns clause by clause, and the first clause of each goes first.
 */
import { Chunker, type Clause } from "../../../text/chunker.ts";
import { Queue } from "../../../util/queue.ts";
import type { Tts } from "./tts.ts";

export interface SpeechStreamOptions {
  readonly tts: Tts;
  readonly voice: string | null;
  readonly speed: number;
  readonly signal: AbortSignal;
  /** Called when a clause goes to the voice. */
  readonly onClause?: () => void;
}

export interface Speech {
  /** The text that `pcm` says, as the model wrote it. All but the first chunk of a clause have an empty one. */
  readonly text: string;
  /** Mono f32. Empty only if the text holds nothing to say. */
  readonly pcm: Float32Array;
  readonly hz: number;
}

/** A model's whole answer in clauses is far below this. */
const CLAUSES_MAX = 100_000;
/** Each word before the first sound costs some 20 ms of the model's time and as much of the voice's. */
const FIRST_WORDS_MAX = 8;
/** A local voice keeps the memory that its longest clause took: some 1 MB a character. */
const CLAUSE_CHARS_MAX = 180;

export class SpeechStream {
  readonly #options: SpeechStreamOptions;
  readonly #chunker = new Chunker({ firstWordsMax: FIRST_WORDS_MAX, clauseCharsMax: CLAUSE_CHARS_MAX });
  readonly #clauses = new Queue<Clause>(CLAUSES_MAX);
  readonly #abort = new AbortController();
  readonly #signal: AbortSignal;

  constructor(options: SpeechStreamOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#abort.signal]);
  }
  push(delta: string): void {
    if (this.#clauses.closed) return;
    for (const clause of this.#chunker.push(delta)) this.#clauses.push(clause);
  }
  /** No more text. Idempotent. */
  finish(): void {
    if (this.#clauses.closed) return;
    for (const clause of this.#chunker.finish()) this.#clauses.push(clause);
    this.#clauses.close();
  }
  /** Drops what was not spoken yet. Idempotent. */
  cancel(): void {
    this.#abort.abort(new Error("the speech was cancelled"));
    this.#clauses.clear();
    this.#clauses.close();
  }
  /** @throws {EngineError | UpstreamError} of the voice */
  async *chunks(): AsyncIterable<Speech> {
    const { tts, voice, speed, onClause } = this.#options;
    let text = "";
    let urgency: "first" | "next" = "first";
    for await (const clause of this.#clauses) {
      if (this.#signal.aborted) return;
      text += clause.text;
      // What has no sound, such as an emoji, belongs to the next clause.
      if (clause.spoken === "") continue;
      onClause?.();
      for await (const { pcm, hz } of tts.speak({ text: clause.spoken, voice, speed, urgency, signal: this.#signal })) {
        if (this.#signal.aborted) return;
        yield { text, pcm, hz };
        text = "";
        urgency = "next";
      }
    }
    if (text !== "" && !this.#signal.aborted) yield { text, pcm: new Float32Array(0), hz: tts.hz };
  }
}
