import { expect, test } from "vitest";
import { VoiceChatEngine } from "../../../src/engines/voicechat/engine.ts";
import type { EngineMethods } from "../../../src/engines/voicechat/engine-worker.ts";
import { silentLog } from "../../../src/util/log.ts";
import { LocalWorker } from "../../../src/workers/local.ts";
import type { Runtime } from "../../../src/workers/runtime.ts";

// A peer left in the instant in which the model process had opened its stream, and before the answer arrived here: nobody
// told the process to close it, and it kept the stream's state for good.
test("a stream whose opening was given up is closed in the model process all the same", async () => {
  const open = new Set<string>();
  const abort = new AbortController();
  const runtime: Pick<Runtime<EngineMethods>, "open" | "close"> = {
    open: async ({ streamId }) => {
      open.add(streamId);
      abort.abort(new Error("the peer is gone"));
      return new Promise(() => {});
    },
    close: async ({ streamId }) => {
      open.delete(streamId);
      return null;
    },
  };
  const worker = new LocalWorker<EngineMethods>(runtime as Runtime<EngineMethods>);
  const facts = { inputHz: 16_000, outputHz: 22_050, frameSamples: 1280 };
  const engine = new VoiceChatEngine(worker, facts, { directory: "/checkpoint", threads: 1, log: silentLog });
  const settings = {
    turnDetection: { type: "none" },
    transcription: null,
    systemPrompt: null,
    seed: 0,
    maxStreamingSeconds: null,
  } as const;
  await expect(engine.open(settings, abort.signal)).rejects.toThrow("the peer is gone");
  expect(open).toEqual(new Set());
});
