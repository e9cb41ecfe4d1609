/** The model process of `antiphon serve -m`: one checkpoint, and the live streams of all sessions. */
import { EngineError } from "../../errors.ts";
import type { Precision } from "../../onnx/quantized.ts";
import type { Provider } from "../../onnx/runtime.ts";
import type { CallContext, Method, Runtime } from "../../workers/runtime.ts";
import { VoiceChatModel } from "./model.ts";
import { type FrameRuns, RunMeter } from "./profile.ts";
import { sessionBytes } from "./session-memory.ts";
import { type FrameTiming, type StreamOptions, type VoiceChatEvent, VoiceChatStream } from "./stream.ts";

export interface EngineWorkerOptions {
  readonly directory: string;
  readonly precision: Precision;
  readonly provider: Provider;
  /** The machine's cores where absent. */
  readonly threads?: number;
}

/** What a checkpoint says of itself. */
export interface ModelFacts {
  readonly inputHz: number;
  readonly outputHz: number;
  readonly frameSamples: number;
}

export type StreamRequest = Pick<StreamOptions, "systemPrompt" | "seed" | "maxStreamingSeconds">;

export type StreamPart =
  | { readonly type: "event"; readonly event: VoiceChatEvent }
  | { readonly type: "timing"; readonly timing: FrameTiming; readonly runs: FrameRuns };

export type EngineMethods = {
  readonly describe: Method<null, ModelFacts>;
  /** What a session may come to hold by that time. */
  readonly sessionBytes: Method<{ seconds: number }, number>;
  /** Stream ids are the caller's, and are not used twice. */
  readonly open: Method<StreamRequest & { readonly streamId: string }, null>;
  readonly push: Method<{ streamId: string; samples: Float32Array; sampleHz: number }, null, StreamPart>;
  readonly flush: Method<{ streamId: string; padPartial: boolean }, null, StreamPart>;
  readonly cancel: Method<{ streamId: string }, null, StreamPart>;
  /** Forgets the stream. Idempotent. */
  readonly close: Method<{ streamId: string }, null>;
};

interface Live {
  readonly stream: VoiceChatStream;
  /** Where timings go: to the call that runs. */
  report: (timing: FrameTiming) => void;
}

export async function load(options: EngineWorkerOptions): Promise<Runtime<EngineMethods>> {
  const meter = new RunMeter();
  const model = await VoiceChatModel.load(options.directory, { ...options, onRun: meter.record });
  await warm(model);
  const streams = new Map<string, Live>();
  const find = (streamId: string): Live => {
    const live = streams.get(streamId);
    if (live === undefined) {
      const message = "the model's process died and was started again, and this session with it; connect anew";
      throw new EngineError("engine", message, { code: "worker_died" });
    }
    return live;
  };
  const within = async (
    streamId: string,
    { emit }: CallContext<StreamPart>,
    run: (stream: VoiceChatStream, onEvent: (event: VoiceChatEvent) => void) => Promise<unknown>,
  ): Promise<null> => {
    const live = find(streamId);
    live.report = (timing) => emit({ type: "timing", timing, runs: meter.take() });
    meter.take();
    await run(live.stream, (event) => emit({ type: "event", event }));
    return null;
  };
  return {
    describe: async () => ({
      inputHz: model.config.inputSampleRate,
      outputHz: model.config.outputSampleRate,
      frameSamples: model.inputFrameSamples,
    }),
    sessionBytes: async ({ seconds }) => sessionBytes(model.config, seconds),
    open: async ({ streamId, ...request }, { signal }) => {
      const onFrame = (timing: FrameTiming): void => streams.get(streamId)?.report(timing);
      const stream = await VoiceChatStream.open(model, { ...request, signal, onFrame });
      signal.throwIfAborted();
      streams.set(streamId, { stream, report: () => {} });
      return null;
    },
    push: ({ streamId, samples, sampleHz }, context) =>
      within(streamId, context, (stream, onEvent) => stream.push(samples, sampleHz, onEvent)),
    flush: ({ streamId, padPartial }, context) =>
      within(streamId, context, (stream, onEvent) => stream.flush(padPartial, onEvent)),
    cancel: ({ streamId }, context) => within(streamId, context, (stream, onEvent) => stream.cancel(onEvent)),
    close: async ({ streamId }) => {
      streams.delete(streamId);
      return null;
    },
  };
}

/** Runs each network once: the first frame of the first session then is as fast as any. */
async function warm(model: VoiceChatModel): Promise<void> {
  const stream = await VoiceChatStream.open(model);
  await stream.push(new Float32Array(2 * stream.frameSamples), stream.inputHz);
}
