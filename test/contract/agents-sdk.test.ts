/**
 * OpenAI's Agents SDK for JavaScript against the running server: real ears and a real voice, and a scripted service as the
 * language model. Both the version of this repository, on this Node, and the newest, on the Node that it wants.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { floatToPcm16 } from "../../src/audio/pcm.ts";
import { Resampler } from "../../src/audio/resample.ts";
import { readWav } from "../../src/audio/wav.ts";
import type { ServiceMessage, ServiceReply } from "../support/language-service.ts";
import { LIVE_SERVER_MS, questionFile } from "../support/live-server.ts";
import { hasNewestNode, newestClient } from "../support/newest-client.ts";
import { type ServiceServer, serviceServer } from "../support/service-server.ts";

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL("agents-client.mjs", import.meta.url));
const STORY = Array.from({ length: 12 }, (_, i) => `This is sentence number ${i} of a long story.`).join(" ");

/** Says what the last message asks for. */
function reply(messages: readonly ServiceMessage[]): ServiceReply {
  const { role, text, images } = messages.at(-1) as ServiceMessage;
  if (role === "tool") return { text: text.includes("sunny") ? `It is ${text}.` : "Here is a poem." };
  if (images.length > 0) return { text: "I see a picture." };
  if (text.includes("weather")) {
    return { text: "Let me look.", calls: [{ name: "get_weather", arguments: '{"city":"Paris"}' }] };
  }
  if (text.includes("poem")) return { calls: [{ name: "transfer_to_Poet", arguments: "{}" }] };
  return { text: text.includes("story") ? STORY : "The capital of France is Paris." };
}

interface Message {
  readonly type: string;
  readonly role?: string;
  readonly status?: string;
  readonly content?: readonly { readonly transcript?: string; readonly text?: string }[];
  readonly name?: string;
  readonly output?: string;
}
interface Seen {
  readonly errors: readonly unknown[];
  readonly events: readonly unknown[];
  readonly audioBytes: number;
  readonly interruptions: number;
  readonly histories: number;
  readonly added: number;
  readonly asked: readonly string[];
  readonly muted: string | null;
  readonly usage: { readonly input: number; readonly output: number };
  readonly history: readonly Message[];
}

let services: ServiceServer;
const question = join(mkdtempSync(join(tmpdir(), "antiphon-agents-")), "question.pcm");
beforeAll(async () => {
  services = await serviceServer(reply);
  const { samples, format } = readWav(readFileSync(questionFile("capital")));
  const resampler = new Resampler(format.hz, 24_000);
  const spoken = [resampler.push(samples), resampler.flush(), new Float32Array(24_000 * 6)];
  writeFileSync(question, Buffer.concat(spoken.map((pcm) => Buffer.from(floatToPcm16(pcm)))));
}, LIVE_SERVER_MS);
afterAll(async () => {
  await services[Symbol.asyncDispose]();
});

const clients: [
  name: string,
  make: () => Promise<{ readonly node: string; readonly script: string }>,
  isThere: boolean,
][] = [
  ["0.13.3", async () => ({ node: process.execPath, script: SCRIPT }), true],
  ["0.20.0, on a newer Node", () => newestClient(SCRIPT), hasNewestNode],
];

