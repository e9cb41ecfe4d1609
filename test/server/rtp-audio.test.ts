import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Resampler } from "../../src/audio/resample.ts";
import { RtpAudio } from "../../src/server/rtp-audio.ts";
import { ManualClock } from "../../src/util/clock.ts";

/** A line whose pieces are kept, with the time at which each was sent. */
function line() {
  const clock = new ManualClock();
  const pieces: { atMs: number; samples: Int16Array }[] = [];
  const audio = new RtpAudio(clock, (samples) => pieces.push({ atMs: clock.nowMs(), samples }));
  return { clock, pieces, audio, sent: () => pieces.flatMap((piece) => [...piece.samples]) };
}

const sine = (samples: number, hz: number): Float32Array =>
  Float32Array.from({ length: samples }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / hz));

describe("RtpAudio", () => {
  it("sends silence in 10 ms pieces, two every 20 ms, when there is nothing to say", () => {
    const { clock, pieces, audio, sent } = line();
    audio.start();
    clock.advance(99);
    expect(pieces.map((piece) => piece.atMs)).toEqual([0, 0, 20, 20, 40, 40, 60, 60, 80, 80]);
    expect(pieces.every((piece) => piece.samples.length === 480)).toBe(true);
    expect(sent().every((sample) => sample === 0)).toBe(true);
    audio.stop();
    expect(clock.pendingCount).toBe(0);
  });

  it("says exactly what the resampler makes of the speech, whatever its chunks", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 8 }),
        fc.constantFrom(8000, 16_000, 22_050, 24_000, 48_000),
        (lengths, hz) => {
          const { clock, audio, sent } = line();
          const speech = sine(
            lengths.reduce((sum, length) => sum + length, 0),
            hz,
          );
          let offset = 0;
          for (const length of lengths) {
            audio.push(speech.subarray(offset, offset + length), hz);
            offset += length;
          }
          audio.start();
          clock.advance((speech.length * 1000) / hz + 100);
          const resampler = new Resampler(hz, 48_000);
          const expected = [...resampler.push(speech), ...resampler.flush()].map((x) => Math.round(x * 32_768));
          const heard = sent();
          const errors = expected.map((sample, i) => Math.abs(heard[i]! - sample));
          expect(errors.reduce((worst, error) => Math.max(worst, error), 0)).toBeLessThanOrEqual(1);
          expect(heard.slice(expected.length).every((sample) => sample === 0)).toBe(true);
          expect(audio.unplayedMs).toBe(0);
          expect(audio.playedMs).toBeCloseTo((expected.length * 1000) / 48_000, 6);
        },
      ),
      { seed: 5, numRuns: 40 },
    );
  });

  it("counts as unplayed what has not been sent, exactly", () => {
    const { clock, audio } = line();
    audio.push(sine(24_000, 24_000), 24_000);
    expect(audio.unplayedMs).toBeCloseTo(1000, 6);
    audio.start();
    clock.advance(199);
    expect(audio.playedMs).toBe(200);
    expect(audio.unplayedMs).toBeCloseTo(800, 0);
  });

  it("is silent within one frame of clear, and without a click", () => {
    const { clock, pieces, audio } = line();
    audio.push(new Float32Array(48_000).fill(0.5), 48_000);
    audio.start();
    clock.advance(110);
    expect(audio.clear()).toBeCloseTo(1000 - 120 - 5, 6);
    const before = pieces.length;
    clock.advance(20);
    const frame = pieces.slice(before).flatMap((piece) => [...piece.samples]);
    const steps = frame.map((sample, i) => Math.abs(sample - (i === 0 ? 16_384 : frame[i - 1]!)));
    expect(Math.max(...steps)).toBeLessThan(100);
    expect(frame.slice(240).every((sample) => sample === 0)).toBe(true);
    expect(audio.unplayedMs).toBe(0);
    // What comes after belongs to the next answer and is spoken whole.
    audio.push(new Float32Array(960).fill(0.25), 48_000);
    clock.advance(20);
    expect(pieces.at(-1)?.samples.every((sample) => sample === 8192)).toBe(true);
  });

  it("does not drift: a timer that is always late leaves the average rate alone", () => {
    const { clock, pieces, audio } = line();
    const late = {
      ...clock,
      nowMs: () => clock.nowMs(),
      schedule: (ms: number, run: () => void) => clock.schedule(ms + 3.7, run),
    };
    const drifting = new RtpAudio(late as typeof clock, (samples) => pieces.push({ atMs: clock.nowMs(), samples }));
    audio.stop();
    drifting.start();
    clock.advance(60_000);
    expect(Math.abs(pieces.length - 6000)).toBeLessThanOrEqual(4);
  });

  it("catches up after a short stall without a burst, and forgets a long one", () => {
    const { pieces } = line();
    let nowMs = 0;
    let tick: (() => void) | null = null;
    const clock = {
      nowMs: () => nowMs,
      unixSeconds: () => 0,
      schedule(_ms: number, run: () => void) {
        tick = run;
        return () => {};
      },
    };
    const audio = new RtpAudio(clock, (samples) => pieces.push({ atMs: nowMs, samples }));
    const at = (ms: number): number => {
      const before = pieces.length;
      nowMs = ms;
      tick?.();
      return (pieces.length - before) / 2;
    };
    audio.start();
    // Frames 20, 40 and 60 are due: two now, the third a little later.
    expect([at(70), at(80), at(90)]).toEqual([2, 2, 0]);
    // Ten seconds of standing still are not repaid: one frame, and on from here.
    expect([at(10_100), at(10_110), at(10_120), at(10_140)]).toEqual([1, 0, 1, 1]);
    expect(audio.lateFrameCount).toBe(500);
  });

  it("says two rates one after the other, each whole", () => {
    const { clock, audio, sent } = line();
    audio.push(new Float32Array(2400).fill(0.5), 24_000);
    audio.push(new Float32Array(1600).fill(0.5), 16_000);
    audio.start();
    clock.advance(400);
    expect(sent().filter((sample) => Math.abs(sample - 16_384) < 200).length).toBeGreaterThan(9000);
    expect(audio.playedMs).toBeCloseTo(200, 0);
  });
});
