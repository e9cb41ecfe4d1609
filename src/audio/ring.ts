/** The last stretch of a stream, addressed by the stream's own sample numbers: sample 0 is the first ever pushed. */
import { assert } from "../util/assert.ts";

export class SampleRing {
  readonly capacitySamples: number;
  readonly #samples: Float32Array;
  #end = 0;
  #start = 0;

  constructor(capacitySamples: number) {
    assert(
      Number.isInteger(capacitySamples) && capacitySamples > 0,
      `a ring must hold a positive number of samples, got ${capacitySamples}`,
    );
    this.capacitySamples = capacitySamples;
    this.#samples = new Float32Array(capacitySamples);
  }
  /** The oldest sample held. */
  get startSample(): number {
    return this.#start;
  }
  /** One past the newest sample: how many were ever pushed. */
  get endSample(): number {
    return this.#end;
  }
  push(pcm: Float32Array): void {
    const kept = pcm.subarray(Math.max(0, pcm.length - this.capacitySamples));
    const at = (this.#end + pcm.length - kept.length) % this.capacitySamples;
    const head = kept.subarray(0, this.capacitySamples - at);
    this.#samples.set(head, at);
    this.#samples.set(kept.subarray(head.length), 0);
    this.#end += pcm.length;
    this.#start = Math.max(this.#start, this.#end - this.capacitySamples);
  }
  /**
   * A copy of the samples from `fromSample` up to, not including, `toSample`, as far as they are held: it starts at
   * max(fromSample, startSample).
   */
  read(fromSample: number, toSample: number = this.#end): Float32Array<ArrayBuffer> {
    const from = Math.max(fromSample, this.#start);
    const to = Math.min(toSample, this.#end);
    const out = new Float32Array(Math.max(0, to - from));
    const at = from % this.capacitySamples;
    const head = Math.min(out.length, this.capacitySamples - at);
    out.set(this.#samples.subarray(at, at + head));
    out.set(this.#samples.subarray(0, out.length - head), head);
    return out;
  }
  /** A copy of the newest `samples`, or of as many as are held. */
  readLast(samples: number): Float32Array<ArrayBuffer> {
    return this.read(this.#end - samples);
  }
  /** Forgets what is held; the numbering goes on. */
  clear(): void {
    this.#start = this.#end;
  }
}
