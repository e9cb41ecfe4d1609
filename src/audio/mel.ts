/**
 * Log-mel energies of speech, as NeMo's models are trained on: pre-emphasis, Hann windows around every hop, power spectrum,
 * triangular filters on Slaney's scale, natural logarithm. No normalization, no dither.
 *
 * Frame i is centred on sample i * hopSamples; the signal is reflected at its two ends. Arithmetic follows the float32
 * steps of the common implementations where the rounding shows (window, filters), and is double within a transform.
 */
import { assert } from "../util/assert.ts";
import { PowerSpectrum } from "./fourier.ts";
import { type MelFilter, melFilters } from "./mel-filters.ts";
import { concatPcm } from "./pcm.ts";

export interface MelSettings {
  readonly hz: number;
  /** Even; fast where its factors are small. */
  readonly fftSamples: number;
  readonly windowSamples: number;
  readonly hopSamples: number;
  readonly bins: number;
  /** 0 for none. */
  readonly preemphasis: number;
  /** Added before the logarithm. */
  readonly guard: number;
}

/** Frames [count, bins] of a whole signal: floor(samples / hop) + 1 of them. */
export function logMel(samples: Float32Array, settings: MelSettings): Float32Array<ArrayBuffer> {
  const stream = new MelStream(settings, settings.fftSamples / 2);
  return concatPcm([stream.push(samples), stream.finish()]);
}

/** One stream. All frames of all pushes, and of the end, are those of the whole signal. */
export class MelStream {
  readonly #settings: MelSettings;
  readonly #lookaheadSamples: number;
  readonly #transform: MelTransform;
  /** Emphasized samples from `#start` on: all that frames to come still need. */
  #held: Float32Array<ArrayBuffer> = new Float32Array(0);
  #start = 0;
  #last = 0;
  #samples = 0;
  #frames = 0;

  /** A frame is given once `lookaheadSamples` (half a transform or more) lie behind its centre. */
  constructor(settings: MelSettings, lookaheadSamples: number) {
    assert(lookaheadSamples >= settings.fftSamples / 2, "the lookahead must cover half a transform");
    this.#settings = settings;
    this.#lookaheadSamples = lookaheadSamples;
    this.#transform = transformFor(settings);
  }

  /** The frames [count, bins] that these samples complete. */
  push(samples: Float32Array): Float32Array<ArrayBuffer> {
    this.#take(samples);
    const center = this.#samples - this.#lookaheadSamples;
    return this.#advance(center < 0 ? 0 : Math.floor(center / this.#settings.hopSamples) + 1);
  }

  /** The frames up to the end, where the signal is reflected. */
  finish(): Float32Array<ArrayBuffer> {
    return this.#advance(Math.floor(this.#samples / this.#settings.hopSamples) + 1);
  }

  #take(samples: Float32Array): void {
    const { preemphasis } = this.#settings;
    const factor = Math.fround(preemphasis);
    const joined = new Float32Array(this.#held.length + samples.length);
    joined.set(this.#held);
    for (let i = 0; i < samples.length; i++) {
      const before = i === 0 ? this.#last : samples[i - 1]!;
      joined[this.#held.length + i] = samples[i]! - Math.fround(factor * before);
    }
    this.#held = joined;
    this.#last = samples.at(-1) ?? this.#last;
    this.#samples += samples.length;
  }

  #advance(end: number): Float32Array<ArrayBuffer> {
    const { bins, hopSamples, fftSamples } = this.#settings;
    const count = Math.max(0, end - this.#frames);
    const out = new Float32Array(count * bins);
    for (let i = 0; i < count; i++) {
      const first = (this.#frames + i) * hopSamples - fftSamples / 2;
      this.#transform.write(this.#window(first, fftSamples), out, i * bins);
    }
    this.#frames += count;
    const keep = Math.max(this.#start, this.#frames * hopSamples - fftSamples / 2 - hopSamples);
    this.#held = this.#held.slice(Math.min(keep - this.#start, this.#held.length));
    this.#start = keep;
    return out;
  }

  #window(first: number, samples: number): Float32Array {
    const isInside = first >= this.#start && first + samples <= this.#samples;
    if (isInside) return this.#held.subarray(first - this.#start, first - this.#start + samples);
    return Float32Array.from({ length: samples }, (_, n) => this.#sample(first + n));
  }

  /** The emphasized sample at an absolute place, reflected at the ends as often as it takes. */
  #sample(place: number): number {
    const last = this.#samples - 1;
    let at = place;
    while (last > 0 && (at < 0 || at > last)) at = at < 0 ? -at : 2 * last - at;
    return this.#held[(last > 0 ? at : 0) - this.#start] ?? 0;
  }
}

const transforms = new Map<string, MelTransform>();

/** Tables by settings; sessions share them. */
function transformFor(settings: MelSettings): MelTransform {
  const key = JSON.stringify(settings);
  const known = transforms.get(key) ?? new MelTransform(settings);
  transforms.set(key, known);
  return known;
}

/** Samples of one window to its row of energies. Keeps scratch memory: one call at a time, which a thread guarantees. */
class MelTransform {
  readonly #guard: number;
  readonly #window: Float32Array;
  readonly #filters: readonly MelFilter[];
  readonly #spectrum: PowerSpectrum;
  readonly #power: Float64Array;

  constructor(settings: MelSettings) {
    this.#guard = settings.guard;
    this.#window = centredHann(settings.windowSamples, settings.fftSamples);
    this.#filters = melFilters(settings, Math.fround);
    this.#spectrum = new PowerSpectrum(settings.fftSamples);
    this.#power = new Float64Array(this.#spectrum.bins);
  }

  write(frame: Float32Array, out: Float32Array, at: number): void {
    const windowed = this.#spectrum.samples;
    for (let n = 0; n < frame.length; n++) windowed[n] = Math.fround(frame[n]! * this.#window[n]!);
    this.#spectrum.write(this.#power);
    for (let bin = 0; bin < this.#filters.length; bin++) {
      const { first, weights } = this.#filters[bin]!;
      let energy = 0;
      for (let i = 0; i < weights.length; i++) energy += weights[i]! * this.#power[first + i]!;
      out[at + bin] = Math.log(energy + this.#guard);
    }
  }
}

/** A symmetric Hann window in the middle of a transform. */
function centredHann(windowSamples: number, fftSamples: number): Float32Array {
  const window = new Float32Array(fftSamples);
  const left = Math.floor((fftSamples - windowSamples) / 2);
  for (let n = 0; n < windowSamples; n++) {
    window[left + n] = 0.5 * (1 - Math.cos((2 * Math.PI * n) / (windowSamples - 1)));
  }
  return window;
}
