import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Framer } from "../../src/audio/framer.ts";
import { concatPcm } from "../../src/audio/pcm.ts";
import { chunkSizes, cut } from "../support/chunks.ts";
import { noise } from "../support/signals.ts";

describe("Framer", () => {
  it("cuts every chunking into the same frames, and pads the last with silence", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 300 }),
        fc.integer({ min: 1, max: 40 }),
        chunkSizes(100),
        (samples, size, sizes) => {
          const signal = noise(samples);
          const framer = new Framer(size);
          const frames = cut(signal, sizes).flatMap((chunk) => framer.push(chunk));
          expect(framer.pendingSamples).toBe(samples % size);
          const last = framer.flush();
          if (last !== null) frames.push(last);
          expect(frames.every((frame) => frame.length === size)).toBe(true);
          expect(frames.length).toBe(Math.ceil(samples / size));
          const padded = new Float32Array(frames.length * size);
          padded.set(signal);
          expect(concatPcm(frames)).toEqual(padded);
        },
      ),
      { seed: 5 },
    );
  });
  it("hands out frames that nobody writes to again", () => {
    const framer = new Framer(2);
    const [frame] = framer.push(Float32Array.of(1, 2, 3));
    framer.push(Float32Array.of(4, 5));
    expect(frame).toEqual(Float32Array.of(1, 2));
  });
  it("drops what it holds when cleared", () => {
    const framer = new Framer(3);
    framer.push(Float32Array.of(1, 2));
    framer.clear();
    expect(framer.flush()).toBeNull();
    framer.push(Float32Array.of(7));
    expect(framer.flush()).toEqual(Float32Array.of(7, 0, 0));
  });
  it("refuses a frame without samples", () => {
    expect(() => new Framer(0)).toThrow("positive");
    expect(() => new Framer(1.5)).toThrow("positive");
  });
});
