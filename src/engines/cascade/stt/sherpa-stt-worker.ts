/** The process that holds a recognizer. */
import type { Method, Runtime } from "../../../workers/runtime.ts";
import { Recognizer, type RecognizerOptions } from "../sherpa.ts";

export type SherpaSttTable = {
  /** `pcm`: mono f32 at 16 kHz. */
  readonly transcribe: Method<{ pcm: Float32Array; language: string | null }, string>;
};

const HZ = 16_000;
const WARM_SECONDS = [1, 3];

export async function load(options: RecognizerOptions): Promise<Runtime<SherpaSttTable>> {
  const recognizer = await Recognizer.load(options);
  // Low noise takes the same path as speech; pure zeros may be cut short.
  for (const seconds of WARM_SECONDS) {
    const noise = Float32Array.from(
      { length: seconds * HZ },
      (_, i) => 0.01 * Math.sin(i * 0.13) * Math.sin(i * 0.0007),
    );
    await recognizer.transcribe(noise, null);
  }
  return { transcribe: async ({ pcm, language }) => recognizer.transcribe(pcm, language) };
}
