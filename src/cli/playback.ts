/** Plays an answer in real time, so that it can be stopped at once and what was heard is known. */
import type { Clock } from "../util/clock.ts";

export interface PlaybackSink {
  /** Mono f32 at the playback's rate, to be heard right after what came before. */
  write(pcm: Float32Array): void;
}

/** Handed to the sink ahead of time: enough for a busy machine, little to wait for when the user interrupts. */
const LEAD_MS = 160;
const TICK_MS = 20;

export interface Heard {
  readonly itemId: string;
  /** Of the item's audio. */
  readonly ms: number;
}

interface Piece {
  readonly itemId: string;
  readonly pcm: Float32Array;
}

export class Playback {
  readonly #clock: Clock;
  readonly #sink: PlaybackSink;
  readonly #hz: number;
  #queue: Piece[] = [];
  /** Samples of the current item that went to the sink. */
  #written = { itemId: "", samples: 0 };
  /** When the last sample handed to the sink will have been heard. */
  #heardUntilMs = 0;
  #cancelTick: (() => void) | null = null;
  #onIdle: (() => void)[] = [];

  constructor(clock: Clock, sink: PlaybackSink, hz: number) {
    this.#clock = clock;
    this.#sink = sink;
    this.#hz = hz;
  }
  add(itemId: string, pcm: Float32Array): void {
    // Small pieces: an interruption cuts between two of them.
    const step = Math.round((this.#hz * TICK_MS) / 1000);
    for (let at = 0; at < pcm.length; at += step) this.#queue.push({ itemId, pcm: pcm.subarray(at, at + step) });
    if (this.#cancelTick === null) this.#tick();
  }
  /** Drops what is queued. Returns how far the current item was heard; null if nothing was playing. */
  interrupt(): Heard | null {
    const waiting = this.#queue.length > 0;
    this.#queue = [];
    const aheadMs = Math.max(0, this.#heardUntilMs - this.#clock.nowMs());
    if (!waiting && aheadMs === 0) return null;
    const { itemId, samples } = this.#written;
    return { itemId, ms: Math.max(0, Math.floor((samples * 1000) / this.#hz - aheadMs)) };
  }
  /** Resolves when all has been heard. */
  finish(): Promise<void> {
    if (this.#cancelTick === null) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }
  #tick(): void {
    this.#cancelTick = null;
    const nowMs = this.#clock.nowMs();
    this.#heardUntilMs = Math.max(this.#heardUntilMs, nowMs);
    while (this.#queue.length > 0 && this.#heardUntilMs - nowMs < LEAD_MS) this.#write(this.#queue.shift() as Piece);
    if (this.#queue.length === 0 && this.#heardUntilMs <= nowMs) {
      for (const resolve of this.#onIdle.splice(0)) resolve();
      return;
    }
    this.#cancelTick = this.#clock.schedule(TICK_MS, () => this.#tick());
  }
  #write(piece: Piece): void {
    const before = this.#written.itemId === piece.itemId ? this.#written.samples : 0;
    this.#written = { itemId: piece.itemId, samples: before + piece.pcm.length };
    this.#heardUntilMs += (piece.pcm.length * 1000) / this.#hz;
    this.#sink.write(piece.pcm);
  }
}
