import { describe, expect, it } from "vitest";
import { PowerSpectrum } from "../../src/audio/fourier.ts";
import { noise } from "../support/signals.ts";

/** The definition. */
function slowSpectrum(samples: Float32Array): number[] {
  return Array.from({ length: samples.length / 2 + 1 }, (_, k) => {
    let re = 0;
    let im = 0;
    for (let n = 0; n < samples.length; n++) {
      const angle = (-2 * Math.PI * ((k * n) % samples.length)) / samples.length;
      re += samples[n]! * Math.cos(angle);
      im += samples[n]! * Math.sin(angle);
    }
    return re * re + im * im;
  });
}

describe("PowerSpectrum", () => {
  it.each([2, 4, 6, 8, 10, 14, 16, 18, 20, 32, 50, 60, 64, 98, 120, 250, 256, 400, 480, 512])(
    "is the definition's for %d samples, time after time",
    (size) => {
      const spectrum = new PowerSpectrum(size);
      const power = new Float64Array(spectrum.bins);
      for (const seed of [1, 2]) {
        const samples = noise(size, 1, seed);
        spectrum.samples.set(samples);
        spectrum.write(power);
        const slow = slowSpectrum(samples);
        // Double precision: a sum of `size` terms of size 1, squared.
        for (const [k, value] of slow.entries()) expect(Math.abs(power[k]! - value)).toBeLessThan(1e-11 * size);
      }
    },
  );
  it("refuses an odd number of samples", () => {
    expect(() => new PowerSpectrum(7)).toThrow("even");
    expect(() => new PowerSpectrum(0)).toThrow("even");
  });
});
