/** What a response may be asked for, on the real engine, and how a page gets in without the server's key. */
import OpenAI from "openai";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Event, LIVE_SERVER_MS, LiveClient, type LiveServer, liveServer } from "../support/live-server.ts";
import { Client } from "../support/scripted-server.ts";

let server: LiveServer;
const clients: LiveClient[] = [];
beforeAll(async () => {
  server = await liveServer();
}, LIVE_SERVER_MS);
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function open(session: object = {}): Promise<LiveClient> {
  const client = await LiveClient.open(server, session);
  clients.push(client);
  return client;
}
const says = (text: string): object => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
});
const bytesOf = (events: readonly Event[]): number =>
  events.reduce((sum, event) => sum + Buffer.from(String(event["delta"]), "base64").length, 0);
interface Done {
  readonly id: string;
  readonly status: string;
  readonly status_details: object;
  readonly output: readonly { readonly content: readonly { readonly transcript?: string; readonly text?: string }[] }[];
  readonly usage: { readonly output_token_details: { readonly text_tokens: number; readonly audio_tokens: number } };
}
const done = async (client: LiveClient, where?: (event: Event) => boolean): Promise<Done> =>
  (await client.until("response.done", where))["response"] as Done;

describe("a response on the real engine", () => {
  test("stops at max_output_tokens, and says so", async () => {
    const client = await open({ max_output_tokens: 4 });
    client.send(says("Tell me a long story about a king."));
    client.send({ type: "response.create" });
    const response = await done(client);
    expect(response).toMatchObject({ status: "incomplete", status_details: { reason: "max_output_tokens" } });
    expect(response.usage.output_token_details.text_tokens).toBeLessThanOrEqual(5);
    expect(response.usage.output_token_details.audio_tokens).toBeGreaterThan(0);
    expect(client.events.filter((event) => event.type === "conversation.item.done").at(-1)).toMatchObject({
      item: { status: "incomplete" },
    });
  });

  test("is slower or faster by its speed, and in its own format", async () => {
    const client = await open();
    /** Milliseconds for each character that is said. */
    const paceMs = async (speed: number): Promise<number> => {
      const before = client.events.length;
      const output = { speed, format: { type: "audio/pcmu" } };
      const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: "Say: good morning." }] }];
      client.send({ type: "response.create", response: { conversation: "none", input, audio: { output } } });
      const said = (await done(client)).output[0]?.content[0]?.transcript ?? "";
      const deltas = client.events.slice(before).filter((event) => event.type === "response.output_audio.delta");
      return bytesOf(deltas) / 8 / said.length;
    };
    const [slow, fast] = [await paceMs(0.5), await paceMs(1.5)];
    // A third of the speed; the shortest sounds are as short at any, and two words have many.
    expect(slow / fast).toBeGreaterThan(1.5);
  });

  test("runs beside another, in text, from a referenced item, and leaves the conversation alone", async () => {
    const client = await open();
    client.send(says("What is the capital of France?"));
    const item = (await client.until("conversation.item.done"))["item"] as { id: string };
    client.send({ type: "response.create" });
    const spoken = (await client.until("response.created"))["response"] as Done;
    client.send({
      type: "response.create",
      response: {
        conversation: "none",
        output_modalities: ["text"],
        input: [{ type: "item_reference", id: item.id }],
        metadata: { topic: "aside" },
      },
    });
    const aside = (await client.until("response.created"))["response"] as Done;
    const endings = [await done(client), await done(client)];
    expect(endings.map(({ id }) => id).sort()).toEqual([aside.id, spoken.id].sort());
    for (const ending of endings) expect(ending.status).toBe("completed");
    expect(endings.find(({ id }) => id === aside.id)).toMatchObject({
      metadata: { topic: "aside" },
      output: [{ content: [{ type: "output_text", text: expect.stringContaining("Paris") }] }],
    });
    expect(client.events.filter((event) => event.type === "conversation.item.added")).toHaveLength(2);
  });

  test("fails with an error where the history is too long and may not be cut, and is cut where it may", async () => {
    const client = await open({ truncation: "disabled", output_modalities: ["text"], max_output_tokens: 8 });
    for (let i = 0; i < 6; i++) client.send(says(`Number ${i}. ${"A word and another one. ".repeat(150)}`));
    client.send({ type: "response.create" });
    const error = await client.until("response.done").catch((refusal: Error) => refusal.message);
    expect(error).toContain("llm_failed");
    expect(error).toContain("allow truncation");
    expect((await done(client)).status).toBe("failed");
    client.send({ type: "session.update", session: { type: "realtime", truncation: "auto" } });
    await client.until("session.updated");
    client.send({ type: "response.create" });
    expect((await done(client)).status).toMatch(/completed|incomplete/);
  });
});

describe("a client secret", () => {
  test("is made by the official client, and opens just the session that it is bound to", async () => {
    const openai = new OpenAI({ apiKey: "any", baseURL: `${server.url}/v1` });
    const secret = await openai.realtime.clientSecrets.create({
      expires_after: { anchor: "created_at", seconds: 60 },
      session: {
        type: "realtime",
        model: "gpt-realtime",
        instructions: "Only about bicycles.",
        audio: { input: { turn_detection: { type: "semantic_vad", eagerness: "low" } } },
      },
    });
    expect(secret.session).toMatchObject({ type: "realtime", instructions: "Only about bicycles." });
    const page = new Client(`${server.url}/v1/realtime`, ["realtime", `openai-insecure-api-key.${secret.value}`]);
    try {
      expect(await page.nextEvent()).toMatchObject({
        type: "session.created",
        session: {
          model: "gpt-realtime",
          instructions: "Only about bicycles.",
          audio: { input: { turn_detection: { type: "semantic_vad", eagerness: "low" } } },
        },
      });
    } finally {
      page.socket.terminate();
    }
  });
});
