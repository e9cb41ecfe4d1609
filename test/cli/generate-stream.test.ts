import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

  test("what belongs to a live run is refused without it", async () => {
    const outcome = await generate("--audio", QUESTION, "--profile");
    expect(outcome).toMatchObject({ status: 2 });
    expect(outcome.stderr).toContain("--profile belongs to a live run: add --stream");
  });
});
