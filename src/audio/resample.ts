/**
 * Sample rate conversion by a polyphase windowed sinc. Any ratio of whole rates; the kernel has one row of taps for each
 * fraction of an input sample at which an output sample can lie. Flat within 0.001 dB up to 0.85 of the lower Nyquist
 * frequency, 0.15 dB down at 0.88 of it, and 90 dB from it on: nothing folds back.
 *
 * Output sample k is the input at time k * inputHz / outputHz (the filter's delay is taken out), so n input samples give
 * ceil(n * outputHz / inputHz) output samples, with silence before the first and after the last. What it costs is waiting:
 * an output sample comes once 40 samples of the lower rate behind it are in (5 ms at 8 kHz, 2.5 ms at 16 kHz).
 */
import { assert } from "../util/assert.ts";
import { concatPcm } from "./pcm.ts";

/** Zero crossings of the sinc on each side, in samples of the lower rate. */
const HALF_WIDTH = 40;
/** Half height of the filter, relative to the lower Nyquist frequency: the middle of its transition. */
const CUTOFF = 0.928;
/** Kaiser window shape: 90 dB. */
const KAISER_BETA = 8.96;

/** Kernels by ratio; sessions share them. The oldest goes. */
const KERNELS_MAX = 32;
const kernels = new Map<string, Kernel>();

interface Kernel {
  /** Output samples per `down` input samples. */
  readonly up: number;
  readonly down: number;
  /** Input samples that one output sample is made of: an even number, half of them behind it. */
  readonly taps: number;
  /** [up, taps] */
  readonly rows: Float64Array;
}

/** One stream. Streaming equals offline: how the input is cut into chunks changes no bit of the output. */
export class Resampler {
  readonly inputHz: number;
  readonly outputHz: number;
  readonly #kernel: Kernel | null;
  /** Input samples that are still needed, from the first tap of the next output sample on. */
  #held: Float32Array<ArrayBuffer> = new Float32Array(0);
  #phase = 0;
  #inputSamples = 0;
  #outputSamples = 0;

