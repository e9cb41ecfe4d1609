import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EngineError } from "../../src/errors.ts";
import { createLog, silentLog } from "../../src/util/log.ts";
import { WorkerHost, type WorkerLimits } from "../../src/workers/host.ts";
import { LocalWorker } from "../../src/workers/local.ts";
import type { WorkerClient } from "../../src/workers/runtime.ts";
import { type CountingOptions, type CountingTable, load } from "./counting-worker.ts";

const module = new URL("./counting-worker.ts", import.meta.url);

function start(
  options: CountingOptions = {},
  limits: Partial<WorkerLimits> = {},
  log = silentLog,
): Promise<WorkerHost<CountingTable>> {
  return WorkerHost.start({ name: "counting", stage: "stt", module, options, log, limits });
}

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
};

describe.each(["process", "local"])("a worker (%s)", (kind) => {
  let worker: WorkerClient<CountingTable>;
  beforeAll(async () => {
    worker = kind === "process" ? await start() : new LocalWorker(await load({}));
  });
  afterAll(() => worker[Symbol.asyncDispose]());

  it("takes and returns PCM", async () => {
    const pcm = Float32Array.from({ length: 40_000 }, (_, i) => Math.sin(i));
    const scaled = await worker.call("scale", { pcm: pcm.subarray(100, 30_100), gain: 2 });
    expect(scaled).toBeInstanceOf(Float32Array);
    expect(scaled.length).toBe(30_000);
    expect(scaled[7]).toBeCloseTo(2 * (pcm[107] ?? 0), 6);
  });

  it("streams partial results in order before the result", async () => {
    const parts: number[] = [];
    const total = await worker.call("count", { upTo: 5 }, { onPart: (part) => parts.push(part) });
    expect(total).toBe(5);
    expect(parts).toEqual([1, 2, 3, 4, 5]);
  });

  it("rejects at once when the caller aborts, and tells the method", async () => {
    const before = await worker.call("aborted", null);
    const abort = new AbortController();
    const call = worker.call("hang", null, { signal: abort.signal });
    abort.abort(new Error("changed my mind"));
    await expect(call).rejects.toThrow("changed my mind");
    expect(await worker.call("aborted", null)).toBe(before + 1);
  });

  it("refuses a call whose signal has already aborted", async () => {
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(worker.call("count", { upTo: 1 }, { signal })).rejects.toThrow("too late");
  });
});

describe("errors of a worker", () => {
  let worker: WorkerHost<CountingTable>;
  beforeAll(async () => {
    worker = await start();
  });
  afterAll(() => worker[Symbol.asyncDispose]());

  it("keep code, message, details and stage across the process", async () => {
    const error = await worker.call("fail", { ours: true }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ code: "stt_failed", message: "no such voice", retryable: true });
    expect((error as EngineError).details).toEqual({ voice: 3 });
  });

  it("become a failure of the stage where they are not ours", async () => {
    const error = await worker.call("fail", { ours: false }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "stt_failed", stage: "stt", message: "native trouble" });
  });

  it("reject the start when the model does not load", async () => {
    await expect(start({ loadError: "weights are missing" })).rejects.toThrow("weights are missing");
  });
});

describe("a worker that dies", () => {
  it("fails the calls in flight with worker_died, and serves the next call from a new process", async () => {
    await using worker = await start({}, { backoffMs: 1 });
    const first = await worker.call("pid", null);
    const hanging = worker.call("hang", null).catch((e: unknown) => e);
    process.kill(first, "SIGKILL");
    expect(await hanging).toMatchObject({ code: "worker_died", stage: "stt", retryable: true });
    const second = await worker.call("pid", null);
    expect(second).not.toBe(first);
    expect(worker.pid).toBe(second);
  });

  it("gives up waiting after the limit", async () => {
    await using worker = await start({}, { backoffMs: 60_000, backoffMaxMs: 60_000, waitMs: 1 });
    await worker.call("die", null).catch(() => {});
    await until(() => worker.pid === null);
    await expect(worker.call("pid", null)).rejects.toMatchObject({ code: "worker_died" });
  });

  it("lets a waiting caller go when it aborts", async () => {
    await using worker = await start({}, { backoffMs: 60_000, backoffMaxMs: 60_000 });
    await worker.call("die", null).catch(() => {});
    await until(() => worker.pid === null);
    const abort = new AbortController();
    const call = worker.call("pid", null, { signal: abort.signal });
    abort.abort(new Error("no longer wanted"));
    await expect(call).rejects.toThrow("no longer wanted");
  });
});

describe("limits of a worker", () => {
  it("refuse more calls than fit", async () => {
    await using worker = await start({}, { callsMax: 2 });
    const hanging = [worker.call("hang", null), worker.call("hang", null)].map((call) => call.catch(() => {}));
    await expect(worker.call("pid", null)).rejects.toThrow("too many calls");
    await worker[Symbol.asyncDispose]();
    await Promise.all(hanging);
  });

  it("keep what a child prints short", async () => {
    const lines: string[] = [];
    await using worker = await start(
      {},
      {},
      createLog("info", (line) => lines.push(line)),
    );
    await worker.call("print", { lines: 3_000 });
    await until(() => lines.some((line) => line.includes("not logged")));
    expect(lines.length).toBeLessThanOrEqual(1_000);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(800);
  });
});

describe("the end of a worker", () => {
  it("comes with its host's disposal, and survives an interrupt of the whole group", async () => {
    const worker = await start();
    const pid = await worker.call("pid", null);
    process.kill(pid, "SIGINT");
    process.kill(pid, "SIGTERM");
    expect(await worker.call("pid", null)).toBe(pid);
    await worker[Symbol.asyncDispose]();
    await worker[Symbol.asyncDispose]();
    expect(alive(pid)).toBe(false);
  });

  // A server that was killed left its model processes behind, each with its memory.
  it("comes with the death of its parent", async () => {
    const script = `
      const { WorkerHost } = await import(${JSON.stringify(new URL("../../src/workers/host.ts", import.meta.url).href)});
      const { silentLog } = await import(${JSON.stringify(new URL("../../src/util/log.ts", import.meta.url).href)});
      const module = new URL(${JSON.stringify(module.href)});
      const worker = await WorkerHost.start({ name: "x", stage: "stt", module, options: {}, log: silentLog });
      console.log(worker.pid);
      setInterval(() => {}, 1000);`;
    const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const parent = spawn(process.execPath, ["--import", loader, "--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const pid = await new Promise<number>((resolve) => parent.stdout.once("data", (data) => resolve(Number(data))));
    expect(alive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await until(() => !alive(pid));
  });
});
