import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SampleRing } from "../../src/audio/ring.ts";
import { chunkSizes, cut } from "../support/chunks.ts";
import { noise } from "../support/signals.ts";

describe("SampleRing", () => {
  it("returns what a full recording would, as far as it is held", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 200 }),
        fc.integer({ min: 1, max: 50 }),
        chunkSizes(120),
        fc.integer({ min: -20, max: 220 }),
        fc.integer({ min: -20, max: 220 }),
        (samples, capacity, sizes, from, to) => {
          const signal = noise(samples);
          const ring = new SampleRing(capacity);
          for (const chunk of cut(signal, sizes)) ring.push(chunk);
          expect(ring.endSample).toBe(samples);
          expect(ring.startSample).toBe(Math.max(0, samples - capacity));
          const start = Math.max(from, ring.startSample);
          expect(ring.read(from, to)).toEqual(signal.slice(start, Math.max(start, to)));
          expect(ring.readLast(10)).toEqual(signal.slice(Math.max(samples - Math.min(10, capacity), 0)));
        },
      ),
      { seed: 6, numRuns: 300 },
    );
  });
  it("keeps its numbering when cleared", () => {
    const ring = new SampleRing(4);
    ring.push(Float32Array.of(1, 2, 3));
    ring.clear();
    expect(ring.read(0)).toEqual(new Float32Array(0));
    ring.push(Float32Array.of(4, 5));
    expect([ring.startSample, ring.endSample]).toEqual([3, 5]);
    expect(ring.read(0)).toEqual(Float32Array.of(4, 5));
  });
  it("refuses to hold nothing", () => {
    expect(() => new SampleRing(0)).toThrow("positive");
  });
});