  /** @throws {AssertionFault} unless both rates are positive whole numbers. */
  constructor(inputHz: number, outputHz: number) {
    assert(
      Number.isInteger(inputHz) && inputHz > 0 && Number.isInteger(outputHz) && outputHz > 0,
      `sample rates must be positive whole numbers, got ${inputHz} and ${outputHz}`,
    );
    this.inputHz = inputHz;
    this.outputHz = outputHz;
    this.#kernel = inputHz === outputHz ? null : kernelFor(inputHz, outputHz);
    this.#restart();
  }
  /** How long an input sample waits for those behind it, at most. */
  get delayMs(): number {
    return this.#kernel === null ? 0 : (this.#kernel.taps / 2) * (1000 / this.inputHz);
  }
  /** Takes any number of samples and returns what they complete. The result is the caller's own. */
  push(pcm: Float32Array): Float32Array<ArrayBuffer> {
    if (this.#kernel === null) return pcm.slice();
    this.#inputSamples += pcm.length;
    return this.#advance(this.#kernel, pcm);
  }
  /** Ends the stream: returns the rest, so that the total is as announced above. What is pushed next begins a new one. */
  flush(): Float32Array<ArrayBuffer> {
    if (this.#kernel === null) return new Float32Array(0);
    const missing = resampledLength(this.#inputSamples, this.inputHz, this.outputHz) - this.#outputSamples;
    const out = this.#advance(this.#kernel, new Float32Array(this.#kernel.taps)).slice(0, missing);
    this.#restart();
    return out;
  }
  #restart(): void {
    const taps = this.#kernel?.taps ?? 0;
    // Output sample 0 lies on input sample 0, which is tap taps/2 - 1.
    this.#held = new Float32Array(Math.max(0, taps / 2 - 1));
    this.#phase = 0;
    this.#inputSamples = 0;
    this.#outputSamples = 0;
  }
  #advance({ up, down, taps, rows }: Kernel, pcm: Float32Array): Float32Array<ArrayBuffer> {
    const input = new Float32Array(this.#held.length + pcm.length);
    input.set(this.#held);
    input.set(pcm, this.#held.length);
    let first = 0;
    let phase = this.#phase;
    // The taps of the j-th output sample from here start at floor((phase + j * down) / up), and must end in the input.
    const spare = input.length - taps;
    const count = spare < 0 ? 0 : Math.floor(((spare + 1) * up - 1 - phase) / down) + 1;
    const out = new Float32Array(count);
    for (let k = 0; k < count; k++) {
      out[k] = dot(rows, phase * taps, input, first, taps);
      phase += down;
      const step = Math.floor(phase / up);
      first += step;
      phase -= step * up;
    }
    this.#held = input.slice(first);
    this.#phase = phase;
    this.#outputSamples += count;
    return out;
  }
}

/** A whole signal at once. The result is the caller's own, also where the rates are equal. */
export function resample(pcm: Float32Array, inputHz: number, outputHz: number): Float32Array<ArrayBuffer> {
  const resampler = new Resampler(inputHz, outputHz);
  return concatPcm([resampler.push(pcm), resampler.flush()]);
}

/** How many samples `resample` makes of `samples`. */
export function resampledLength(samples: number, inputHz: number, outputHz: number): number {
  const divisor = greatestCommonDivisor(inputHz, outputHz);
  return Math.ceil((samples * (outputHz / divisor)) / (inputHz / divisor));
}

/** Four sums at a time, always in the same order. `taps` is a multiple of 4. */
function dot(rows: Float64Array, row: number, input: Float32Array, first: number, taps: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let i = 0; i < taps; i += 4) {
    a += rows[row + i]! * input[first + i]!;
    b += rows[row + i + 1]! * input[first + i + 1]!;
    c += rows[row + i + 2]! * input[first + i + 2]!;
    d += rows[row + i + 3]! * input[first + i + 3]!;
  }
  return a + b + (c + d);
}

function kernelFor(inputHz: number, outputHz: number): Kernel {
  const divisor = greatestCommonDivisor(inputHz, outputHz);
  const up = outputHz / divisor;
  const down = inputHz / divisor;
  const key = `${up}/${down}`;
  const known = kernels.get(key);
  if (known !== undefined) return known;
  const kernel = buildKernel(up, down);
  const oldest = kernels.keys().next();
  if (kernels.size >= KERNELS_MAX && oldest.done !== true) kernels.delete(oldest.value);
  kernels.set(key, kernel);
  return kernel;
}

function buildKernel(up: number, down: number): Kernel {
  // In input samples, a lower output rate widens the kernel.
  const stretch = Math.max(1, down / up);
  const reach = HALF_WIDTH * stretch;
  const taps = 4 * Math.ceil(reach / 2);
  const rows = new Float64Array(up * taps);
  const windowPeak = besselI0(KAISER_BETA);
  for (let phase = 0; phase < up; phase++) {
    const row = rows.subarray(phase * taps, (phase + 1) * taps);
    let sum = 0;
    for (let i = 0; i < taps; i++) {
      const distance = i - (taps / 2 - 1) - phase / up;
      const edge = distance / reach;
      if (Math.abs(edge) >= 1) continue;
      const kaiser = besselI0(KAISER_BETA * Math.sqrt(1 - edge * edge)) / windowPeak;
      row[i] = sinc((CUTOFF * distance) / stretch) * kaiser;
      sum += row[i]!;
    }
    // Each row lets a constant through unchanged, so that a constant has no ripple at the input rate.
    for (let i = 0; i < taps; i++) row[i] = row[i]! / sum;
  }
  return { up, down, taps, rows };
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** The modified Bessel function of the first kind and order 0, by its power series. */
function besselI0(x: number): number {
  const quarter = (x * x) / 4;
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-17; k++) {
    term *= quarter / (k * k);
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
