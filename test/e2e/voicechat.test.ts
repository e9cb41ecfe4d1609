/** A checkpoint served, and a recording said to it, as people do both. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { goldenFloats, largestDifference, readGolden } from "../support/golden.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const node = ["--import", "tsx", main];
const reference = `${FIXTURES}/tiny-f32/reference`;

test("serve -m and voicechat-file: the answer is the reference's", async () => {
  const folder = mkdtempSync(join(tmpdir(), "antiphon-voicechat-e2e-"));
  const json = JSON.parse(readFileSync(`${reference}/stream.json`, "utf8"));
  const args = [
    "serve",
    "-m",
    checkpointDirectory("tiny-f32"),
    "--port",
    "0",
    "--api-prefix",
    "/voice",
    "--threads",
    "1",
  ];
  const server = spawn(process.execPath, [...node, ...args], { env: { ...process.env, XDG_DATA_HOME: folder } });
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      server.stdout.on("data", (chunk) => {
        said += chunk;
        const found = /^talk .*voicechat-mic (\S+)$/m.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      server.once("close", () => reject(new Error(said)));
    });
    expect(url).toMatch(/\/voice\/v1\/realtime$/);
    const answer = join(folder, "answer.wav");
    const options = [
      "--system-prompt",
      json.prompt,
      "--seed",
      String(json.seed),
      "--extra-seconds",
      String(json.extra_decoding_seconds),
    ];
    await promisify(execFile)(process.execPath, [
      ...node,
      ...["voicechat-file", url, `${FIXTURES}/audio/question.wav`, answer, ...options],
    ]);
    const { samples } = readWav(readFileSync(answer));
    // The wire scales by 32767: half a step, a step of scale, and the bound of the audio itself.
    const golden = goldenFloats(readGolden(`${reference}/stream.safetensors`), "audio");
    expect(largestDifference(samples, golden)).toBeLessThan(1.5 / 32768 + 1e-4);
    server.kill("SIGTERM");
    expect(await once(server, "close")).toEqual([0, null]);
  } finally {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
});
