import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { goldenFloats, goldenIds, largestDifference, readGolden } from "../support/golden.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";

const run = promisify(execFile);
const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const QUESTION = `${FIXTURES}/audio/question.wav`;
const MODEL = checkpointDirectory("tiny-f32");

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** As a child process, as people run it. */
async function generate(...args: string[]): Promise<Outcome> {
  try {
    const result = await run(process.execPath, ["--import", "tsx", main, "generate", "-m", MODEL, ...args]);
    return { status: 0, ...result };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

/** In a process group of its own, so that signals reach it and its model as from a terminal. */
function start(...args: string[]): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, ["--import", "tsx", main, "generate", "-m", MODEL, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
}
/** The model's process: what a process started, but for the tools of the loader. */
function childrenOf(pid: number): string[] {
  const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return ids.filter((id) => readFileSync(`/proc/${id}/cmdline`, "utf8").includes("entry"));
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "antiphon-generate-stream-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const path = (name: string): string => join(folder, name);
const linesOf = (name: string): Record<string, unknown>[] =>
  readFileSync(path(name), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("generate --stream", () => {
  test("equals the reference's live run, and says what frames took", async () => {
    const reference = `${FIXTURES}/tiny-f32/reference`;
    const json = JSON.parse(readFileSync(`${reference}/stream.json`, "utf8"));
    const golden = readGolden(`${reference}/stream.safetensors`);
    const outcome = await generate(
      ...["--audio", QUESTION, "--stream", "-p", json.prompt, "--seed", String(json.seed)],
      ...["--extra-decoding-seconds", String(json.extra_decoding_seconds), "--output-audio", path("answer.wav")],
      ...["--events", path("events.jsonl"), "--profile-stages", "--profile-frames", path("frames.json")],
      ...["--json", path("answer.json")],
    );
    expect(outcome).toMatchObject({ status: 0 });

    const events = linesOf("events.jsonl");
    const plain = events.map(({ audio_codes, ...event }) => event);
    expect(plain).toEqual(json.events);
    const codes = events.flatMap((event) => (event["audio_codes"] as number[] | undefined) ?? []);
    expect(codes).toEqual(goldenIds(golden, "audio_codes"));
    const { format, samples } = readWav(readFileSync(path("answer.wav")));
    expect(format).toEqual({ hz: 22_050, channels: 1, encoding: "pcm", bitsPerSample: 16 });
    // Half a step of 16 bits, and the bound of the audio itself.
    expect(largestDifference(samples, goldenFloats(golden, "audio"))).toBeLessThan(0.5 / 32768 + 1e-4);

    const last = (kind: string): string => plain.findLast((event) => event["kind"] === kind)?.["text"] as string;
    const report = JSON.parse(readFileSync(path("answer.json"), "utf8"));
    expect(report).toMatchObject({
      text: last("assistant_text_delta"),
      user_transcript: last("user_transcript_delta"),
      function_text: last("function_delta"),
      sample_rate: 22_050,
    });
    expect(outcome.stdout).toContain(`[user] ${last("user_transcript_delta")}\n[function] `);

    const { frames } = JSON.parse(readFileSync(path("frames.json"), "utf8"));
    expect(frames).toHaveLength(report.frames);
    const summary = JSON.parse(outcome.stdout.slice(outcome.stdout.indexOf("\n{") + 1));
    const total = frames.slice(5).map((frame: { total_ms: number }) => frame.total_ms);
    const meanMs = total.reduce((sum: number, ms: number) => sum + ms, 0) / total.length;
    expect(summary).toMatchObject({ frames: total.length, dropped_cold_frames: 5, frame_duration_ms: 80 });
    expect(summary.stages.total.mean_ms).toBeCloseTo(meanMs, 6);
    expect(summary.stages.total.max_ms).toBe(Math.max(...total));
    expect(summary.realtime_factor).toBeCloseTo(meanMs / 80, 6);
    expect(summary.processing_frames_per_second).toBeCloseTo(1000 / meanMs, 6);
    expect(Object.keys(summary.stages)).toEqual(["perception", "rnnt", "language", "tts", "codec", "total"]);
    for (const stage of ["perception.layers", "language.layers", "tts.backbone", "tts.mog_head", "codec.decoder"]) {
      const whole = summary.stages[stage.split(".")[0] as string];
      expect(summary.sub_stages[stage].mean_ms).toBeGreaterThan(0);
      expect(summary.sub_stages[stage].mean_ms).toBeLessThanOrEqual(whole.mean_ms);
    }
  });

  test("a limit ends the session, and what came before it is written", async () => {
    const outcome = await generate(
      ...["--audio", QUESTION, "--stream", "--max-streaming-seconds", "0.24", "--output-audio", path("short.wav")],
      ...["--events", path("short.jsonl"), "--profile"],
    );
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toContain("the stream exceeds its 3 frames of 80 ms");
    expect(readWav(readFileSync(path("short.wav"))).samples).toHaveLength(3 * 1764);
    expect(linesOf("short.jsonl").filter(({ kind }) => kind === "audio")).toHaveLength(3);
    expect(outcome.stdout).toContain('"frames": 0');
  });

  // The first event that could not be written was thrown where nobody catches, and took the process, the audio and the times
  // with it; a file of times that could not be written was called a fault of antiphon itself.
  test.skipIf(process.platform !== "linux")("a full disk: told so, and every other file is written", async () => {
    const common = ["--audio", QUESTION, "--stream", "--extra-decoding-seconds", "0"];
    const events = await generate(...common, "--events", "/dev/full", "--output-audio", path("kept.wav"));
    expect(events.status).toBe(1);
    expect(events.stderr).toMatch(/^antiphon: \/dev\/full could not be written \(ENOSPC\)$/m);
    expect(events.stderr).not.toContain("    at ");
    expect(readWav(readFileSync(path("kept.wav"))).samples).toHaveLength(1764);
    const full = await generate(
      ...[...common, "--max-frames", "3", "--output-audio", "/dev/full", "--profile-frames", "/dev/full"],
      ...["--json", path("kept.json"), "--profile"],
    );
    expect(full.status).toBe(1);
    expect(full.stderr).toContain("antiphon: /dev/full could not be written (ENOSPC)");
    expect(full.stderr).not.toContain("    at ");
    expect(JSON.parse(readFileSync(path("kept.json"), "utf8"))).toMatchObject({ frames: 3 });
    expect(full.stdout).toContain('"dropped_cold_frames": 3');
  });

  // The process ended with the first word that nobody read, and the answer was not written.
  test("a reader that goes away: what was answered is written all the same", async () => {
    const outputs = ["--output-audio", path("unread.wav"), "--json", path("unread.json")];
    const child = start("--audio", QUESTION, "--stream", "--extra-decoding-seconds", "600", ...outputs);
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    await once(child.stdout, "data");
    child.stdout.destroy();
    expect((await once(child, "close"))[0]).toBe(0);
    expect(stderr).not.toContain("    at ");
    const { frames } = JSON.parse(readFileSync(path("unread.json"), "utf8"));
    expect(frames).toBeLessThan(7500);
    expect(readWav(readFileSync(path("unread.wav"))).samples).toHaveLength(frames * 1764);
  });

  test("Ctrl-C: what was answered is written, to every file", async () => {
    const outputs = [
      "--output-audio",
      path("cut.wav"),
      "--events",
      path("cut.jsonl"),
      "--profile-frames",
      path("cut.json"),
    ];
    const child = start("--audio", QUESTION, "--stream", "--extra-decoding-seconds", "600", ...outputs);
    await once(child.stdout, "data");
    process.kill(-(child.pid as number), "SIGINT");
    expect((await once(child, "close"))[0]).toBe(130);
    const frames = linesOf("cut.jsonl").filter(({ kind }) => kind === "audio").length;
    expect(frames).toBeGreaterThan(0);
    expect(frames).toBeLessThan(7500);
    expect(readWav(readFileSync(path("cut.wav"))).samples).toHaveLength(frames * 1764);
    expect(JSON.parse(readFileSync(path("cut.json"), "utf8")).frames).toHaveLength(frames);
  });

  // The model was loaded to its end, which for the published one takes minutes, and then an answer of no length was written
  // over the one from before; or the signal, which the terminal gives to both, made it a death of the model's process.
  test.skipIf(process.platform !== "linux").each(["--stream", "--json"])(
    "Ctrl-C while the model loads ends at once, with nothing written (%s)",
    async (flag) => {
      writeFileSync(path("older.wav"), "kept");
      const more = flag === "--json" ? [flag, path("none.json")] : [flag];
      const child = start("--audio", QUESTION, "--output-audio", path("older.wav"), ...more);
      let stderr = "";
      child.stderr.on("data", (chunk) => (stderr += chunk));
      const models = (): string[] => childrenOf(child.pid as number);
      await expect.poll(models, { interval: 5, timeout: 20_000 }).toHaveLength(1);
      process.kill(-(child.pid as number), "SIGINT");
      expect({ status: (await once(child, "close"))[0], stderr }).toEqual({ status: 130, stderr: "" });
      expect(readFileSync(path("older.wav"), "utf8")).toBe("kept");
    },
  );

  // In a terminal both get the signal; where the model's process, not yet ready for it, was gone before the command had heard
  // of it, the command spoke of a process that had ended, and ended with 1.
  test.skipIf(process.platform !== "linux")("Ctrl-C that the model's process hears first is still Ctrl-C", async () => {
    const child = start("--audio", QUESTION, "--output-audio", path("first.wav"), "--stream");
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const models = (): string[] => childrenOf(child.pid as number);
    await expect.poll(models, { interval: 5, timeout: 20_000 }).toHaveLength(1);
    process.kill(Number(models()[0]), "SIGINT");
    await expect.poll(models, { interval: 5, timeout: 20_000 }).toHaveLength(0);
    process.kill(child.pid as number, "SIGINT");
    expect({ status: (await once(child, "close"))[0], stderr }).toEqual({ status: 130, stderr: "" });
  });

  test("what belongs to a live run is refused without it", async () => {
    const outcome = await generate("--audio", QUESTION, "--profile");
    expect(outcome).toMatchObject({ status: 2 });
    expect(outcome.stderr).toContain("--profile belongs to a live run: add --stream");
  });
});
