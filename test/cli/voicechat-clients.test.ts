import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createNetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { resample } from "../../src/audio/resample.ts";
import { readWav, writeWav } from "../../src/audio/wav.ts";
import type { CliContext, CliOutput } from "../../src/cli/context.ts";
import { DuplexView } from "../../src/cli/duplex-view.ts";
import { runTalk } from "../../src/cli/talk.ts";
import { runVoiceChatFile } from "../../src/cli/voicechat-file.ts";
import { LiveLine } from "../../src/cli/voicechat-mic.ts";
import type { Server } from "../../src/server/server.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { duplexEngine } from "../support/duplex-engine.ts";
import { scriptedServer } from "../support/scripted-server.ts";
import { FIXTURES } from "../support/voicechat.ts";
import { metric, Peer, voiceChatServer } from "../support/voicechat-server.ts";

const QUESTION = `${FIXTURES}/audio/question.wav`;
const reference = JSON.parse(readFileSync(`${FIXTURES}/tiny-f32/reference/stream.json`, "utf8")) as {
  readonly prompt: string;
  readonly seed: number;
  readonly extra_decoding_seconds: number;
  readonly events: readonly { readonly kind: string; readonly text?: string }[];
};
const transcript = reference.events.findLast(({ kind }) => kind === "user_transcript_delta")?.text as string;
const audioFrames = reference.events.filter(({ kind }) => kind === "audio").length;

