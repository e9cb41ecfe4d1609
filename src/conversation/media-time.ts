/** The peer's own time line: milliseconds of audio that it sent, however much silence the server put in between. */
import { samplesToMs } from "../util/clock.ts";

interface Insertion {
  readonly atSample: number;
  samples: number;
}

/** Older insertions than these are past every event that could still name them. */
const INSERTIONS_MAX = 64;

export class MediaTime {
  readonly hz: number;
  #samples = 0;
  #insertions: Insertion[] = [];
  #forgottenSamples = 0;
  constructor(hz: number) {
    this.hz = hz;
  }
  /** Samples that the engine got so far, ours included. */
  get samples(): number {
    return this.#samples;
  }
  get peerMs(): number {
    return this.peerMsAt(this.#samples);
  }
  received(samples: number): void {
    this.#samples += samples;
  }
  /** Silence of ours, in place of audio that did not come. */
  inserted(samples: number): void {
    const last = this.#insertions.at(-1);
    if (last !== undefined && last.atSample + last.samples === this.#samples) last.samples += samples;
    else this.#insertions.push({ atSample: this.#samples, samples });
    this.#samples += samples;
    if (this.#insertions.length > INSERTIONS_MAX) this.#forgottenSamples += this.#insertions.shift()?.samples ?? 0;
  }
  /** Where `sample` of the engine's count lies in what the peer sent. */
  peerMsAt(sample: number): number {
    let ours = this.#forgottenSamples;
    for (const { atSample, samples } of this.#insertions) ours += Math.min(samples, Math.max(0, sample - atSample));
    return Math.max(0, Math.round(samplesToMs(sample - ours, this.hz)));
  }
}
