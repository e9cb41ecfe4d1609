import { expect, test } from "vitest";
import type { VoiceChatConfig } from "../../../src/engines/voicechat/config.ts";
import { readConfig } from "../../../src/engines/voicechat/config-schema.ts";
import { VoiceChatEngine } from "../../../src/engines/voicechat/engine.ts";
import type { EngineMethods } from "../../../src/engines/voicechat/engine-worker.ts";
import { sessionBytes } from "../../../src/engines/voicechat/session-memory.ts";
import { silentLog } from "../../../src/util/log.ts";
import { LocalWorker } from "../../../src/workers/local.ts";
import type { Runtime } from "../../../src/workers/runtime.ts";
import { checkpointDirectory } from "../../support/voicechat.ts";

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
  const options = { directory: "/checkpoint", threads: 1, sessionSeconds: 600, log: silentLog };
  const engine = new VoiceChatEngine(worker, facts, options);
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

test("more sessions than memory holds are refused with how many it does hold", async () => {
  const asked = { directory: checkpointDirectory("tiny-f32"), threads: 1, sessionSeconds: 600, log: silentLog };
  const refused = await VoiceChatEngine.load({ ...asked, sessionsMax: 10_000_000 }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "config_invalid" });
  const [, cost, free, fitting] =
    /^--max-sessions 10000000: a session of 600 s may come to hold (\S+) GB, and (\S+) GB are free beside the model; ask for at most (\d+)$/.exec(
      (refused as Error).message,
    ) ?? [];
  expect(Number(fitting)).toBeGreaterThan(0);
  expect(Number(fitting) * Number(cost)).toBeLessThan(1.02 * Number(free));
});

test("a session of the published size gathers half a megabyte with each position", () => {
  const config = readConfig(checkpointDirectory("tiny-f32"));
  const published: VoiceChatConfig = {
    ...config,
    textConfig: {
      ...config.textConfig,
      ...{ numKeyValueHeads: 8, headDim: 128, mambaNumHeads: 128, mambaHeadDim: 80, ssmStateSize: 128, nGroups: 8 },
      layers: [...Array<"M">(27).fill("M"), ...Array<"*">(4).fill("*"), ...Array<"-">(25).fill("-")],
    },
    ttsConfig: {
      ...config.ttsConfig,
      ...{ numHiddenLayers: 28, numKeyValueHeads: 16, headDim: 72, slidingWindow: 7500, slidingWindowPattern: 6 },
    },
  };
  const tenMinutes = sessionBytes(published, 600);
  // 4 x 2 x 8 x 128 floats of the language model, 28 x 2 x 2 x 16 x 72 of the voice.
  expect((tenMinutes - sessionBytes(published, 300)) / 3750).toBe(4 * (8192 + 129_024));
  expect(tenMinutes).toBeGreaterThan(4.1e9);
});
