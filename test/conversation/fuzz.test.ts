import fc from "fast-check";
import { it } from "vitest";
import { conversations, playAndCheck } from "../support/fuzz.ts";

/** `bench/fuzz.ts` runs as many as one likes. */
const RUNS = 2000;

it("holds its invariants through random and mutated conversations", () => {
  fc.assert(fc.property(conversations, playAndCheck), { numRuns: RUNS, seed: 20_261_130 });
});
