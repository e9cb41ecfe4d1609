/** The process that holds a voice. */
import type { Method, Runtime } from "../../../workers/runtime.ts";
import { Voice, type VoiceOptions } from "../sherpa.ts";

export type SherpaTtsTable = {
  readonly describe: Method<null, { hz: number; speakers: number }>;
  readonly speak: Method<{ text: string; speaker: number; speed: number }, Float32Array>;
};

const WARM_CLAUSES = ["Hello.", "Hello there, how are you?", "This is a longer sentence, so that all of it is warm."];

export async function load(options: VoiceOptions): Promise<Runtime<SherpaTtsTable>> {
  const voice = await Voice.load(options);
  for (const clause of WARM_CLAUSES) await voice.speak(clause, 0, 1, () => false);
  return {
    describe: async () => ({ hz: voice.hz, speakers: voice.speakers }),
    speak: async ({ text, speaker, speed }, { signal }) => voice.speak(text, speaker, speed, () => signal.aborted),
  };
}
