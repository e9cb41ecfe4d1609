/**
 * Does the session hold its invariants through a great many random conversations? The suite runs a few thousand.
 *
 *     npx tsx bench/fuzz.ts [runs=100000] [seed=1]
 *
 * Prints JSON: how many ran, in how many seconds, and the shortest conversation that broke an invariant, if any.
 */
import fc from "fast-check";
import { conversations, playAndCheck } from "../test/support/fuzz.ts";

const [runs = "100000", seed = "1"] = process.argv.slice(2);
const startMs = performance.now();
const result = fc.check(fc.property(conversations, playAndCheck), { numRuns: Number(runs), seed: Number(seed) });
const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1));
const steps = result.counterexample?.[0].steps.map((step) => step.name) ?? null;
const failure = result.errorInstance instanceof Error ? result.errorInstance.message : null;
console.log(
  JSON.stringify({ runs: result.numRuns, seed: Number(seed), seconds, failed: result.failed, failure, steps }, null, 2),
);