let server: Server;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "antiphon-voicechat-client-"));
  server = await voiceChatServer({ flags: { apiKey: "secret" } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
const path = (name: string): string => join(folder, name);

class Text implements CliOutput {
  readonly isTty = false;
  readonly columns = 80;
  text = "";
  write(text: string): void {
    this.text += text;
  }
}

function file(...argv: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  return fileUntil(new AbortController().signal, ...argv);
}

async function fileUntil(
  signal: AbortSignal,
  ...argv: string[]
): Promise<{ status: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new Text(), new Text()];
  const context = contextOf(stdout, stderr, signal);
  return { status: await runVoiceChatFile(argv, context), stdout: stdout.text, stderr: stderr.text };
}

function contextOf(stdout: Text, stderr: Text, signal: AbortSignal): CliContext {
  const models = { cacheDir: folder, offline: true, hfToken: null, hfEndpoint: "http://127.0.0.1:9" };
  return { stdout, stderr, color: false, models, signal };
}

describe("voicechat-file", () => {
  const options = [
    ...["--api-key", "secret", "--system-prompt", reference.prompt, "--seed", String(reference.seed)],
    ...["--extra-seconds", String(reference.extra_decoding_seconds)],
  ];

  test("says a recording, prints both sides and writes the answer", async () => {
    const { status, stdout } = await file(server.url, QUESTION, path("answer.wav"), ...options);
    expect(status).toBe(0);
    const { format, samples } = readWav(readFileSync(path("answer.wav")));
    expect(format).toEqual({ hz: 22_050, channels: 1, encoding: "pcm", bitsPerSample: 16 });
    expect(samples).toHaveLength(audioFrames * 1764);
    const heard = stdout.match(/(?<=^\[user\] ).*$/gm) ?? [];
    expect(heard.join("")).toBe(transcript);
    expect(stdout).toMatch(/^\[assistant\] ./m);
  });

  test("takes any WAV: two channels at 44,100 Hz are the same question", async () => {
    const { samples } = readWav(readFileSync(QUESTION));
    const wide = resample(samples, 16_000, 44_100);
    const both = new Float32Array(wide.length * 2);
    for (const [index, sample] of wide.entries()) both.fill(sample, 2 * index, 2 * index + 2);
    const bytes = Buffer.from(writeWav(both, 44_100));
    // One channel of twice the rate becomes two.
    bytes.writeUInt16LE(2, 22);
    bytes.writeUInt32LE(44_100 * 4, 28);
    bytes.writeUInt16LE(4, 32);
    writeFileSync(path("wide.wav"), bytes);
    const { status } = await file(`${server.url}/v1/realtime`, path("wide.wav"), path("wide-answer.wav"), ...options);
    expect(status).toBe(0);
    expect(readWav(readFileSync(path("wide-answer.wav"))).samples).toHaveLength(audioFrames * 1764);
  });

  test.each([
    ["no key", [], "wants an API key"],
    ["a wrong key", ["--api-key", "wrong"], "wants an API key, or another one"],
  ])("%s: told so", async (_, flags, message) => {
    await expect(file(server.url, QUESTION, path("none.wav"), ...flags)).rejects.toThrow(message);
  });

  test("a server that is busy: told so", async () => {
    const first = new Peer(server, "/v1/realtime", { headers: { Authorization: "Bearer secret" } });
    await first.until("session.created");
    await expect(file(server.url, QUESTION, path("none.wav"), ...options)).rejects.toThrow("the server is busy");
    first.socket.terminate();
    await expect.poll(async () => (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok", sessions: 0 });
  });

  test("a server that goes away: told so, and what was heard of the answer is kept", async () => {
    await using going = await voiceChatServer();
    const asked = file(going.url, QUESTION, path("part.wav"), "--extra-seconds", "120");
    await expect.poll(() => metric(going, 'antiphon_frame_seconds_count{stage="total"}')).toBeGreaterThan(5);
    await going.drain();
    const { status, stderr } = await asked;
    expect({ status, stderr }).toEqual({ status: 1, stderr: "antiphon: the server closed the connection (1012)\n" });
    const { length } = readWav(readFileSync(path("part.wav"))).samples;
    expect([length % 1764, length > 0]).toEqual([0, true]);
  });

  test("the server sets the pace: no more than 50 frames wait for their answer", async () => {
    await using silent = await voiceChatServer({ load: async () => duplexEngine({ mute: true }) });
    const abort = new AbortController();
    const asked = fileUntil(abort.signal, silent.url, QUESTION, path("none.wav"), "--extra-seconds", "60");
    const heardSeconds = (): Promise<number> => metric(silent, 'antiphon_audio_seconds_total{direction="input"}');
    await expect.poll(heardSeconds).toBeCloseTo(4);
    abort.abort();
    await expect(asked).rejects.toThrow("aborted");
    expect(await heardSeconds()).toBeCloseTo(4);
  });

  // It said that the server had closed the connection, and failed.
  test("Ctrl-C is no failure of the server's, and what was heard of the answer is kept", async () => {
    await using own = await voiceChatServer();
    const abort = new AbortController();
    const asked = fileUntil(abort.signal, own.url, QUESTION, path("cut.wav"), "--extra-seconds", "120");
    await expect.poll(() => metric(own, 'antiphon_frame_seconds_count{stage="total"}')).toBeGreaterThan(5);
    abort.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    const { length } = readWav(readFileSync(path("cut.wav"))).samples;
    expect([length % 1764, length > 0]).toEqual([0, true]);
    await expect.poll(() => metric(own, "antiphon_sessions_open")).toBe(0);
  });

  // Whoever reached a port where something else listens waited for good, and Ctrl-C changed nothing.
  test("a server that does not answer: Ctrl-C gives it up", async () => {
    const silent = createNetServer();
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const abort = new AbortController();
    const asked = fileUntil(abort.signal, `ws://127.0.0.1:${port}`, QUESTION, path("none.wav"));
    const [socket] = await once(silent, "connection");
    abort.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    socket.destroy();
    silent.close();
  });

  // Each of the fifty frames that were on their way was answered with the same words, and all of them were printed.
  test("a question longer than a session: told once", async () => {
    const load = async () => duplexEngine({ framesMax: 20 });
    await using short = await voiceChatServer({ load });
    const { status, stderr } = await file(short.url, QUESTION, path("short.wav"));
    expect({ status, stderr }).toEqual({ status: 1, stderr: "antiphon: the stream exceeds its frames\n" });
    expect(readWav(readFileSync(path("short.wav"))).samples).toHaveLength(20 * 1764);
  });

  test("a server of the OpenAI Realtime API: told which command talks to it", async () => {
    await using other = await scriptedServer();
    const url = `${other.url.replace("http", "ws")}/v1/realtime`;
    await expect(file(url, QUESTION, path("none.wav"))).rejects.toThrow(
      `${url} serves no VoiceChat model, but the OpenAI Realtime API: antiphon talk --url ${url}`,
    );
  });

  // What it could not read was thrown where nobody caught it, and the command ended with a stack.
  test.each([
    ["hello", "sent what is no event of a realtime server"],
    ["null", "sent what is no event of a realtime server"],
    ['{"kind":"audio"}', "sent what is no event of a realtime server"],
    ['{"type":"session.created"}', "serves no VoiceChat model"],
    ['{"type":"response.audio.delta","delta":"#"}', "sent audio that is no PCM16"],
  ])("a server that says %s: told so", async (text, message) => {
    const other = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    other.on("connection", (socket) => socket.send(text));
    await once(other, "listening");
    try {
      const { port } = other.address() as AddressInfo;
      await expect(file(`ws://127.0.0.1:${port}`, QUESTION, path("none.wav"))).rejects.toThrow(message);
    } finally {
      other.close();
    }
  });

  test("an answer that could not be written, or would be written over the question, is refused before anything is said", async () => {
    await expect(file(server.url, QUESTION, folder)).rejects.toThrow(`${folder} cannot be written (it is a folder)`);
    await expect(file(server.url, QUESTION, QUESTION)).rejects.toThrow(
      "the answer and the recording are the same file",
    );
  });

  test.each([
    [[], "needs the server's URL and a recording and a file for the answer"],
    [["ws://127.0.0.1:9", QUESTION], "needs a file for the answer"],
    [["ws://127.0.0.1:9", QUESTION, "x.wav", "y.wav"], 'takes no "y.wav"'],
    [["nowhere", QUESTION, "x.wav"], "nowhere is no address of a server"],
    [["ws://127.0.0.1:9", "/nowhere.wav", "x.wav"], "/nowhere.wav: cannot be read (ENOENT)"],
    [["ws://127.0.0.1:9", QUESTION, "x.wav"], "nothing listens there"],
    [[":server/wrong", QUESTION, "x.wav"], "answered the connection with HTTP 404: there are no sessions at /wrong"],
  ])("%j is refused", async (argv, message) => {
    const [url, ...rest] = argv;
    const asked = url === undefined ? [] : [url.replace(":server", server.url), ...rest];
    await expect(file(...asked)).rejects.toThrow(message);
  });
});

describe("talk, at a VoiceChat server", () => {
  const talk = (...argv: string[]): Promise<number> =>
    runTalk(argv, contextOf(new Text(), new Text(), new AbortController().signal));
  const argv = (on: Server): string[] => ["--url", on.url, "--api-key", "secret", "--input-file", QUESTION];

  // It configured the session in OpenAI's words, which the server refused, and then said the recording to nobody for half a
  // minute, until the server closed the connection.
  test("is told at once which commands talk to it", async () => {
    const url = `${server.url.replace("http", "ws")}/v1/realtime`;
    await expect(talk(...argv(server), "--model", "any")).rejects.toThrow(
      `${url} serves a VoiceChat model, which talks in its own way: antiphon voicechat-mic ${url}`,
    );
    await expect.poll(async () => (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok", sessions: 0 });
  });
  test("that is busy: told so", async () => {
    const first = new Peer(server, "/v1/realtime", { headers: { Authorization: "Bearer secret" } });
    await first.until("session.created");
    await expect(talk(...argv(server))).rejects.toThrow("The one session of this server is in use");
    first.socket.terminate();
    await expect.poll(async () => (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok", sessions: 0 });
  });
});

describe.skipIf(process.platform !== "linux")("voicechat-mic", () => {
  const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  let bin: string;
  beforeAll(() => {
    bin = mkdtempSync(join(folder, "bin-"));
    const raw = path("question.raw");
    writeFileSync(raw, readFileSync(QUESTION).subarray(44));
    // A microphone says the question and then waits; a speaker keeps what it hears.
    program("parec", `echo "$@" > ${path("parec.args")}; cat ${raw}; exec sleep 60`);
    program("pacat", `echo "$@" > ${path("pacat.args")}; exec cat > ${path("heard.raw")}`);
    program("pactl", 'echo "a $3 named x"');
  });
  function program(name: string, body: string): void {
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const environment = (): NodeJS.ProcessEnv => ({ ...process.env, PATH: `${bin}:${process.env["PATH"]}` });

  test("speaks and is heard until Ctrl-C, which commits", async () => {
    const args = [main, "voicechat-mic", server.url, "--api-key", "secret", "--input-device", "mine"];
    const more = ["--output-device", "theirs", "--system-prompt", reference.prompt, "--seed", String(reference.seed)];
    const child = spawn(process.execPath, ["--import", "tsx", ...args, ...more], { env: environment() });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const questionFrames = Math.floor(readWav(readFileSync(QUESTION)).samples.length / 1280);
    const heardFrames = (): number => {
      try {
        return readFileSync(path("heard.raw")).length / 2 / 1764;
      } catch {
        return 0;
      }
    };
    await expect.poll(heardFrames, { timeout: 20_000 }).toBeGreaterThanOrEqual(questionFrames - 1);
    child.kill("SIGINT");
    const [status] = await once(child, "close");
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringContaining("Use headphones") });
    expect(stdout).toMatch(/^\[assistant\] ./m);
    expect(readFileSync(path("parec.args"), "utf8")).toContain("--rate=16000 --channels=1 --latency-msec=20 -d mine");
    expect(readFileSync(path("pacat.args"), "utf8")).toContain("--rate=22050 --channels=1 --latency-msec=60 -d theirs");
    // The reference hears the same, and then its silence.
    expect(transcript.startsWith(stdout.match(/(?<=^\[user\] ).*$/gm)?.join("") ?? "none")).toBe(true);
  }, 60_000);

  // Until the session was open nobody listened for it.
  test("Ctrl-C while the server says nothing ends at once", async () => {
    const silent = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const args = [main, "voicechat-mic", `ws://127.0.0.1:${port}`];
    const child = spawn(process.execPath, ["--import", "tsx", ...args], { env: environment() });
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    await once(silent, "connection");
    child.kill("SIGINT");
    expect({ status: (await once(child, "close"))[0], stderr }).toEqual({ status: 130, stderr: "" });
    silent.close();
  }, 60_000);

  test("a microphone that the system denies: the device's own words and where to allow it", async () => {
    const denied = mkdtempSync(join(folder, "denied-"));
    for (const name of ["pacat", "pactl"])
      writeFileSync(join(denied, name), readFileSync(join(bin, name)), { mode: 0o755 });
    writeFileSync(join(denied, "parec"), '#!/bin/sh\necho "Access denied" >&2\nexit 1\n', { mode: 0o755 });
    const args = [main, "voicechat-mic", server.url, "--api-key", "secret"];
    const env = { ...process.env, PATH: `${denied}:${process.env["PATH"]}` };
    const child = spawn(process.execPath, ["--import", "tsx", ...args], { env });
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const [status] = await once(child, "close");
    expect(status).toBe(1);
    expect(stderr).toContain("The microphone cannot be used: parec ended with 1 (Access denied)");
    expect(stderr).toContain("group audio");
  }, 60_000);

  test("lists the devices", () => {
    const args = ["--import", "tsx", main, "voicechat-mic", "--list-devices"];
    const output = execFileSync(process.execPath, args, { env: environment(), encoding: "utf8" });
    expect(output).toContain("Input devices");
    expect(output).toContain("a sources named x");
  }, 60_000);
});

test("two voices on paper: a line for as long as nobody else says something", () => {
  const output = new Text();
  const view = new DuplexView(output, { color: false });
  view.show("user", "What");
  view.show("user", "What is");
  view.show("assistant", "The");
  view.show("user", "What is the");
  view.show("assistant", "The caf\uFFFD");
  view.show("assistant", "The café\x1b[2J");
  view.show("assistant", "A");
  view.end();
  const lines = ["[user] What is", "[assistant] The", "[user] the", "[assistant] café[2J", "[assistant] A", ""];
  expect(output.text).toBe(lines.join("\n"));
});

test("a burst of answers is caught up with in the quiet: what was said is heard, silence is left out", () => {
  const clock = new ManualClock();
  const written: Float32Array[] = [];
  const line = new LiveLine(clock, { write: (pcm) => void written.push(pcm) }, 22_050);
  const frame = (value: number): Float32Array => new Float32Array(1764).fill(value);
  // Ten quiet frames at once: about 300 ms of them are kept.
  for (let count = 0; count < 10; count++) line.write(frame(0));
  expect(written).toHaveLength(4);
  for (let count = 0; count < 3; count++) line.write(frame(0.5));
  expect(written).toHaveLength(7);
  clock.advance(600);
  line.write(frame(0));
  expect(written).toHaveLength(8);
});
