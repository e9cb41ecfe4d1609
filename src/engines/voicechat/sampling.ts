/**
 * The random part of one frame's codes. A frame's codebooks are filled in a few masked iterations; each picks one
 * component of the mixture (Gumbel-max) and adds a little noise to its mean. All draws are made here, in the order in which
 * the reference makes them, so the graphs themselves are pure functions.
 */
import type { RandomGenerator } from "../../util/rng.ts";

const { fround } = Math;

/** A run of codebooks that one iteration fills: codebooks `start` to `start + count - 1`. */
export interface MaskedIteration {
  readonly start: number;
  readonly count: number;
}

/**
 * After i of n iterations, ceil((1 - (i/n)^e)^(1/e) * quantizers) codebooks are still masked: the first iterations fill none,
 * the last ones the bulk (8 iterations with e = 3 fill 1, 1, 3, 4 and 22 of 31). Those that fill none draw nothing.
 */
export function maskedIterations(quantizers: number, iterations: number, exponent: number): MaskedIteration[] {
  const maskedAfter = (done: number): number =>
    done === iterations ? 0 : Math.ceil((1 - (done / iterations) ** exponent) ** (1 / exponent) * quantizers);
  const runs: MaskedIteration[] = [];
  for (let i = 0; i < iterations; i++) {
    const count = maskedAfter(i) - maskedAfter(i + 1);
    if (count > 0) runs.push({ start: quantizers - maskedAfter(i), count });
  }
  return runs;
}

/** What one iteration adds of its own. */
export interface IterationNoise {
  /** [components], added to the log probabilities: the largest sum is the component. */
  readonly gumbel: Float32Array;
  /** [latentSize], standard normal. */
  readonly normal: Float32Array;
}

/** One uniform draw over the components, then one normal draw over the latent. */
export function drawNoise(generator: RandomGenerator, components: number, latentSize: number): IterationNoise {
  const gumbel = generator.uniform(components).map(gumbelOf);
  return { gumbel, normal: generator.normal(latentSize) };
}

const GUARD = fround(1e-8);

/** -log(-log(u + 1e-8) + 1e-8), rounded to float32 after each step as the reference does. */
function gumbelOf(uniform: number): number {
  const inner = fround(Math.log(fround(uniform + GUARD)));
  return -fround(Math.log(fround(GUARD - inner)));
}
