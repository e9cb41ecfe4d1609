/**
 * What the user has heard. Audio leaves in order onto one line; its position is known exactly where the server plays
 * (a media track), and estimated where the client does: it plays what it gets at once and in real time.
 */
import type { Clock } from "../util/clock.ts";

/** Where audio waits to be played. */
export interface Line {
  /** Milliseconds that were sent and not played yet. */
  readonly unplayedMs: number;
  /** Tells that `ms` more were sent. */
  sent(ms: number): void;
  /** Drops what was not played. */
  clear(): void;
  /** Audio that was dropped can be sent again later: the server plays, so a pause is possible. */
  readonly canPause: boolean;
}

/** A client that plays at once and in real time, as far as the server can tell. */
export class EstimatedLine implements Line {
  readonly canPause = false;
  readonly #clock: Clock;
  #endMs = 0;
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  get unplayedMs(): number {
    return Math.max(0, this.#endMs - this.#clock.nowMs());
  }
  sent(ms: number): void {
    this.#endMs = Math.max(this.#endMs, this.#clock.nowMs()) + ms;
  }
  clear(): void {
    this.#endMs = this.#clock.nowMs();
  }
}

export interface SpeechChunk {
  readonly responseId: string;
  readonly itemId: string;
  readonly pcm: Float32Array;
  readonly hz: number;
}

interface Stretch {
  readonly chunk: SpeechChunk;
  /** On the line's own time, which counts audio only. */
  readonly startMs: number;
  readonly endMs: number;
}

/** An item of which a part was sent and never heard. */
export interface Cut {
  readonly responseId: string;
  readonly itemId: string;
  readonly heardMs: number;
}

export interface PlaybackOptions {
  readonly line: Line;
  readonly clock: Clock;
  /** Puts a chunk on the line. */
  readonly send: (chunk: SpeechChunk) => void;
  readonly onAudible: (responseId: string) => void;
  /** All that was sent has been played. */
  readonly onSilent: (responseId: string) => void;
}

export class Playback {
  readonly #options: PlaybackOptions;
  #waiting: Stretch[] = [];
  /** Non-null while paused: what is to be sent on resuming. */
  #held: SpeechChunk[] | null = null;
  #sentMs = 0;
  readonly #heardMs = new Map<string, number>();
  #audibleId: string | null = null;
  #stopWatching: () => void = () => {};

  constructor(options: PlaybackOptions) {
    this.#options = options;
  }
  /** Something was sent that has not been played to its end, or is held by a pause. */
  get audible(): boolean {
    return this.#audibleId !== null;
  }
  get paused(): boolean {
    return this.#held !== null;
  }
  get canPause(): boolean {
    return this.#options.line.canPause;
  }
  /** Milliseconds that are on their way to the user. */
  get unheardMs(): number {
    return this.#held === null ? this.#options.line.unplayedMs : sum(this.#held.map(chunkMs));
  }
  play(chunk: SpeechChunk): void {
    if (this.#held !== null) {
      this.#held.push(chunk);
      return;
    }
    this.#send(chunk);
  }
  heardMs(itemId: string): number {
    this.#settle();
    return this.#heardMs.get(itemId) ?? 0;
  }
  forget(itemId: string): void {
    this.#heardMs.delete(itemId);
  }
  /** Silences the line and keeps what was not heard, for `resume` or `cut`. */
  pause(): void {
    this.#held = this.#takeUnheard();
  }
  resume(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const chunk of held) this.#send(chunk);
    if (held.length === 0) this.#watch();
  }
  /** Silences the line and forgets what was not heard. Returns the items that lost something, in order. */
  cut(): Cut[] {
    const lost = this.#held ?? this.#takeUnheard();
    this.#held = null;
    this.#stopWatching();
    this.#audibleId = null;
    const items = new Map(lost.map((chunk) => [chunk.itemId, chunk.responseId]));
    return [...items].map(([itemId, responseId]) => ({ itemId, responseId, heardMs: this.#heardMs.get(itemId) ?? 0 }));
  }
  close(): void {
    this.#stopWatching();
  }

  #send(chunk: SpeechChunk): void {
    const ms = chunkMs(chunk);
    if (ms === 0) return;
    const isFirst = this.#audibleId !== chunk.responseId;
    this.#settle();
    this.#waiting.push({ chunk, startMs: this.#sentMs, endMs: this.#sentMs + ms });
    this.#sentMs += ms;
    this.#audibleId = chunk.responseId;
    if (isFirst) this.#options.onAudible(chunk.responseId);
    this.#options.send(chunk);
    this.#options.line.sent(ms);
    if (isFirst) this.#watch();
  }
  /** Moves what has been played from the waiting stretches into the count of what was heard. */
  #settle(): void {
    const playedMs = this.#sentMs - this.#options.line.unplayedMs;
    while (this.#waiting.length > 0) {
      const { chunk, startMs, endMs } = this.#waiting[0] as Stretch;
      const ms = Math.min(endMs, playedMs) - startMs;
      if (ms <= 0) return;
      this.#heardMs.set(chunk.itemId, (this.#heardMs.get(chunk.itemId) ?? 0) + ms);
      this.#waiting.shift();
      if (endMs > playedMs) {
        const rest = chunk.pcm.subarray(Math.round((ms * chunk.hz) / 1000));
        this.#waiting.unshift({ chunk: { ...chunk, pcm: rest }, startMs: playedMs, endMs });
      }
    }
  }
  #takeUnheard(): SpeechChunk[] {
    this.#settle();
    this.#options.line.clear();
    const unheard = this.#waiting.map((stretch) => stretch.chunk);
    this.#waiting = [];
    this.#sentMs = 0;
    return unheard;
  }
  /** Looks again when the line should have run dry. */
  #watch(): void {
    this.#stopWatching();
    const delayMs = Math.max(LOOK_MS_MIN, this.#options.line.unplayedMs);
    this.#stopWatching = this.#options.clock.schedule(delayMs, () => {
      if (this.#held !== null) return;
      this.#settle();
      if (this.#options.line.unplayedMs > 0) return this.#watch();
      const responseId = this.#audibleId;
      this.#audibleId = null;
      if (responseId !== null) this.#options.onSilent(responseId);
    });
  }
}

const LOOK_MS_MIN = 5;

const chunkMs = (chunk: SpeechChunk): number => (chunk.pcm.length * 1000) / chunk.hz;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
