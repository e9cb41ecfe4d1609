/** Chunks of any size in, frames of one size out. */
import { assert } from "../util/assert.ts";

export class Framer {
  readonly frameSamples: number;
  #frame: Float32Array<ArrayBuffer>;
  #filled = 0;

  constructor(frameSamples: number) {
    assert(
      Number.isInteger(frameSamples) && frameSamples > 0,
      `a frame must be a positive number of samples, got ${frameSamples}`,
    );
    this.frameSamples = frameSamples;
    this.#frame = new Float32Array(frameSamples);
  }
  /** Samples held back for the next frame. */
  get pendingSamples(): number {
    return this.#filled;
  }
  /** The frames that `pcm` completes, each the caller's own. */
  push(pcm: Float32Array): Float32Array<ArrayBuffer>[] {
    const frames: Float32Array<ArrayBuffer>[] = [];
    let taken = 0;
    while (taken < pcm.length) {
      const part = pcm.subarray(taken, taken + this.frameSamples - this.#filled);
      this.#frame.set(part, this.#filled);
      this.#filled += part.length;
      taken += part.length;
      if (this.#filled < this.frameSamples) break;
      frames.push(this.#frame);
      this.#frame = new Float32Array(this.frameSamples);
      this.#filled = 0;
    }
    return frames;
  }
  /** The held samples as a last frame, with silence behind them. Null if none are held. */
  flush(): Float32Array<ArrayBuffer> | null {
    if (this.#filled === 0) return null;
    const frame = this.#frame;
    this.#frame = new Float32Array(this.frameSamples);
    this.#filled = 0;
    return frame;
  }
  /** Drops the held samples. */
  clear(): void {
    this.#frame.fill(0);
    this.#filled = 0;
  }
}
