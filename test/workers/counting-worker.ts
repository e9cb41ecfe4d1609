/** A worker module for tests: echoes, counts, waits, dies on request. */
import { EngineError } from "../../src/errors.ts";
import type { Method, Runtime } from "../../src/workers/runtime.ts";

export type CountingTable = {
  readonly scale: Method<{ pcm: Float32Array; gain: number }, Float32Array>;
  readonly count: Method<{ upTo: number }, number, number>;
  /** Never answers; what becomes of it shows in `aborted`. */
  readonly hang: Method<null, null>;
  readonly aborted: Method<null, number>;
  readonly fail: Method<{ ours: boolean }, null>;
  readonly die: Method<null, null>;
  readonly print: Method<{ lines: number }, null>;
  readonly pid: Method<null, number>;
};

export interface CountingOptions {
  readonly loadError?: string;
}

export async function load(options: CountingOptions): Promise<Runtime<CountingTable>> {
  if (options.loadError !== undefined) throw new Error(options.loadError);
  let aborted = 0;
  return {
    scale: async ({ pcm, gain }) => pcm.map((sample) => sample * gain),
    count: async ({ upTo }, { emit }) => {
      for (let i = 1; i <= upTo; i++) emit(i);
      return upTo;
    },
    hang: (_, { signal }) =>
      new Promise(() => {
        signal.addEventListener("abort", () => {
          aborted += 1;
        });
      }),
    aborted: async () => aborted,
    fail: async ({ ours }) => {
      if (ours) throw new EngineError("stt", "no such voice", { details: { voice: 3 }, retryable: true });
      throw new Error("native trouble");
    },
    die: async () => {
      process.kill(process.pid, "SIGKILL");
      return null;
    },
    print: async ({ lines }) => {
      for (let i = 0; i < lines; i++) process.stderr.write(`line ${i} ${"x".repeat(1000)}\n`);
      return null;
    },
    pid: async () => process.pid,
  };
}
