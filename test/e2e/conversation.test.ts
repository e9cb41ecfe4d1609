/** Real models: a spoken question in, a spoken answer out. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  LIVE_SERVER_MS,
  LiveClient,
  type LiveServer,
  liveServer,
  QUESTIONS,
  questionPcm,
  transcribe,
} from "../support/live-server.ts";
import { type WordErrors, wordErrors } from "../support/word-errors.ts";

let server: LiveServer;
const clients: LiveClient[] = [];
beforeAll(async () => {
  server = await liveServer();
}, LIVE_SERVER_MS);
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function open(session: object = {}): Promise<LiveClient> {
  const client = await LiveClient.open(server, { instructions: "Answer in one short sentence.", ...session });
  clients.push(client);
  return client;
}
/** Errors per word over all of them. */
function rateOf(counts: readonly WordErrors[]): number {
  const sum = (key: "errors" | "words"): number => counts.reduce((all, count) => all + count[key], 0);
  return sum("errors") / sum("words");
}

test("ten spoken questions: each is understood, answered aloud, and the voice says what the transcript says", async () => {
  const understood: WordErrors[] = [];
  const spoken: WordErrors[] = [];
  const heard: string[] = [];
  for (const [name, text] of Object.entries(QUESTIONS)) {
    // A conversation each: a question that follows at once interrupts the answer before it, which then is half a sentence.
    const client = await open({ max_output_tokens: 60 });
    const answer = await client.ask(name);
    understood.push(wordErrors(text, answer.transcript));
    expect(answer.status, name).toMatch(/completed|incomplete/);
    expect(answer.text, name).not.toBe("");
    // Nobody speaks faster than 40 characters a second.
    expect(answer.pcm.length / 48_000, name).toBeGreaterThan(answer.text.length / 40);
    const again = await transcribe(server, answer.pcm);
    heard.push(`${answer.text} | ${again}`);
    spoken.push(wordErrors(answer.text, again));
  }
  expect(rateOf(understood)).toBeLessThanOrEqual(0.1);
  // The smallest recognizer listens to a synthetic voice, and the smallest language model says odd things: one answer of
  // names, or of a number of forty digits, does not count for all.
  const rates = spoken.map(({ rate }) => rate).toSorted((one, other) => one - other);
  expect(rates[rates.length >> 1], heard.join("\n")).toBeLessThanOrEqual(0.15);
});

test("the embedded model knows the capital of France", async () => {
  expect((await (await open()).ask("capital")).text).toContain("Paris");
});

test("eight sessions at once on one copy of the models: each gets the answer to its own question", async () => {
  const names = Object.keys(QUESTIONS).slice(0, 8);
  const answers = await Promise.all(names.map(async (name) => (await open({ max_output_tokens: 24 })).ask(name)));
  const counts = answers.map((answer, i) => wordErrors(QUESTIONS[names[i]!]!, answer.transcript));
  for (const [i, { rate }] of counts.entries()) expect(rate, names[i]).toBeLessThan(0.5);
  for (const answer of answers) expect(answer.pcm.length).toBeGreaterThan(0);
});

describe("bad input is answered and survived", () => {
  const append = (audio: unknown): string => JSON.stringify({ type: "input_audio_buffer.append", audio });
  test.each([
    ["not JSON", "hello", "invalid_json"],
    ["an array", "[1,2]", "invalid_event"],
    ["null", "null", "invalid_event"],
    ["an unknown event", '{"type":"session.upate"}', "unknown_or_invalid_event"],
    ["bad base64", append("%%%"), "invalid_audio"],
    ["audio that is no text", append(7), "invalid_value"],
    ["an odd byte count", append("AAAA"), "invalid_audio"],
  ])("%s", async (_name, text, code) => {
    const client = await open();
    client.socket.send(text);
    await expect(client.until("error")).resolves.toMatchObject({ error: { code } });
    client.send({ type: "session.update", session: { type: "realtime", instructions: "still here" } });
    expect(await client.until("session.updated")).toMatchObject({ session: { instructions: "still here" } });
  });

  test("a message of 20 MB ends its own session alone", async () => {
    const [big, other] = [await open(), await open()];
    const closed = new Promise<number>((resolve) => big.socket.once("close", resolve));
    big.socket.send(append("A".repeat(20_000_000)));
    expect(await closed).toBe(1009);
    other.send({ type: "input_audio_buffer.clear" });
    await other.until("input_audio_buffer.cleared");
  });

  test("audio before anything else is heard", async () => {
    const client = new LiveClient(server);
    clients.push(client);
    client.socket.once("open", () => {
      // The default format: 24,000 Hz.
      const pcm = questionPcm("capital");
      const slow = Buffer.alloc(Math.floor(pcm.length / 4) * 6);
      for (let i = 0; i * 2 < slow.length; i++) slow.writeInt16LE(pcm.readInt16LE(2 * Math.floor((i * 2) / 3)), 2 * i);
      client.say(slow, 3000);
    });
    await client.until("input_audio_buffer.speech_started");
    expect((await client.until("conversation.item.input_audio_transcription.completed"))["transcript"]).toMatch(
      /capital/i,
    );
  });

  test("silence and noise are no turns", async () => {
    const client = await open();
    client.say(Buffer.alloc(32_000 * 3), 0);
    const noise = Buffer.alloc(32_000 * 3);
    let seed = 1;
    for (let i = 0; i < noise.length; i += 2) {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      noise.writeInt16LE((seed >> 16) % 300, i);
    }
    client.say(noise, 0);
    // The question that follows is the first turn.
    const answer = await client.ask("capital");
    expect(answer.transcript).toMatch(/capital/i);
    expect(client.events.filter((event) => event.type === "response.created")).toHaveLength(1);
  });

  test("a client that vanishes in the middle of its answer leaves nothing behind", async () => {
    const client = await open();
    client.say(questionPcm("story"));
    await client.until("response.created");
    client.close();
    const sessions = async (): Promise<unknown> =>
      ((await (await fetch(`${server.url}/health`)).json()) as { sessions: number }).sessions;
    await expect.poll(sessions, { timeout: 60_000 }).toBe(0);
    expect((await (await open()).ask("capital")).transcript).toMatch(/capital/i);
  });
});

test("what the user says while the assistant speaks stops it, and is answered", async () => {
  const client = await open({ instructions: "Tell long stories.", max_output_tokens: 80 });
  client.say(questionPcm("story"));
  await client.until("response.output_audio.delta");
  client.say(questionPcm("capital"));
  const done = await client.until("response.done");
  expect(done["response"]).toMatchObject({ status: "cancelled", status_details: { reason: "turn_detected" } });
  await client.until("response.created");
  expect((await client.until("response.done"))["response"]).toMatchObject({
    status: expect.stringMatching(/complete/),
  });
});
