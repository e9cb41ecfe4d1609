/** Calls with real models, from stacks that are not ours: Chromium, OpenAI's browser SDK, Python's aiortc. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import {
  LIVE_SERVER_MS,
  type LiveServer,
  liveServer,
  QUESTIONS,
  questionFile,
  transcribe,
} from "../support/live-server.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";
import { wordErrors } from "../support/word-errors.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const document: any, window: any;

const run = promisify(execFile);

let server: LiveServer;
beforeAll(async () => {
  server = await liveServer();
}, LIVE_SERVER_MS);

describe.skipIf(!hasChromium)("Chromium", () => {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-calls-"));
  const microphone = join(directory, "microphone.wav");
  beforeAll(() => writeMicrophone(microphone, [0.5, questionFile("capital"), 60]));
  afterAll(() => rmSync(directory, { recursive: true }));

  it("hears on the talk page what the captions say", { timeout: 120_000 }, async () => {
    const browser = await openBrowser(microphone);
    try {
      const page = await (await browser.newContext({ permissions: ["microphone"], bypassCSP: true })).newPage();
      await page.addInitScript(recordRemoteAudio);
      await page.goto(server.url);
      await page.click("#talk");
      await page.waitForFunction(() => document.body.dataset.phase === "speaking", undefined, { timeout: 60_000 });
      await page.waitForFunction(() => document.body.dataset.phase === "listening", undefined, { timeout: 60_000 });
      await page.waitForFunction(() => window.hasHeardAll(), undefined, { timeout: 60_000 });
      const [question, answer] = await page.locator("#captions .caption p").allTextContents();
      const asked = wordErrors(QUESTIONS["capital"]!, question!);
      expect(asked.errors).toBeLessThanOrEqual(1);
      const heard = await transcribe(server, Buffer.from(await page.evaluate(() => window.takeAudio()), "base64"));
      // Through Opus and the smallest recognizer, which hears "Francis" in "France is": by letters, not by words.
      const { rate } = wordErrors(letters(answer!), letters(heard));
      expect(rate, `said "${answer}", heard "${heard}"`).toBeLessThanOrEqual(0.35);
    } finally {
      await browser.close();
    }
  });

  it("talks with OpenAI's own WebRTC transport, unpatched", { timeout: 120_000 }, async () => {
    const secret = await fetch(`${server.url}/v1/realtime/client_secrets`, { method: "POST", body: "{}" });
    const { value } = (await secret.json()) as { value: string };
    const browser = await openBrowser(microphone);
    try {
      const context = await browser.newContext({ permissions: ["microphone"], bypassCSP: true });
      const page = await context.newPage();
      await page.goto(server.url);
      await page.addScriptTag({
        path: "node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.umd.js",
      });
      const history = await page.evaluate(talkWithAgentsSdk, { url: `${server.url}/v1/realtime/calls`, key: value });
      expect(history.map(({ role }) => role)).toEqual(["user", "assistant"]);
      expect(wordErrors(QUESTIONS["capital"]!, history[0]!.text).errors).toBeLessThanOrEqual(1);
      expect(history[1]!.text).not.toBe("");
    } finally {
      await browser.close();
    }
  });
});

/** Skipped where there is no Python 3 with venv. */
describe.skipIf(!hasPython)("aiortc", () => {
  let python: string;
  beforeAll(async () => {
    python = await pythonClient();
  }, PYTHON_CLIENT_MS);

  it("opens a call, speaks, hears, interrupts and hangs up", { timeout: 240_000 }, async () => {
    const { stdout } = await run(python, ["test/support/aiortc-call.py", server.url, questionFile("story")]);
    const result = JSON.parse(stdout) as Record<string, unknown>;
    expect(result).toMatchObject({ status: 201, response: "cancelled", hangup: 200 });
    expect(result["location"]).toMatch(/^\/v1\/realtime\/calls\/rtc_/);
    expect(wordErrors(QUESTIONS["story"]!, String(result["transcript"])).errors).toBeLessThanOrEqual(2);
  });
});

/** Each as a word of its own. */
const letters = (text: string): string =>
  text
    .replaceAll(/[^a-z]/gi, "")
    .split("")
    .join(" ");

/**
 * In the page: keeps what comes over the track, as PCM16 at 24,000 Hz. On the audio thread: the page's own thread loses
 * blocks on a busy machine.
 */
function recordRemoteAudio(): void {
  const chunks: Float32Array[] = [];
  const recorder = `registerProcessor("recorder", class extends AudioWorkletProcessor {
    process([[samples]]) {
      if (samples !== undefined) this.port.postMessage(samples.slice());
      return true;
    }
  })`;
  const Peer = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Peer {
    constructor(...given: unknown[]) {
      super(...given);
      (this as unknown as { addEventListener(name: string, listener: unknown): void }).addEventListener(
        "track",
        ({ track }: { track: unknown }) => void record(track),
      );
    }
  };
  async function record(track: unknown): Promise<void> {
    const context = new window.AudioContext({ sampleRate: 24_000 });
    await context.audioWorklet.addModule(window.URL.createObjectURL(new Blob([recorder], { type: "text/javascript" })));
    const node = new window.AudioWorkletNode(context, "recorder");
    node.port.onmessage = ({ data }: { data: Float32Array }) => chunks.push(data);
    context
      .createMediaStreamSource(new window.MediaStream([track]))
      .connect(node)
      .connect(context.destination);
  }
  const isLoud = (chunk: Float32Array): boolean => chunk.some((x) => Math.abs(x) > 0.02);
  /** A voice came, and a second of quiet after it: the network's buffer plays on when the server has sent everything. */
  window.hasHeardAll = () => {
    const last = chunks.findLastIndex(isLoud);
    const quiet = chunks.slice(last + 1).reduce((samples, chunk) => samples + chunk.length, 0);
    return last >= 0 && quiet > 24_000;
  };
  window.takeAudio = () => {
    let text = "";
    for (const chunk of chunks) {
      const pcm = Int16Array.from(chunk, (x) => Math.max(-1, Math.min(1, x)) * 32_767);
      for (const byte of new Uint8Array(pcm.buffer)) text += String.fromCharCode(byte);
    }
    return window.btoa(text);
  };
}

/** In the page: one question and its answer, as the SDK's history has them. */
async function talkWithAgentsSdk({
  url,
  key,
}: {
  url: string;
  key: string;
}): Promise<{ role: string; text: string }[]> {
  const { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebRTC } = window.OpenAIAgentsRealtime;
  const agent = new RealtimeAgent({ name: "test", instructions: "Answer in one short sentence." });
  const session = new RealtimeSession(agent, { transport: new OpenAIRealtimeWebRTC({ baseUrl: url }) });
  type Item = { type: string; role: string; status: string; content: { text?: string; transcript?: string }[] };
  const answered = new Promise<Item[]>((resolve) => {
    session.on("history_updated", (items: Item[]) => {
      if (items.some(({ role, status }) => role === "assistant" && status === "completed")) resolve(items);
    });
  });
  await session.connect({ apiKey: key });
  const history = (await answered)
    .filter(({ type }) => type === "message")
    .map(({ role, content }) => ({ role, text: content.map((part) => part.text ?? part.transcript ?? "").join("") }));
  session.close();
  return history;
}
