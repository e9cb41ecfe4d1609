/**
 * The random numbers of MLX: threefry2x32 in counter mode, and a key that every draw splits once. Arithmetic is float32
 * (`Math.fround` after each step), so `uniform` is the same bit for bit. So is `normal`, but for one draw in some three
 * thousand, where the C library's logarithm is not the nearest float32 and the last bit differs.
 */

const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24] as const;
const KEY_PARITY = 0x1bd11bda;

type Pair = readonly [number, number];

/** Twenty rounds of threefry2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). All values are uint32. */
export function threefry2x32(key: Pair, counter: Pair): Pair {
  const schedule = [key[0], key[1], key[0] ^ key[1] ^ KEY_PARITY] as const;
  let x = (counter[0] + schedule[0]) | 0;
  let y = (counter[1] + schedule[1]) | 0;
  for (let group = 0; group < 5; group++) {
    const first = (group % 2) * 4;
    for (let round = first; round < first + 4; round++) {
      const turn = ROTATIONS[round]!;
      x = (x + y) | 0;
      y = ((y << turn) | (y >>> (32 - turn))) ^ x;
    }
    x = (x + schedule[(group + 1) % 3]!) | 0;
    y = (y + schedule[(group + 2) % 3]! + group + 1) | 0;
  }
  return [x >>> 0, y >>> 0];
}

/**
 * `count` words under one key. Word i of the first half and word i of the second half are the two outputs of one block;
 * an odd count has a middle word from a block of its own.
 */
function randomWords(key: Pair, count: number): Uint32Array {
  const words = new Uint32Array(count);
  const half = count >>> 1;
  const second = count - half;
  for (let i = 0; i < half; i++) {
    const [x, y] = threefry2x32(key, [i, second + i]);
    words[i] = x;
    words[second + i] = y;
  }
  if (second > half) words[half] = threefry2x32(key, [half, 0])[0];
  return words;
}

const { fround } = Math;
const WORDS = fround(0xffffffff);
const BELOW_ONE = 1 - 2 ** -24;
const SQRT_2 = fround(Math.SQRT2);

/** A product and a sum with one rounding: the product of two float32 is exact as a double. */
function fma(a: number, b: number, c: number): number {
  return fround(a * b + c);
}

/** Coefficients of erfinv(a) / a in t = log(1 - a²), highest power first, for |t| > 6.125 and for the rest. */
const ERFINV_TAIL = [
  3.03697567e-10, 2.93243101e-8, 1.22150334e-6, 2.84108955e-5, 3.93552968e-4, 3.02698812e-3, 4.83185798e-3,
  -2.64646143e-1, 8.40016484e-1,
].map(fround);
const ERFINV_CENTER = [
  5.43877832e-9, 1.43285448e-7, 1.22774793e-6, 1.12963626e-7, -5.6153076e-5, -1.47697632e-4, 2.31468678e-3,
  1.15392581e-2, -2.32015476e-1, 8.86226892e-1,
].map(fround);

function erfinv(a: number): number {
  const t = fround(Math.log(fma(a, -a, 1)));
  const coefficients = Math.abs(t) > 6.125 ? ERFINV_TAIL : ERFINV_CENTER;
  return fround(a * coefficients.reduce((sum, coefficient) => fma(sum, t, coefficient)));
}

/** One stream of draws. It belongs to one session: two sessions never share a generator. */
export class RandomGenerator {
  #key: Pair;
  /** @param seed a non-negative integer up to 2⁵³ - 1. @throws {RangeError} otherwise. */
  constructor(seed: number) {
    if (!Number.isSafeInteger(seed) || seed < 0)
      throw new RangeError(`seed must be an integer from 0 to 2^53 - 1, got ${seed}`);
    this.#key = [Math.floor(seed / 2 ** 32), seed >>> 0];
  }

  /** `count` float32 in [0, 1). */
  uniform(count: number): Float32Array {
    return Float32Array.from(randomWords(this.#split(), count), unit);
  }

  /** `count` float32 of the standard normal distribution. */
  normal(count: number): Float32Array {
    const low = -BELOW_ONE;
    const range = fround(1 - low);
    return Float32Array.from(randomWords(this.#split(), count), (word) => {
      const a = fround(fround(range * unit(word)) + low);
      return fround(SQRT_2 * erfinv(a));
    });
  }

  #split(): Pair {
    const words = randomWords(this.#key, 4);
    this.#key = [words[0]!, words[1]!];
    return [words[2]!, words[3]!];
  }
}

function unit(word: number): number {
  return Math.min(fround(fround(word) / WORDS), BELOW_ONE);
}
