/** A checkpoint served, and a recording said to it, as people do both. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { goldenFloats, largestDifference, readGolden } from "../support/golden.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";
import { modelProcesses } from "../support/voicechat-endings.ts";
import { append, frames, Peer } from "../support/voicechat-server.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const node = ["--import", "tsx", main];
const reference = `${FIXTURES}/tiny-f32/reference`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "antiphon-voicechat-e2e-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Serving {
  readonly process: ChildProcess;
  readonly url: string;
  /** Standard error so far. */
  said(): string;
}

/** Resolves when it says where to talk. */
async function serve(...options: string[]): Promise<Serving> {
  const args = ["serve", "-m", checkpointDirectory("tiny-f32"), "--port", "0", "--threads", "1", ...options];
  const child = spawn(process.execPath, [...node, ...args], { env: { ...process.env, XDG_DATA_HOME: folder } });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const url = await new Promise<string>((resolve, reject) => {
    let announced = "";
    child.stdout.on("data", (chunk) => {
      announced += chunk;
      const found = /^talk .*voicechat-mic (\S+)$/m.exec(announced)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("close", () => reject(new Error(announced + said)));
  });
  return { process: child, url, said: () => said };
}

test("serve -m and voicechat-file: the answer is the reference's", async () => {
  const json = JSON.parse(readFileSync(`${reference}/stream.json`, "utf8"));
  const server = await serve("--api-prefix", "/voice");
  try {
    expect(server.url).toMatch(/\/voice\/v1\/realtime$/);
    const answer = join(folder, "answer.wav");
    const options = [
      ...["--system-prompt", json.prompt, "--seed", String(json.seed)],
      ...["--extra-seconds", String(json.extra_decoding_seconds)],
    ];
    const args = ["voicechat-file", server.url, `${FIXTURES}/audio/question.wav`, answer, ...options];
    await promisify(execFile)(process.execPath, [...node, ...args]);
    const { samples } = readWav(readFileSync(answer));
    // The wire scales by 32767: half a step, a step of scale, and the bound of the audio itself.
    const golden = goldenFloats(readGolden(`${reference}/stream.safetensors`), "audio");
    expect(largestDifference(samples, golden)).toBeLessThan(1.5 / 32768 + 1e-4);
    server.process.kill("SIGTERM");
    expect(await once(server.process, "close")).toEqual([0, null]);
  } finally {
    server.process.kill("SIGKILL");
  }
});

test.skipIf(!hasPython)(
  "a foreign client hears what it heard from the reference server, and is told when it is over",
  async () => {
    const python = await pythonClient();
    const server = await serve();
    try {
      const heard = join(folder, "wire.jsonl");
      const script = fileURLToPath(new URL("../support/voicechat-wire-client.py", import.meta.url));
      await promisify(execFile)(python, [script, server.url, `${FIXTURES}/audio/question.wav`, heard]);
      const ours = wireEvents(heard);
      expect(ours.at(-1)).toEqual({ dir: "=", type: "close", code: 1000 });
      // The reference's server leaves the close code out.
      expect(ours.slice(0, -1)).toEqual(wireEvents(`${reference}/wire.jsonl`).slice(0, -1));
    } finally {
      server.process.kill("SIGKILL");
    }
  },
  PYTHON_CLIENT_MS,
);

/** What a server said, as the client wrote it down: without ids and names, and of audio its length. */
function wireEvents(file: string): object[] {
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const said = lines.map((line) => JSON.parse(line)).filter(({ dir }) => dir !== ">");
  return said.map(({ event_id, session, ...event }) => {
    if (session !== undefined) return { ...event, session: { ...session, id: "", model: "" } };
    return event.type === "response.audio.delta" ? { ...event, delta: event.delta.length } : event;
  });
}

test("SIGTERM in the middle of a session: 1012 for its peer, 0 for the process, no model left behind", async () => {
  const server = await serve();
  try {
    const peer = await Peer.ready({ url: server.url.replace(/^ws/, "http").replace("/v1/realtime", "") });
    peer.say(append(frames(300)));
    await peer.until("response.audio.delta", 3);
    const models = modelProcesses(server.process.pid);
    expect(models).toHaveLength(1);
    const ended = once(server.process, "close");
    server.process.kill("SIGTERM");
    expect(await peer.closed).toBe(1012);
    expect(peer.of("response.audio.delta").length).toBeLessThan(300);
    expect(await ended).toEqual([0, null]);
    for (const pid of models) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    expect(server.said()).not.toContain("    at ");
  } finally {
    server.process.kill("SIGKILL");
  }
});

// It said that it was loading, and where it would serve, before it said that there was nothing to load.
test.each([
  ["nothere", "there is no directory nothere, and it is no hub id (OWNER/NAME)"],
  [FIXTURES, "model.safetensors"],
])("serve -m %s: what is wrong with the model is the first and only thing that is said", async (model, message) => {
  const run = promisify(execFile)(process.execPath, [...node, "serve", "-m", model, "--port", "0"]);
  const { code, stdout, stderr } = (await run.catch((error) => error)) as {
    code: number;
    stdout: string;
    stderr: string;
  };
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("loading");
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});
