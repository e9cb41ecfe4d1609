import fc from "fast-check";
import { expect, test } from "vitest";
import { RandomGenerator, threefry2x32 } from "../../src/util/rng.ts";
import { goldenFloats, readGolden } from "../support/golden.ts";

const REFERENCE = new URL("../fixtures/voicechat/tiny-f32/reference/networks.safetensors", import.meta.url).pathname;

test("the draws of seed 123 are the reference's, bit for bit, even counts and odd ones", () => {
  const golden = readGolden(REFERENCE);
  const generator = new RandomGenerator(123);
  expect(generator.uniform(5)).toEqual(goldenFloats(golden, "rng_uniform_5"));
  expect(generator.normal(6)).toEqual(goldenFloats(golden, "rng_normal_2x3"));
  expect(generator.uniform(7)).toEqual(goldenFloats(golden, "rng_uniform_1x1x7"));
  expect(generator.normal(17)).toEqual(goldenFloats(golden, "rng_normal_odd_17"));
});

/** The known answers of the generator's authors (Random123, kat_vectors: threefry2x32, 20 rounds). */
test("the block function gives its authors' answers", () => {
  expect(threefry2x32([0, 0], [0, 0])).toEqual([0x6b200159, 0x99ba4efe]);
  expect(threefry2x32([0xffffffff, 0xffffffff], [0xffffffff, 0xffffffff])).toEqual([0x1cb996fc, 0xbb002be7]);
  expect(threefry2x32([0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3])).toEqual([0xc4923a9c, 0x483df7a0]);
});

test("a seed above 32 bits uses both halves of the key", () => {
  expect(new RandomGenerator(2 ** 40 + 7).uniform(4)).not.toEqual(new RandomGenerator(7).uniform(4));
});

test("uniform stays in [0, 1) and normal has the moments of its name", () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const generator = new RandomGenerator(seed);
      for (const value of generator.uniform(500)) expect(value >= 0 && value < 1).toBe(true);
      const draws = generator.normal(4000);
      const mean = draws.reduce((sum, value) => sum + value, 0) / draws.length;
      const variance = draws.reduce((sum, value) => sum + (value - mean) ** 2, 0) / draws.length;
      // Five standard errors of 4,000 draws: 0.079 for the mean, 0.112 for the variance.
      expect(Math.abs(mean)).toBeLessThan(0.079);
      expect(Math.abs(variance - 1)).toBeLessThan(0.112);
    }),
    { numRuns: 20, seed: 1 },
  );
});

test("a seed that is no whole number is refused", () => {
  for (const seed of [-1, 0.5, Number.NaN, 2 ** 53]) expect(() => new RandomGenerator(seed)).toThrow(RangeError);
});
