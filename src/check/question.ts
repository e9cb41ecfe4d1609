/** The recorded question that the checker says. */
import { readFileSync } from "node:fs";
import { resample } from "../audio/resample.ts";
import { readWav } from "../audio/wav.ts";

export interface Question {
  /** Mono f32 at 24,000 Hz; speech from the first sample to the last. */
  readonly pcm: Float32Array;
  readonly ms: number;
}

/** The protocol's default rate. */
export const QUESTION_HZ = 24_000;

/** "What is the capital of France?" From `src/check` and from `dist/check` alike. */
const FILE = new URL("../../assets/question.wav", import.meta.url);

export function readQuestion(): Question {
  const { format, samples } = readWav(readFileSync(FILE));
  const pcm = resample(samples, format.hz, QUESTION_HZ);
  return { pcm, ms: (pcm.length * 1000) / QUESTION_HZ };
}
