import fc from "fast-check";
import { expect, test } from "vitest";
import { logMel, type MelSettings, MelStream } from "../../src/audio/mel.ts";
import { goldenFloats, largestDifference, readGolden } from "../support/golden.ts";

const SETTINGS: MelSettings = {
  hz: 16_000,
  fftSamples: 512,
  windowSamples: 400,
  hopSamples: 160,
  bins: 128,
  preemphasis: 0.97,
  guard: 2 ** -24,
};
const REFERENCE = new URL("../fixtures/voicechat/tiny-f32/reference/networks.safetensors", import.meta.url).pathname;

test("a recording has the reference's energies, whole and streamed", () => {
  const golden = readGolden(REFERENCE);
  const waveform = goldenFloats(golden, "waveform");
  // The reference transforms in float32: a bin of energy 1e-7 beside one of 1 is off by 8e-5 there.
  expect(largestDifference(logMel(waveform, SETTINGS), goldenFloats(golden, "mel"))).toBeLessThan(1e-4);
  const stream = new MelStream(SETTINGS, 1280);
  const counts: number[] = [];
  const frames: number[] = [];
  for (let at = 0; at + 1280 <= waveform.length; at += 1280) {
    const added = stream.push(waveform.subarray(at, at + 1280));
    counts.push(added.length / SETTINGS.bins);
    frames.push(...added);
  }
  expect(counts.slice(0, 3)).toEqual([1, 8, 8]);
  expect(largestDifference(frames, goldenFloats(golden, "stream_mel"))).toBeLessThan(1e-4);
});

test("however a signal is cut, the frames are those of the whole", () => {
  fc.assert(
    fc.property(
      fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: 600, maxLength: 3000 }),
      fc.array(fc.nat(700), { maxLength: 12 }),
      fc.integer({ min: 256, max: 1400 }),
      (samples, cuts, lookaheadSamples) => {
        const signal = Float32Array.from(samples);
        const stream = new MelStream(SETTINGS, lookaheadSamples);
        const frames: number[] = [];
        let at = 0;
        for (const size of [...cuts, signal.length]) {
          frames.push(...stream.push(signal.subarray(at, at + size)));
          at += size;
        }
        frames.push(...stream.finish());
        expect(frames).toEqual([...logMel(signal, SETTINGS)]);
      },
    ),
    { numRuns: 25, seed: 7 },
  );
});

test("silence is the guard, and a signal shorter than a window has frames", () => {
  for (const value of logMel(new Float32Array(1600), SETTINGS)) expect(value).toBeCloseTo(Math.log(2 ** -24), 5);
  expect(logMel(new Float32Array(1), SETTINGS).length).toBe(SETTINGS.bins);
  expect(logMel(Float32Array.of(0.5, -0.5, 0.25), SETTINGS).every(Number.isFinite)).toBe(true);
});
