/**
 * One segment of speech on its way to text. While it grows, it is transcribed again and again at a bounded pace (one call
 * at a time, the newest audio), and words that two hypotheses agree on go out. At a pause the final transcript is begun
 * in advance, and thrown away if speech resumes. Long speech is cut at its pauses, so audio and work stay bounded.
 */
import { EngineError } from "../../../errors.ts";
import { samplesToMs } from "../../../util/clock.ts";
import { Agreement } from "./agreement.ts";
import { believable } from "./gates.ts";
import { Piece } from "./piece.ts";
import { STT_HZ, type Stt, type SttOptions } from "./stt.ts";

export interface Transcript {
  readonly text: string;
  readonly audioSeconds: number;
}

export interface SegmentTranscriberOptions extends SttOptions {
  readonly stt: Stt;
  /** Called with words to append. Null where nobody listens. */
  readonly onDelta: ((delta: string) => void) | null;
  /** Called at a pause with what the whole segment says so far. */
  readonly onGuess?: ((text: string) => void) | undefined;
  /** Whether words are wanted before the end. */
  readonly partials: boolean;
}

/** New audio that makes another partial transcript worth its work. */
const PARTIAL_EVERY_SAMPLES = STT_HZ * 0.4;
/** Less voice than this is a click or a breath, and is never transcribed. */
const VOICED_MIN_MS = 90;

export class SegmentTranscriber {
  readonly #options: SegmentTranscriberOptions;
  readonly #abort = new AbortController();
  /** Finished pieces, in order; each settles to its text. */
  #done: Promise<string>[] = [];
  #doneText: string[] = [];
  #piece: Piece;
  #agreement = new Agreement();
  #samples = 0;
  #partialRunning = false;
  #partialAtSamples = 0;
  /** The final transcript of the current piece, begun at a pause. */
  #guess: { readonly text: Promise<string>; readonly abort: AbortController } | null = null;
  #finished: Promise<Transcript> | null = null;
  readonly #pending = new Set<Promise<string>>();

  constructor(options: SegmentTranscriberOptions) {
    this.#options = options;
    this.#piece = new Piece(options.stt.segmentSecondsMax * STT_HZ);
  }
  /** Pieces that wait for their text, the current one not counted: who pushes heeds it. */
  get pendingPieces(): number {
    return this.#pending.size;
  }
  /** Settles when a pending piece has its text. */
  async progress(): Promise<void> {
    await Promise.race([...this.#pending].map((text) => text.catch(() => "")));
  }
  push(pcm: Float32Array, voiced: boolean): void {
    if (this.#finished !== null || this.#abort.signal.aborted) return;
    this.#samples += pcm.length;
    for (const full of this.#piece.push(pcm, voiced)) this.#close(full);
    this.#partial();
  }
  /** Speech has paused: begins the final transcript. */
  pause(): void {
    if (this.#finished !== null || this.#guess !== null) return;
    const abort = new AbortController();
    const text = this.#final(this.#piece, AbortSignal.any([abort.signal, this.#abort.signal]));
    this.#guess = { text, abort };
    Promise.all([...this.#done, text]).then(
      (texts) => {
        if (!abort.signal.aborted && !this.#abort.signal.aborted) this.#options.onGuess?.(joined(texts));
      },
      () => {},
    );
  }
  /** Speech goes on: what was begun is of no use. */
  resume(): void {
    this.#guess?.abort.abort();
    this.#guess = null;
  }
  /** The whole segment's text. Idempotent. @throws {EngineError | UpstreamError} */
  finish(): Promise<Transcript> {
    this.#finished ??= this.#finish();
    return this.#finished;
  }
  /** Drops all work. Idempotent, and without effect after the end. */
  cancel(): void {
    this.#abort.abort(new EngineError("stt", "The segment was dropped."));
  }

  async #finish(): Promise<Transcript> {
    const last = this.#guess?.text ?? this.#final(this.#piece, this.#abort.signal);
    const texts = await Promise.all([...this.#done, last]);
    const text = joined(texts);
    if (this.#options.onDelta !== null && !this.#abort.signal.aborted) {
      const delta = this.#agreement.finish(text);
      if (delta !== "") this.#options.onDelta(delta);
    }
    return { text, audioSeconds: this.#samples / STT_HZ };
  }
  #close(piece: Piece): void {
    this.resume();
    const index = this.#done.length;
    const text = this.#final(piece, this.#abort.signal).finally(() => this.#pending.delete(text));
    text.then(
      (done) => {
        this.#doneText[index] = done;
      },
      () => {},
    );
    this.#pending.add(text);
    this.#done.push(text);
    this.#partialAtSamples = 0;
  }
  async #final(piece: Piece, signal: AbortSignal): Promise<string> {
    const { stt, language, prompt } = this.#options;
    const voicedMs = samplesToMs(piece.voicedSamples, STT_HZ);
    if (voicedMs < VOICED_MIN_MS) return "";
    const request = { pcm: piece.pcm(), urgency: "final", language, prompt, signal } as const;
    const text = await stt.transcribe(request).catch((error: unknown) => {
      // The process is back in a moment, and the user's words are still here.
      if (signal.aborted || !(error instanceof EngineError) || error.code !== "worker_died") throw error;
      return stt.transcribe(request);
    });
    return believable(text, request.pcm.length / STT_HZ, voicedMs);
  }
  #partial(): void {
    const { stt, onDelta, partials } = this.#options;
    if (onDelta === null || !partials || !stt.partials || this.#partialRunning || this.#guess !== null) return;
    if (this.#piece.samples - this.#partialAtSamples < PARTIAL_EVERY_SAMPLES) return;
    const voicedMs = samplesToMs(this.#piece.voicedSamples, STT_HZ);
    if (voicedMs < VOICED_MIN_MS) return;
    this.#partialRunning = true;
    this.#partialAtSamples = this.#piece.samples;
    const { language, prompt } = this.#options;
    const pcm = this.#piece.pcm();
    const pieces = this.#done.length;
    stt
      .transcribe({ pcm, urgency: "partial", language, prompt, signal: this.#abort.signal })
      .then(
        (text) => this.#hypothesis(believable(text, pcm.length / STT_HZ, voicedMs), pieces, onDelta),
        () => {},
      )
      .finally(() => {
        this.#partialRunning = false;
      });
  }
  /** A failed or late partial transcript costs nothing: the final one decides. */
  #hypothesis(text: string, pieces: number, onDelta: (delta: string) => void): void {
    if (this.#finished !== null || this.#abort.signal.aborted || pieces !== this.#done.length) return;
    const before = this.#doneText.slice(0, pieces);
    if (before.length < pieces || before.includes(undefined as never)) return;
    const delta = this.#agreement.next(joined([...before, text]));
    if (delta !== "") onDelta(delta);
  }
}

const joined = (texts: readonly string[]): string => texts.filter((text) => text !== "").join(" ");
