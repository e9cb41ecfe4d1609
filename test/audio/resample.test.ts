import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concatPcm } from "../../src/audio/pcm.ts";
import { Resampler, resample, resampledLength } from "../../src/audio/resample.ts";
import { chunkSizes, cut } from "../support/chunks.ts";
import { decibels, noise, rms, sameBits, tone } from "../support/signals.ts";

const RATES = [
  [22050, 24000],
  [22050, 48000],
  [44100, 16000],
  [8000, 24000],
  [24000, 8000],
  [16000, 48000],
  [48000, 16000],
  [24000, 48000],
  [24000, 16000],
  [16000, 24000],
  [8000, 16000],
  [48000, 8000],
  [22050, 16000],
  [11025, 16000],
] as const;

/** The middle of a signal, away from the edges' transients. */
const middle = (pcm: Float32Array): Float32Array => pcm.subarray(pcm.length >> 2, (3 * pcm.length) >> 2);

describe.each(RATES)("%d Hz to %d Hz", (inputHz, outputHz) => {
  const lowerNyquistHz = Math.min(inputHz, outputHz) / 2;

  it("passes tones unchanged and undelayed up to 0.85 of the lower Nyquist frequency", () => {
    for (const fraction of [0.01, 0.2, 0.5, 0.8, 0.85]) {
      const hz = fraction * lowerNyquistHz;
      const out = resample(tone(hz, inputHz, inputHz / 4), inputHz, outputHz);
      const wanted = tone(hz, outputHz, out.length);
      const difference = Float32Array.from(out, (x, i) => x - wanted[i]!);
      // 0.003 dB of ripple would leave 3.5e-4 of the tone.
      expect(decibels(rms(middle(difference)) / rms(middle(wanted)))).toBeLessThan(-70);
    }
  });

  it("suppresses by 80 dB what would fold back, and leaves no images", () => {
    for (const fraction of [1.0, 1.05, 1.2, 1.7]) {
      const hz = fraction * lowerNyquistHz;
      if (hz >= inputHz / 2) continue;
      const out = resample(tone(hz, inputHz, inputHz / 4), inputHz, outputHz);
      expect(decibels(rms(middle(out)) / (0.5 / Math.SQRT2))).toBeLessThan(-80);
    }
  });

  it("gives the same bits for every chunking, and the announced length", () => {
    const signal = noise(3000);
    const whole = resample(signal, inputHz, outputHz);
    expect(whole.length).toBe(Math.ceil((signal.length * outputHz) / inputHz));
    fc.assert(
      fc.property(chunkSizes(1500), (sizes) => {
        const resampler = new Resampler(inputHz, outputHz);
        const pieces = cut(signal, sizes).map((chunk) => resampler.push(chunk));
        expect(sameBits(concatPcm([...pieces, resampler.flush()]), whole)).toBe(true);
      }),
      { seed: 3, numRuns: 25 },
    );
  });
});

describe("Resampler", () => {
  it("gives ceil(n * to / from) samples for every length", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 700 }),
        fc.constantFrom(...RATES, [16000, 16000] as const, [7, 3] as const),
        (samples, [from, to]) => {
          const out = resample(new Float32Array(samples).fill(0.25), from, to);
          expect(out.length).toBe(Math.ceil((samples * to) / from));
          expect(out.length).toBe(resampledLength(samples, from, to));
        },
      ),
      { seed: 4 },
    );
  });

  it("keeps a constant constant", () => {
    const out = resample(new Float32Array(4000).fill(0.7), 22050, 48000);
    for (const x of middle(out)) expect(Math.abs(x - 0.7)).toBeLessThan(1e-6);
  });

  it("comes back to the original after going up and down", () => {
    const speechBand = Float32Array.from(tone(300, 16000, 8000), (x, i) => x + 0.3 * Math.sin(i * 1.3));
    const back = resample(resample(speechBand, 16000, 48000), 48000, 16000);
    const difference = Float32Array.from(speechBand, (x, i) => x - back[i]!);
    expect(back.length).toBe(speechBand.length);
    expect(decibels(rms(middle(difference)) / rms(speechBand))).toBeLessThan(-70);
  });

  it("holds back no more than it says", () => {
    const resampler = new Resampler(16000, 24000);
    expect(resampler.delayMs).toBe(2.5);
    expect(new Resampler(24000, 16000).delayMs).toBe(2.5);
    const pushed = 320;
    const out = resampler.push(noise(pushed));
    expect(out.length).toBeGreaterThanOrEqual(((pushed - 40) * 24000) / 16000);
  });

  it("is the identity where the rates are equal, and hands out its own memory", () => {
    const signal = noise(100);
    const resampler = new Resampler(16000, 16000);
    const out = resampler.push(signal);
    expect(out).toEqual(signal);
    expect(out.buffer).not.toBe(signal.buffer);
    expect(resampler.flush().length).toBe(0);
    expect(resampler.delayMs).toBe(0);
  });

  it("begins afresh after a flush", () => {
    const resampler = new Resampler(22050, 24000);
    const signal = noise(500);
    const first = concatPcm([resampler.push(signal), resampler.flush()]);
    const second = concatPcm([resampler.push(signal), resampler.flush()]);
    expect(second).toEqual(first);
    expect(resampler.flush().length).toBe(0);
  });

  it("forgets a sample that is not a number once the kernel has passed it", () => {
    const signal = noise(1000);
    signal[300] = Number.NaN;
    const out = resample(signal, 16000, 24000);
    const bad = [...out.keys()].filter((i) => Number.isNaN(out[i]!));
    expect(bad.length).toBeGreaterThan(0);
    expect(bad[0]!).toBeGreaterThanOrEqual(450 - 60);
    expect(bad.at(-1)!).toBeLessThanOrEqual(450 + 60);
  });

  it("takes odd ratios and refuses rates that are not positive whole numbers", () => {
    expect(resample(noise(480), 48000, 44099).length).toBe(Math.ceil((480 * 44099) / 48000));
    expect(() => new Resampler(0, 16000)).toThrow("sample rates");
    expect(() => new Resampler(16000, Number.NaN)).toThrow("sample rates");
    expect(() => new Resampler(16000.5, 8000)).toThrow("sample rates");
  });
});
