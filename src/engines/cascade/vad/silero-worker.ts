/**
 * The process that runs Silero VAD v5. It keeps nothing between calls: a session's state travels with its frames, so a
 * restart loses none.
 */
import { Runtime as OnnxRuntime, tensor } from "../../../onnx/runtime.ts";
import type { Method, Runtime } from "../../../workers/runtime.ts";

/** Samples before a frame that the model sees again. */
const CONTEXT_SAMPLES = 64;
const FRAME_SAMPLES = 512;
/** Recurrent state, [2, 1, 128]. */
const STATE_SIZE = 256;
const HZ = 16_000n;

export interface SileroState {
  readonly recurrent: Float32Array;
  readonly context: Float32Array;
}

export type SileroTable = {
  /** `frames`: [n * 512] at 16 kHz; a null state is that of a new stream. */
  readonly push: Method<
    { frames: Float32Array; state: SileroState | null },
    { probabilities: Float32Array; state: SileroState }
  >;
};

export async function load({ path }: { readonly path: string }): Promise<Runtime<SileroTable>> {
  const graph = await new OnnxRuntime({ threads: 1 }).loadFile("silero-vad", path);
  const hz = tensor("i64", [], BigInt64Array.of(HZ));

  const push: Runtime<SileroTable>["push"] = async ({ frames, state }) => {
    let recurrent = state?.recurrent ?? new Float32Array(STATE_SIZE);
    const input = new Float32Array(CONTEXT_SAMPLES + FRAME_SAMPLES);
    input.set(state?.context ?? new Float32Array(CONTEXT_SAMPLES), FRAME_SAMPLES);
    const probabilities = new Float32Array(frames.length / FRAME_SAMPLES);
    for (let i = 0; i < probabilities.length; i++) {
      input.copyWithin(0, FRAME_SAMPLES);
      input.set(frames.subarray(i * FRAME_SAMPLES, (i + 1) * FRAME_SAMPLES), CONTEXT_SAMPLES);
      const { output, stateN } = await graph.run({
        input: tensor("f32", [1, input.length], input),
        state: tensor("f32", [2, 1, STATE_SIZE / 2], recurrent),
        sr: hz,
      });
      probabilities[i] = Number(output?.data[0] ?? 0);
      recurrent = stateN?.data as Float32Array;
    }
    return { probabilities, state: { recurrent: recurrent.slice(), context: input.slice(FRAME_SAMPLES) } };
  };
  const abort = new AbortController();
  await push({ frames: new Float32Array(4 * FRAME_SAMPLES), state: null }, { signal: abort.signal, emit: () => {} });
  return { push };
}
