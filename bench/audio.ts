/**
 * What the work on samples and text costs, on one core, whatever else runs: processor time, not wall time.
 *
 *     npx tsx bench/audio.ts
 *
 * Prints JSON: for audio, how many times faster than real time; for text, microseconds.
 */
import { logMel, MelStream } from "../src/audio/mel.ts";
import { Resampler, resample } from "../src/audio/resample.ts";
import { whisperMel } from "../src/audio/whisper-mel.ts";
import { Chunker } from "../src/text/chunker.ts";
import { speakable } from "../src/text/speakable.ts";

const SECONDS = 8;
const RATES: readonly (readonly [number, number])[] = [
  [24_000, 16_000],
  [48_000, 16_000],
  [8_000, 24_000],
  [22_050, 24_000],
  [24_000, 48_000],
  [22_050, 48_000],
  [44_100, 16_000],
];
const MEL = {
  hz: 16_000,
  fftSamples: 512,
  windowSamples: 400,
  hopSamples: 160,
  bins: 128,
  preemphasis: 0.97,
  guard: 2 ** -24,
};
const SENTENCE =
  "The distance from Earth to the **Moon** is 384,400 km (238,855 mi), and light takes 1.28 s to cover it, e.g. at night. ";

/** Milliseconds of processor time for one run, after two to warm up. */
function costMs(run: () => void, runs: number): number {
  run();
  run();
  const before = process.cpuUsage();
  for (let i = 0; i < runs; i++) run();
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000 / runs;
}

function signal(hz: number): Float32Array {
  return Float32Array.from({ length: SECONDS * hz }, (_, i) => 0.3 * Math.sin(((i * i) / hz) * 0.1));
}

function inChunks(pcm: Float32Array, samples: number, take: (chunk: Float32Array) => void): void {
  for (let at = 0; at + samples <= pcm.length; at += samples) take(pcm.subarray(at, at + samples));
}

const timesRealTime = (ms: number): number => Math.round((1000 * SECONDS) / ms);

const resampling = Object.fromEntries(
  RATES.map(([inputHz, outputHz]) => {
    const pcm = signal(inputHz);
    const whole = costMs(() => resample(pcm, inputHz, outputHz), 5);
    const resampler = new Resampler(inputHz, outputHz);
    const streamed = costMs(() => inChunks(pcm, inputHz / 50, (chunk) => resampler.push(chunk)), 5);
    const delayMs = Number(resampler.delayMs.toFixed(2));
    return [`${inputHz}-${outputHz}`, { whole: timesRealTime(whole), chunks20Ms: timesRealTime(streamed), delayMs }];
  }),
);

const heard = signal(16_000);
const answer = SENTENCE.repeat(50);
const chunk = (): void => {
  const chunker = new Chunker();
  for (let at = 0; at < answer.length; at += 4) chunker.push(answer.slice(at, at + 4));
  chunker.finish();
};
const report = {
  resampling,
  logMel: timesRealTime(costMs(() => logMel(heard, MEL), 10)),
  logMelFrames80Ms: timesRealTime(
    costMs(() => {
      const stream = new MelStream(MEL, 1280);
      inChunks(heard, 1280, (frame) => stream.push(frame));
    }, 10),
  ),
  whisperMelTurnMs: Number(costMs(() => whisperMel(heard), 10).toFixed(2)),
  speakableSentenceUs: Math.round(1000 * costMs(() => speakable(SENTENCE), 500)),
  chunkerSentenceUs: Math.round((1000 * costMs(chunk, 5)) / 50),
};
console.log(JSON.stringify(report, null, 2));
