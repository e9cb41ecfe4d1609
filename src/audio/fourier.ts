/**
 * The power spectrum of real samples, for any even size; fast where its half has small factors (512 = 2 * 4^4, 400 = 2 * 2 *
 * 4 * 5 * 5). Pairs of samples make one complex value each; Stockham's passes transform those, and the two halves of the
 * spectrum are told apart at the end.
 */
import { assert } from "../util/assert.ts";

/** One pass: `count` butterflies of `radix` values each, over `stride` interleaved transforms. */
interface Pass {
  readonly radix: number;
  readonly count: number;
  readonly stride: number;
  /** [count, radix, 2]: cosine and sine by which each output is turned. */
  readonly turns: Float64Array;
}

/** Keeps scratch memory: one call at a time, which a thread guarantees. */
export class PowerSpectrum {
  readonly size: number;
  /** size / 2 + 1 */
  readonly bins: number;
  readonly #passes: readonly Pass[];
  /** [size / 2, 2]: cosine and sine of -2 pi k / size. */
  readonly #turns: Float64Array;
  /** Complex values, [size / 2, 2]. */
  #values: Float64Array;
  #spare: Float64Array;

  constructor(size: number) {
    assert(size >= 2 && size % 2 === 0, `a spectrum needs an even number of samples, got ${size}`);
    this.size = size;
    this.bins = size / 2 + 1;
    this.#passes = passesFor(size / 2);
    this.#turns = turnsOf(size / 2, size);
    this.#values = new Float64Array(size);
    this.#spare = new Float64Array(size);
  }
  /** Where the samples of the next `write` go. */
  get samples(): Float64Array {
    return this.#values;
  }
  /** Writes |X[k]|^2 of `samples`, which it uses up, for k = 0 to size / 2. */
  write(power: Float64Array): void {
    for (const pass of this.#passes) {
      if (pass.radix === 4) four(pass, this.#values, this.#spare);
      else if (pass.radix === 5) five(pass, this.#values, this.#spare);
      else if (pass.radix === 2) two(pass, this.#values, this.#spare);
      else any(pass, this.#values, this.#spare);
      [this.#values, this.#spare] = [this.#spare, this.#values];
    }
    const values = this.#values;
    const half = this.size / 2;
    power[0] = (values[0]! + values[1]!) ** 2;
    power[half] = (values[0]! - values[1]!) ** 2;
    for (let k = 1; k < half; k++) {
      const [re, im] = [values[2 * k]!, values[2 * k + 1]!];
      const [mirrorRe, mirrorIm] = [values[2 * (half - k)]!, values[2 * (half - k) + 1]!];
      const [oddRe, oddIm] = [im + mirrorIm, mirrorRe - re];
      const [cos, sin] = [this.#turns[2 * k]!, this.#turns[2 * k + 1]!];
      const sumRe = re + mirrorRe + oddRe * cos - oddIm * sin;
      const sumIm = im - mirrorIm + oddRe * sin + oddIm * cos;
      power[k] = (sumRe * sumRe + sumIm * sumIm) / 4;
    }
  }
}

function passesFor(size: number): Pass[] {
  const passes: Pass[] = [];
  for (let left = size, stride = 1; left > 1; ) {
    const radix = left % 4 === 0 ? 4 : smallestFactor(left);
    const count = left / radix;
    const turns = new Float64Array(2 * left);
    for (let p = 0; p < count; p++) {
      for (let j = 0; j < radix; j++) {
        const angle = (-2 * Math.PI * p * j) / left;
        turns[2 * (p * radix + j)] = Math.cos(angle);
        turns[2 * (p * radix + j) + 1] = Math.sin(angle);
      }
    }
    passes.push({ radix, count, stride, turns });
    left = count;
    stride *= radix;
  }
  return passes;
}

function smallestFactor(n: number): number {
  for (let factor = 2; factor * factor <= n; factor++) if (n % factor === 0) return factor;
  return n;
}

function turnsOf(count: number, size: number): Float64Array {
  const turns = new Float64Array(2 * count);
  for (let k = 0; k < count; k++) {
    turns[2 * k] = Math.cos((-2 * Math.PI * k) / size);
    turns[2 * k + 1] = Math.sin((-2 * Math.PI * k) / size);
  }
  return turns;
}

function two({ count, stride, turns }: Pass, from: Float64Array, to: Float64Array): void {
  for (let p = 0; p < count; p++) {
    const cos = turns[4 * p + 2]!;
    const sin = turns[4 * p + 3]!;
    for (let q = 0; q < stride; q++) {
      const a = 2 * (q + stride * p);
      const b = a + 2 * stride * count;
      const out = 2 * (q + stride * 2 * p);
      const re = from[a]! - from[b]!;
      const im = from[a + 1]! - from[b + 1]!;
      to[out] = from[a]! + from[b]!;
      to[out + 1] = from[a + 1]! + from[b + 1]!;
      to[out + 2 * stride] = re * cos - im * sin;
      to[out + 2 * stride + 1] = re * sin + im * cos;
    }
  }
}

function four({ count, stride, turns }: Pass, from: Float64Array, to: Float64Array): void {
  const apart = 2 * stride * count;
  for (let p = 0; p < count; p++) {
    const turn = 8 * p;
    for (let q = 0; q < stride; q++) {
      const a = 2 * (q + stride * p);
      const sumRe = from[a]! + from[a + 2 * apart]!;
      const sumIm = from[a + 1]! + from[a + 2 * apart + 1]!;
      const differenceRe = from[a]! - from[a + 2 * apart]!;
      const differenceIm = from[a + 1]! - from[a + 2 * apart + 1]!;
      const otherSumRe = from[a + apart]! + from[a + 3 * apart]!;
      const otherSumIm = from[a + apart + 1]! + from[a + 3 * apart + 1]!;
      const otherRe = from[a + apart]! - from[a + 3 * apart]!;
      const otherIm = from[a + apart + 1]! - from[a + 3 * apart + 1]!;
      const out = 2 * (q + stride * 4 * p);
      to[out] = sumRe + otherSumRe;
      to[out + 1] = sumIm + otherSumIm;
      turned(to, out + 2 * stride, differenceRe + otherIm, differenceIm - otherRe, turns, turn + 2);
      turned(to, out + 4 * stride, sumRe - otherSumRe, sumIm - otherSumIm, turns, turn + 4);
      turned(to, out + 6 * stride, differenceRe - otherIm, differenceIm + otherRe, turns, turn + 6);
    }
  }
}

const [COS_1, SIN_1] = [Math.cos((2 * Math.PI) / 5), Math.sin((2 * Math.PI) / 5)];
const [COS_2, SIN_2] = [Math.cos((4 * Math.PI) / 5), Math.sin((4 * Math.PI) / 5)];

function five({ count, stride, turns }: Pass, from: Float64Array, to: Float64Array): void {
  const apart = 2 * stride * count;
  for (let p = 0; p < count; p++) {
    const turn = 10 * p;
    for (let q = 0; q < stride; q++) {
      const a = 2 * (q + stride * p);
      const re = from[a]!;
      const im = from[a + 1]!;
      const outerRe = from[a + apart]! + from[a + 4 * apart]!;
      const outerIm = from[a + apart + 1]! + from[a + 4 * apart + 1]!;
      const innerRe = from[a + 2 * apart]! + from[a + 3 * apart]!;
      const innerIm = from[a + 2 * apart + 1]! + from[a + 3 * apart + 1]!;
      const acrossRe = from[a + apart]! - from[a + 4 * apart]!;
      const acrossIm = from[a + apart + 1]! - from[a + 4 * apart + 1]!;
      const betweenRe = from[a + 2 * apart]! - from[a + 3 * apart]!;
      const betweenIm = from[a + 2 * apart + 1]! - from[a + 3 * apart + 1]!;
      const evenRe1 = re + COS_1 * outerRe + COS_2 * innerRe;
      const evenIm1 = im + COS_1 * outerIm + COS_2 * innerIm;
      const evenRe2 = re + COS_2 * outerRe + COS_1 * innerRe;
      const evenIm2 = im + COS_2 * outerIm + COS_1 * innerIm;
      const oddRe1 = SIN_1 * acrossRe + SIN_2 * betweenRe;
      const oddIm1 = SIN_1 * acrossIm + SIN_2 * betweenIm;
      const oddRe2 = SIN_2 * acrossRe - SIN_1 * betweenRe;
      const oddIm2 = SIN_2 * acrossIm - SIN_1 * betweenIm;
      const out = 2 * (q + stride * 5 * p);
      to[out] = re + outerRe + innerRe;
      to[out + 1] = im + outerIm + innerIm;
      turned(to, out + 2 * stride, evenRe1 + oddIm1, evenIm1 - oddRe1, turns, turn + 2);
      turned(to, out + 4 * stride, evenRe2 + oddIm2, evenIm2 - oddRe2, turns, turn + 4);
      turned(to, out + 6 * stride, evenRe2 - oddIm2, evenIm2 + oddRe2, turns, turn + 6);
      turned(to, out + 8 * stride, evenRe1 - oddIm1, evenIm1 + oddRe1, turns, turn + 8);
    }
  }
}

/** Any radix, by the definition. */
function any({ radix, count, stride, turns }: Pass, from: Float64Array, to: Float64Array): void {
  const roots = turnsOf(radix, radix);
  for (let p = 0; p < count; p++) {
    for (let q = 0; q < stride; q++) {
      for (let j = 0; j < radix; j++) {
        let re = 0;
        let im = 0;
        for (let k = 0; k < radix; k++) {
          const at = 2 * (q + stride * (p + count * k));
          const root = 2 * ((j * k) % radix);
          re += from[at]! * roots[root]! - from[at + 1]! * roots[root + 1]!;
          im += from[at]! * roots[root + 1]! + from[at + 1]! * roots[root]!;
        }
        turned(to, 2 * (q + stride * (radix * p + j)), re, im, turns, 2 * (p * radix + j));
      }
    }
  }
}

function turned(to: Float64Array, at: number, re: number, im: number, turns: Float64Array, turn: number): void {
  const cos = turns[turn]!;
  const sin = turns[turn + 1]!;
  to[at] = re * cos - im * sin;
  to[at + 1] = re * sin + im * cos;
}
