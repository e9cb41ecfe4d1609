/** Calls with real models, from stacks that are not ours: Chromium, OpenAI's browser SDK, Python's aiortc. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, openBrowser, writeMicrophone } from "../support/browser.ts";
import { LIVE_SERVER_MS, type LiveServer, liveServer, QUESTIONS, questionFile } from "../support/live-server.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";
import { wordErrors } from "../support/word-errors.ts";

// Functions given to the page run there; tests are compiled without the browser's types.
// biome-ignore lint/suspicious/noExplicitAny: see above
declare const window: any;

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
      const { history, isHeard } = await page.evaluate(talkWithAgentsSdk, {
        url: `${server.url}/v1/realtime/calls`,
        key: value,
      });
      // The SDK plays the first stream of the track's event; without one it only showed the words.
      expect(isHeard).toBe(true);
      expect(history.map(({ role }) => role)).toEqual(["user", "assistant"]);
      const { text } = history[0]!;
      expect(wordErrors(QUESTIONS["capital"]!, text).errors, `understood "${text}"`).toBeLessThanOrEqual(1);
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

/** In the page: one question and its answer, as the SDK's history has them. */
async function talkWithAgentsSdk({
  url,
  key,
}: {
  url: string;
  key: string;
}): Promise<{ history: { role: string; text: string }[]; isHeard: boolean }> {
  const { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebRTC } = window.OpenAIAgentsRealtime;
  const agent = new RealtimeAgent({ name: "test", instructions: "Answer in one short sentence." });
  const audioElement = window.document.createElement("audio");
  audioElement.autoplay = true;
  const transport = new OpenAIRealtimeWebRTC({ baseUrl: url, audioElement });
  const session = new RealtimeSession(agent, { transport });
  type Item = { type: string; role: string; status: string; content: { text?: string; transcript?: string }[] };
  const answered = new Promise<Item[]>((resolve) => {
    session.on("history_updated", (items: Item[]) => {
      if (items.some(({ role, status }) => role === "assistant" && status === "completed")) resolve(items);
    });
  });
  await session.connect({ apiKey: key });
  const context = new window.AudioContext();
  const meter = context.createAnalyser();
  let isHeard = false;
  // biome-ignore lint/suspicious/noExplicitAny: see above
  let source: any = null;
  const listening = setInterval(() => {
    if (source === null && audioElement.srcObject) {
      source = context.createMediaStreamSource(audioElement.srcObject);
      source.connect(meter);
    }
    const samples = new Float32Array(meter.fftSize);
    meter.getFloatTimeDomainData(samples);
    isHeard ||= samples.some((x) => Math.abs(x) > 0.02);
  }, 20);
  const history = (await answered)
    .filter(({ type }) => type === "message")
    .map(({ role, content }) => ({ role, text: content.map((part) => part.text ?? part.transcript ?? "").join("") }));
  for (let waits = 0; waits < 500 && !isHeard; waits++) await new Promise((resolve) => setTimeout(resolve, 20));
  clearInterval(listening);
  session.close();
  return { history, isHeard };
}