describe.each(clients)("@openai/agents-realtime %s", (_name, make, isThere) => {
  let client: { readonly node: string; readonly script: string };
  beforeAll(async () => {
    if (isThere) client = await make();
  });

  async function play(scenario: string): Promise<Seen> {
    const { url } = services.server;
    const ANTIPHON_WS = `${url.replace("http", "ws")}/v1/realtime`;
    const { stdout } = await run(client.node, [client.script, scenario, question], {
      env: { ...process.env, ANTIPHON_WS, OPENAI_AGENTS_DISABLE_TRACING: "1" },
      timeout: 300_000,
    });
    return JSON.parse(stdout) as Seen;
  }
  const said = (seen: Seen, role: string): (string | undefined)[] =>
    seen.history
      .filter((item) => item.role === role)
      .map(({ content }) => content?.[0]?.transcript ?? content?.[0]?.text);

  test.skipIf(!isThere)(
    "a function is called, and its result is spoken",
    async () => {
      const seen = await play("tools");
      expect(seen.errors).toEqual([]);
      expect(seen.asked).toEqual(["Paris"]);
      expect(seen.events).toContainEqual(["tool", "get_weather", "sunny in Paris"]);
      expect(said(seen, "user")).toEqual(["How is the weather in Paris?"]);
      expect(said(seen, "assistant")).toEqual(["Let me look.", "It is sunny in Paris."]);
      expect(seen.history).toContainEqual(
        expect.objectContaining({ type: "function_call", name: "get_weather", output: "sunny in Paris" }),
      );
      // Both sentences: a second and a half of speech at 24,000 Hz; they take two, a hundredth more or less.
      expect(seen.audioBytes).toBeGreaterThan(1.5 * 48_000);
      expect(seen.histories).toBeGreaterThan(2);
      expect(seen.added).toBeGreaterThanOrEqual(3);
      expect(seen.usage.input).toBeGreaterThan(0);
      expect(seen.usage.output).toBeGreaterThan(0);
      expect(seen.muted).toMatch(/not supported for the WebSocket/);
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "a question is heard, and answered aloud",
    async () => {
      const seen = await play("audio");
      expect(seen.errors).toEqual([]);
      expect(said(seen, "user")).toEqual([expect.stringMatching(/capital of France/i)]);
      expect(said(seen, "assistant")).toEqual(["The capital of France is Paris."]);
      expect(seen.audioBytes).toBeGreaterThan(48_000);
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "an answer that the application interrupts keeps the words that were heard",
    async () => {
      const seen = await play("interrupt");
      expect(seen.errors).toEqual([]);
      expect(seen.interruptions).toBe(1);
      const [story, thanks] = said(seen, "assistant") as [string, string];
      expect(STORY.startsWith(story)).toBe(true);
      // Less than two seconds of it were played.
      expect(story.length).toBeGreaterThan(0);
      expect(story.length).toBeLessThan(80);
      expect(seen.history.find((item) => item.role === "assistant")?.status).toBe("incomplete");
      expect(thanks).toBe("The capital of France is Paris.");
      // The model is shown what was heard, and that it was cut off.
      const shown = JSON.stringify(services.service.lastBody);
      expect([shown.includes(story), shown.includes("(I interrupted you.)")]).toEqual([true, true]);
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "speech over an answer interrupts it, and is answered",
    async () => {
      const seen = await play("bargeIn");
      expect(seen.errors).toEqual([]);
      expect(seen.interruptions).toBeGreaterThanOrEqual(1);
      const answers = said(seen, "assistant") as string[];
      expect(answers.at(-1)).toBe("The capital of France is Paris.");
      for (const story of answers.slice(0, -1)) expect(story.length).toBeLessThan(STORY.length);
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "the history can be edited, and the model sees the edited one",
    async () => {
      const seen = await play("history");
      expect(seen.errors).toEqual([]);
      expect(said(seen, "user")).toEqual(["My name is Bob.", "What did I say?"]);
      const shown = JSON.stringify(services.service.lastBody);
      expect(shown).toContain("My name is Bob.");
      expect(shown).not.toContain("Ada");
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "one agent hands over to another",
    async () => {
      const seen = await play("handoff");
      expect(seen.errors).toEqual([]);
      expect(seen.events).toContainEqual(["handoff", "Assistant", "Poet"]);
      expect(said(seen, "assistant")).toEqual(["Here is a poem."]);
      expect(JSON.stringify(services.service.lastBody)).toContain("You are a poet.");
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "a picture is shown to a model that sees",
    async () => {
      const seen = await play("image");
      expect(seen.errors).toEqual([]);
      expect(said(seen, "assistant")).toEqual(["I see a picture."]);
      expect(JSON.stringify(services.service.lastBody)).toContain("data:image/png;base64,");
    },
    300_000,
  );

  test.skipIf(!isThere)(
    "push to talk: committed by hand, answered when asked",
    async () => {
      const seen = await play("pushToTalk");
      expect(seen.errors).toEqual([]);
      expect(said(seen, "user")).toEqual([expect.stringMatching(/capital of France/i)]);
      expect(said(seen, "assistant")).toEqual(["The capital of France is Paris."]);
    },
    300_000,
  );
});
