/**
 * Log-mel energies of speech, as NeMo's models are trained on: pre-emphasis, Hann windows around every hop, power spectrum,
 * triangular filters on Slaney's scale, natural logarithm. No normalization, no dither.
 *
 * Frame i is centred on sample i * hopSamples; the signal is reflected at its two ends. Arithmetic follows the float32
 * steps of the common implementations where the rounding shows (window, filters), and is double within a transform.
 */
import { assert } from "../util/assert.ts";

export interface MelSettings {
  readonly hz: number;
  /** A power of two. */
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
  const first = stream.push(samples);
  const rest = stream.finish();
  const all = new Float32Array(first.length + rest.length);
  all.set(first);
  all.set(rest, first.length);
  return all;
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
    const frame = new Float32Array(fftSamples);
    for (let i = 0; i < count; i++) {
      const first = (this.#frames + i) * hopSamples - fftSamples / 2;
      for (let n = 0; n < fftSamples; n++) frame[n] = this.#sample(first + n);
      this.#transform.write(frame, out, i * bins);
    }
    this.#frames += count;
    const keep = Math.max(this.#start, this.#frames * hopSamples - fftSamples / 2 - hopSamples);
    this.#held = this.#held.slice(Math.min(keep - this.#start, this.#held.length));
    this.#start = keep;
    return out;
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
  readonly #settings: MelSettings;
  readonly #window: Float32Array;
  readonly #filters: readonly MelFilter[];
  readonly #real: Float64Array;
  readonly #imaginary: Float64Array;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;

  constructor(settings: MelSettings) {
    const { fftSamples } = settings;
    assert(Number.isInteger(Math.log2(fftSamples)), `fftSamples must be a power of two, got ${fftSamples}`);
    this.#settings = settings;
    this.#window = centredHann(settings.windowSamples, fftSamples);
    this.#filters = melFilters(settings);
    this.#real = new Float64Array(fftSamples);
    this.#imaginary = new Float64Array(fftSamples);
    const turn = (index: number): number => (-2 * Math.PI * index) / fftSamples;
    this.#cosines = Float64Array.from({ length: fftSamples / 2 }, (_, index) => Math.cos(turn(index)));
    this.#sines = Float64Array.from({ length: fftSamples / 2 }, (_, index) => Math.sin(turn(index)));
  }

  write(frame: Float32Array, out: Float32Array, at: number): void {
    for (let n = 0; n < frame.length; n++) this.#real[n] = Math.fround(frame[n]! * this.#window[n]!);
    this.#imaginary.fill(0);
    this.#fourier();
    for (const [bin, { first, weights }] of this.#filters.entries()) {
      let energy = 0;
      for (let i = 0; i < weights.length; i++) {
        energy += weights[i]! * (this.#real[first + i]! ** 2 + this.#imaginary[first + i]! ** 2);
      }
      out[at + bin] = Math.log(energy + this.#settings.guard);
    }
  }

  /** In place, radix two. */
  #fourier(): void {
    const real = this.#real;
    const imaginary = this.#imaginary;
    const size = real.length;
    for (let i = 1, j = 0; i < size; i++) {
      let bit = size >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      // The imaginary parts are all zero still.
      if (i < j) [real[i], real[j]] = [real[j]!, real[i]!];
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let block = 0; block < size; block += 2 * half) {
        for (let k = 0; k < half; k++) {
          const [a, b] = [block + k, block + k + half];
          const [c, s] = [this.#cosines[k * stride]!, this.#sines[k * stride]!];
          const re = real[b]! * c - imaginary[b]! * s;
          const im = real[b]! * s + imaginary[b]! * c;
          real[b] = real[a]! - re;
          imaginary[b] = imaginary[a]! - im;
          real[a]! += re;
          imaginary[a]! += im;
        }
      }
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

/** The bins of the spectrum from `first` on that a filter weighs. */
interface MelFilter {
  readonly first: number;
  readonly weights: Float32Array;
}

const { fround } = Math;

/** Triangles between neighbouring points, equally spaced in mel from 0 to half the rate, each of area 1 (Slaney's norm). */
function melFilters({ hz, fftSamples, bins }: MelSettings): MelFilter[] {
  const points = slaneyPoints(hz / 2, bins + 2);
  return Array.from({ length: bins }, (_, bin) => {
    const [low, middle, high] = [points[bin]!, points[bin + 1]!, points[bin + 2]!];
    const scale = fround(2 / fround(high - low));
    const weights = Float32Array.from({ length: fftSamples / 2 + 1 }, (_, k) => {
      const frequency = fround((k * hz) / fftSamples);
      const rising = fround(fround(frequency - low) / fround(middle - low));
      const falling = fround(fround(high - frequency) / fround(high - middle));
      return Math.max(0, Math.min(rising, falling)) * scale;
    });
    const first = weights.findIndex((weight) => weight > 0);
    const last = weights.findLastIndex((weight) => weight > 0);
    return first < 0 ? { first: 0, weights: weights.slice(0, 0) } : { first, weights: weights.slice(first, last + 1) };
  });
}

/** Hz per mel below the break at 1,000 Hz; above it, a mel is a factor. */
const LINEAR_HZ = 200 / 3;
const BREAK_HZ = 1000;
const LOG_STEP = Math.log(6.4) / 27;

/** `count` frequencies from 0 to `topHz`, equally spaced in mel, in float32 steps. */
function slaneyPoints(topHz: number, count: number): number[] {
  const breakMel = BREAK_HZ / LINEAR_HZ;
  const topMel = topHz < BREAK_HZ ? topHz / LINEAR_HZ : breakMel + Math.log(topHz / BREAK_HZ) / LOG_STEP;
  return Array.from({ length: count }, (_, index) => {
    const mel = fround(fround(index / (count - 1)) * fround(topMel));
    if (mel < fround(breakMel)) return fround(fround(LINEAR_HZ) * mel);
    return fround(BREAK_HZ * fround(Math.exp(fround(fround(LOG_STEP) * fround(mel - fround(breakMel))))));
  });
}
