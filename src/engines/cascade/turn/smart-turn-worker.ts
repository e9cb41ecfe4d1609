/** The process that runs Smart Turn v3.2: Whisper features of the last eight seconds in, a probability out. */
import { whisperMel } from "../../../audio/whisper-mel.ts";
import { Runtime as OnnxRuntime, tensor } from "../../../onnx/runtime.ts";
import type { Method, Runtime } from "../../../workers/runtime.ts";
import { TURN_SAMPLES } from "./turn.ts";

export type SmartTurnTable = {
  /** `pcm`: mono f32 at 16 kHz, at most 8 s; shorter audio is the end of eight seconds that began in silence. */
  readonly complete: Method<{ pcm: Float32Array }, number>;
};

export async function load({ path }: { readonly path: string }): Promise<Runtime<SmartTurnTable>> {
  const graph = await new OnnxRuntime({ threads: 1 }).loadFile("smart-turn", path);
  const complete = async (pcm: Float32Array): Promise<number> => {
    const samples = new Float32Array(TURN_SAMPLES);
    const kept = pcm.subarray(Math.max(0, pcm.length - TURN_SAMPLES));
    samples.set(kept, TURN_SAMPLES - kept.length);
    const { logits } = await graph.run({ input_features: tensor("f32", [1, 80, 800], whisperMel(samples)) });
    // The graph ends in a sigmoid, whatever the name says.
    return Number(logits?.data[0] ?? 0);
  };
  await complete(new Float32Array(TURN_SAMPLES).map((_, i) => Math.sin(i * 0.05) * 0.1));
  return { complete: ({ pcm }) => complete(pcm) };
}
