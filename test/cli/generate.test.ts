import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav, writeWav } from "../../src/audio/wav.ts";
import type { CliContext, CliOutput } from "../../src/cli/context.ts";
import { runGenerate } from "../../src/cli/generate.ts";
import { goldenFloats, goldenIds, largestDifference, readGolden } from "../support/golden.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";

const QUESTION = `${FIXTURES}/audio/question.wav`;
const MODEL = checkpointDirectory("tiny-f32");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "antiphon-generate-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const path = (name: string): string => join(folder, name);

class Text implements CliOutput {
  readonly isTty = false;
  readonly columns = 80;
  text = "";
  write(text: string): void {
    this.text += text;
  }
}

async function generate(...argv: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new Text(), new Text()];
  const context: CliContext = {
    stdout,
    stderr,
    color: false,
    models: { cacheDir: path("cache"), offline: true, hfToken: null, hfEndpoint: "http://127.0.0.1:9" },
    signal: new AbortController().signal,
  };
  return { status: await runGenerate(argv, context), stdout: stdout.text, stderr: stderr.text };
}

describe("a recorded question", () => {
  test("is heard and answered as the reference does, on paper and as sound", async () => {
    const reference = `${FIXTURES}/tiny-f32/reference`;
    const json = JSON.parse(readFileSync(`${reference}/offline.json`, "utf8"));
    const golden = readGolden(`${reference}/offline.safetensors`);
    const result = await generate(
      ...["-m", MODEL, "--audio", QUESTION, "--output-audio", path("answer.wav"), "--json", path("answer.json")],
      ...["-p", json.prompt, "--extra-decoding-seconds", String(json.extra_decoding_seconds), "-n", "20"],
    );
    expect(result.status).toBe(0);
    expect(result.stdout).toContain(`[user] ${json.user_transcript}\n`);
    expect(result.stdout).toContain("[function] ");
    expect(result.stderr).toContain("-n is ignored");
    expect(result.stderr).toMatch(/100 % {2}\d+ of \d+ frames/);

    const report = JSON.parse(readFileSync(path("answer.json"), "utf8"));
    expect(report.text).toBe(json.text);
    expect(report.user_transcript).toBe(json.user_transcript);
    expect(report.function_text).toBe(json.function_text);
    expect(report.text_tokens).toEqual(goldenIds(golden, "text_tokens"));
    expect(report.function_tokens).toEqual(goldenIds(golden, "function_tokens"));
    expect(report.audio_codes.flat()).toEqual(goldenIds(golden, "audio_codes"));
    expect(report.audio_codes).toHaveLength(json.frames);
    expect(report.sample_rate).toBe(22_050);
    for (const stage of ["load", "perception", "rnnt", "language", "speech", "codec", "total"]) {
      expect(report.stage_ms[stage]).toBeGreaterThan(0);
    }

    const { format, samples } = readWav(readFileSync(path("answer.wav")));
    expect(format).toEqual({ hz: 22_050, channels: 1, encoding: "pcm", bitsPerSample: 16 });
    // Half a step of 16 bits, and the bound of the audio itself.
    expect(largestDifference(samples, goldenFloats(golden, "audio"))).toBeLessThan(0.5 / 32768 + 1e-4);
  });
});

describe("refused, with a reason and no work done", () => {
  const refused: [string, () => string[], string][] = [
    ["a picture", () => ["-m", MODEL, "--audio", QUESTION, "--image", "x.png"], "--image is refused"],
    ["a film", () => ["-m", MODEL, "--audio", QUESTION, "--video", "x.mp4"], "--video is refused"],
    ["a chat", () => ["-m", MODEL, "-p", "hello"], "it answers recordings: antiphon generate -m MODEL --audio"],
    ["no model", () => ["--audio", QUESTION], "-m DIRECTORY or -m OWNER/NAME"],
    ["a stray word", () => ["-m", MODEL, QUESTION], "--audio FILE"],
    ["a negative seed", () => ["-m", MODEL, "--audio", QUESTION, "--seed", "-1"], "--seed"],
    [
      "too much silence",
      () => ["-m", MODEL, "--audio", QUESTION, "--extra-decoding-seconds", "601"],
      "--extra-decoding-seconds",
    ],
    ["one frame", () => ["-m", MODEL, "--audio", QUESTION, "--max-frames", "1"], "--max-frames"],
    ["an unknown precision", () => ["-m", MODEL, "--audio", QUESTION, "--precision", "fats"], "fast"],
    ["no such model", () => ["-m", "/nowhere", "--audio", QUESTION], "there is no directory /nowhere"],
    ["a hub id without a network", () => ["-m", "owner/name", "--audio", QUESTION], "owner/name"],
    ["a .nemo archive", () => ["-m", existing("model.nemo"), "--audio", QUESTION], "a .nemo archive is not read"],
    ["a folder that is no checkpoint", () => ["-m", FIXTURES, "--audio", QUESTION], "model.safetensors"],
    ["no such recording", () => ["-m", MODEL, "--audio", "/nowhere.wav"], "/nowhere.wav: cannot be read (ENOENT)"],
    ["an empty recording", () => ["-m", MODEL, "--audio", existing("empty.wav", "")], "the file is empty"],
    [
      "a recording without samples",
      () => ["-m", MODEL, "--audio", existing("none.wav", writeWav(new Float32Array(0), 8000))],
      "no samples",
    ],
    [
      "a recording cut short",
      () => ["-m", MODEL, "--audio", existing("cut.wav", readFileSync(QUESTION).subarray(0, 999))],
      "cut off",
    ],
    [
      "a recording of 21 minutes",
      () => ["-m", MODEL, "--audio", existing("long.wav", writeWav(new Float32Array(1260 * 4), 4))],
      "longer than 1200 s",
    ],
    [
      "a place that cannot be written",
      () => ["-m", MODEL, "--audio", QUESTION, "--output-audio", "/nowhere/answer.wav"],
      "/nowhere/answer.wav cannot be written",
    ],
    // Each of these was found out after the work: the answer was lost, or a file of the user's.
    [
      "a folder to write to",
      () => ["-m", MODEL, "--audio", QUESTION, "--output-audio", folder],
      "cannot be written (it is a folder)",
    ],
    [
      "a file as a folder",
      () => ["-m", MODEL, "--audio", QUESTION, "--json", join(existing("file.txt"), "answer.json")],
      "cannot be written (ENOTDIR)",
    ],
    [
      "one file for two answers",
      () => ["-m", MODEL, "--audio", QUESTION, "--output-audio", path("both"), "--json", join(folder, ".", "both")],
      "--json and --output-audio are the same file",
    ],
    [
      "the question overwritten by its answer",
      () => {
        const question = existing("question.wav", readFileSync(QUESTION));
        return ["-m", MODEL, "--audio", question, "--output-audio", question];
      },
      "--output-audio and --audio are the same file",
    ],
  ];
  test.each(refused)("%s", async (_, argv, reason) => {
    await expect(generate(...argv())).rejects.toThrow(reason);
  });

  function existing(name: string, content: string | Uint8Array = "x"): string {
    writeFileSync(path(name), content);
    return path(name);
  }
});

test("help names every option", async () => {
  const { status, stdout } = await generate("--help");
  expect(status).toBe(0);
  for (const option of ["-m, --model", "-p, --prompt", "--output-audio", "--seed", "--max-frames", "--precision"]) {
    expect(stdout).toContain(option);
  }
});
