/** What clients of a VoiceChat server do that they should not, and what went wrong with it once. Over real sockets. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineEvent } from "../../src/engines/engine.ts";
import type { Server } from "../../src/server/server.ts";
import { ManualClock } from "../../src/util/clock.ts";
import type { Queue } from "../../src/util/queue.ts";
import { duplexEngine } from "../support/duplex-engine.ts";
import { modelProcesses } from "../support/voicechat-endings.ts";
import { append, frames, metric, Peer, voiceChatServer } from "../support/voicechat-server.ts";

let server: Server;
beforeAll(async () => {
  server = await voiceChatServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const vacated = (on: Server): Promise<void> => expect.poll(() => metric(on, "antiphon_sessions_open")).toBe(0);
const codes = (peer: Peer): string[] => peer.errors.map(({ code }) => code);

/** The server is well: somebody comes, is answered and goes. */
async function expectService(on: Server): Promise<void> {
  const peer = await Peer.ready(on);
  peer.say(append(frames(1)), { type: "input_audio_buffer.commit" });
  expect(await peer.closed).toBe(1000);
  expect(peer.heard.at(-1)).toMatchObject({ type: "response.done", frame_index: 1 });
}

describe("a client that leaves", () => {
  // A client said a minute of audio in frames of 80 ms and closed its socket, as one should. The server read 64 messages
  // ahead of the model and no further, so the goodbye stood behind the backlog, and the place stayed taken for as long as
  // the model worked for nobody.
  test("with a goodbye behind a minute of backlog is noticed at once (the model never gets on)", async () => {
    await using stuck = await voiceChatServer({ load: async () => duplexEngine({ stuck: true }) });
    const peer = await Peer.ready(stuck);
    for (let count = 0; count < 750; count++) peer.say(append(frames(1)));
    peer.socket.close();
    expect(await peer.closed).toBe(1005);
    await vacated(stuck);
  });

  // A client that no longer reads said goodbye. What it had not read stood before the server's answer, so the connection
  // stayed half open until a timer of 30 s, and the place with it.
  test("without reading what was sent before is noticed with the next frame (without a model)", async () => {
    const opened: Queue<EngineEvent>[] = [];
    const load = async () => duplexEngine({ onOpen: (_, events) => void opened.push(events) });
    await using other = await voiceChatServer({ load, unsentBytesMax: 1e9 });
    const peer = await Peer.ready(other);
    peer.socket.pause();
    const text = { type: "frame.text", frameIndex: 0, tokenId: 1, delta: "", text: "x".repeat(20_000_000) } as const;
    const [says] = opened;
    says?.push(text);
    peer.say({ type: "session.ping" });
    peer.socket.close();
    const isGone = async (): Promise<number> => {
      says?.push({ ...text, text: "" });
      return metric(other, "antiphon_sessions_open");
    };
    await expect.poll(isGone).toBe(0);
    peer.socket.terminate();
  });

  test("while its long prompt is still taken in: the place is free, and the next is not kept waiting", async () => {
    const peer = new Peer(server);
    await peer.until("session.created");
    peer.say({ type: "session.update", session: { system_prompt: "Be brief. ".repeat(400) } }, append(frames(1)));
    await expect.poll(() => metric(server, "antiphon_sessions_open")).toBe(1);
    peer.socket.close();
    await peer.closed;
    await vacated(server);
    await expectService(server);
  });
});

describe("a client that talks nonsense", () => {
  // The seconds of audio were counted before its rate was looked at: a rate of 0 made the count infinite for good, and one
  // below 0 threw in the counter, which ended the session with 1011.
  test.each([0, -1, -16_000, 24_000])(
    "a sample_rate of %i is refused, counted nowhere, and the session goes on",
    async (sample_rate) => {
      const before = await metric(server, 'antiphon_audio_seconds_total{direction="input"}');
      const peer = await Peer.ready(server);
      peer.say({ ...append(frames(1)), sample_rate }, { ...append(frames(0)), sample_rate }, { type: "session.ping" });
      await peer.until("session.pong");
      expect(codes(peer)).toEqual(["inference_error", "inference_error"]);
      peer.say(append(frames(1)), { type: "input_audio_buffer.commit" });
      expect(await peer.closed).toBe(1000);
      const after = await metric(server, 'antiphon_audio_seconds_total{direction="input"}');
      expect(after - (Number.isNaN(before) ? 0 : before)).toBeCloseTo(0.08);
    },
  );

  test("binary frames: JSON in them is read, anything else is no JSON object", async () => {
    const peer = await Peer.ready(server);
    peer.socket.send(Buffer.from(JSON.stringify(append(frames(1)))));
    peer.socket.send(Buffer.from([0xff, 0xfe, 0x00]));
    peer.socket.send(Buffer.alloc(0));
    peer.socket.send(new Float32Array(1280));
    peer.say({ type: "session.ping" });
    await peer.until("session.pong");
    expect(peer.of("response.audio.delta")).toHaveLength(1);
    expect(codes(peer)).toEqual(Array(3).fill("invalid_request"));
    peer.say({ type: "session.cancel" });
    expect(await peer.closed).toBe(1000);
  });

  test("a message in pieces is limited as a whole: 1 MiB and one byte more is 1009", async () => {
    const peer = await Peer.ready(server);
    const piece = " ".repeat(2 ** 19);
    peer.socket.send(`{"type":"session.ping"}${piece.slice(23)}`, { fin: false });
    peer.socket.send(piece, { fin: true });
    await peer.until("session.pong");
    peer.socket.send(piece, { fin: false });
    peer.socket.send(piece, { fin: false });
    peer.socket.send(" ", { fin: true });
    expect(await peer.closed).toBe(1009);
    await vacated(server);
    await expectService(server);
  });

  test.each([
    ["text that is not UTF-8", [0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff]],
    ["a frame without a mask", [0x81, 0x02, 0x7b, 0x7d]],
    ["no frame at all", [0xff, 0xff, 0xff, 0xff]],
  ])("%s ends its connection, and nobody else's", async (_, bytes) => {
    const peer = await Peer.ready(server);
    (peer.socket as unknown as { _socket: { write(data: Buffer): void } })._socket.write(Buffer.from(bytes));
    expect([1002, 1007]).toContain(await peer.closed);
    await vacated(server);
    await expectService(server);
  });

  test.each([
    ["half a surrogate pair", { system_prompt: "\ud800" }],
    ["a zero byte", { system_prompt: "a\0b" }],
    ["a prompt of nothing", { system_prompt: "" }],
    ["the names of special tokens", { system_prompt: "<s></s><SPECIAL_12>" }],
    ["all null", { system_prompt: null, seed: null, max_streaming_seconds: null, model: null }],
    ["the greatest seed", { seed: Number.MAX_SAFE_INTEGER }],
    ["more seconds than there are", { max_streaming_seconds: 1e308 }],
  ])("session.update with %s is a session", async (_, session) => {
    const peer = await Peer.ready(server, session);
    peer.say(append(frames(2)), { type: "input_audio_buffer.commit" });
    expect(await peer.closed).toBe(1000);
    expect(peer.of("response.audio.delta")).toHaveLength(2);
  });

  // A prompt of 1 MiB was taken in: its tokens, one by one, for minutes, and their rows filled the memory of the process.
  test.each(["Be brief. ".repeat(5000), "a".repeat(1_000_000)])(
    "a system prompt without end (%.9s…) is refused at once, and a shorter one is taken",
    async (system_prompt) => {
      const peer = new Peer(server);
      await peer.until("session.created");
      peer.say({ type: "session.update", session: { system_prompt } });
      await peer.until("error");
      expect(codes(peer)).toEqual(["session_initialization_failed"]);
      expect(peer.errors[0]?.message).toMatch(/^the system prompt has \d+ (tokens|characters); at most \d+ are taken$/);
      peer.say({ type: "session.update", session: { system_prompt: system_prompt.slice(0, 100) } });
      await peer.until("session.updated");
      peer.say({ type: "session.cancel" });
      expect(await peer.closed).toBe(1000);
    },
  );

  test.each([
    [{ seed: 2 ** 53 }, "session.seed"],
    [{ max_streaming_seconds: null, seed: [] }, "session.seed"],
    [{ __proto__: null, constructor: 1 }, "session.constructor"],
  ])("session.update with %j is refused by the field's name", async (session, field) => {
    const peer = new Peer(server);
    await peer.until("session.created");
    peer.say({ type: "session.update", session });
    await peer.until("error");
    expect(peer.errors[0]).toMatchObject({
      code: "session_initialization_failed",
      message: expect.stringContaining(field),
    });
    peer.socket.close();
    await peer.closed;
    await vacated(server);
  });

  test.each([
    "[".repeat(500_000),
    `{"type":${"[".repeat(400_000)}`,
    '{"type":"\\ud800"}',
    '{"type":{"a":1}}',
    '{"type":"__proto__"}',
  ])("%.20s… is invalid_request", async (text) => {
    const peer = await Peer.ready(server);
    peer.say(text, { type: "session.ping" });
    await peer.until("session.pong");
    expect(codes(peer)).toEqual(["invalid_request"]);
    peer.say({ type: "session.cancel" });
    expect(await peer.closed).toBe(1000);
  });

  test("says why a field cannot be, without quoting it", async () => {
    const peer = await Peer.ready(server);
    peer.say(
      { type: "input_audio_buffer.append", audio: null },
      { type: "input_audio_buffer.append", audio: "", sample_rate: null },
      { type: "input_audio_buffer.commit", pad_partial: [] },
    );
    await peer.until("error", 3);
    expect(peer.errors).toEqual([
      { code: "inference_error", message: "audio must be base64 PCM16, got null" },
      { code: "inference_error", message: "sample_rate must be an integer, got null" },
      { code: "invalid_request", message: "pad_partial must be a boolean, got an array" },
    ]);
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
});

describe("many at one place", () => {
  test("ten at once: one is let in, nine are told server_busy; each of them gets in when it is its turn", async () => {
    const peers = Array.from({ length: 10 }, () => new Peer(server));
    await Promise.all(peers.map((peer) => Promise.race([peer.closed, peer.until("session.created")])));
    const inside = peers.filter((peer) => peer.heard[0]?.type === "session.created");
    const outside = peers.filter((peer) => !inside.includes(peer));
    expect(inside).toHaveLength(1);
    expect(await Promise.all(outside.map((peer) => peer.closed))).toEqual(Array(9).fill(1013));
    expect(outside.map(codes)).toEqual(Array(9).fill(["server_busy"]));
    inside[0]?.say({ type: "session.update" }, { type: "session.cancel" });
    expect(await inside[0]?.closed).toBe(1000);
    for (let turn = 0; turn < 9; turn++) await expectService(server);
  });

  test("any ?model= means the model that is served", async () => {
    const peer = new Peer(server, "/v1/realtime?model=mlx-community/NemotronLabs-VoiceChat-11B-4bit");
    await peer.until("session.created");
    peer.socket.close();
    await once(peer.socket, "close");
    await vacated(server);
  });
});

describe("a model that is slow, or gone", () => {
  test("a client that waits for the model is not silent, however long it takes (the model never gets on)", async () => {
    const clock = new ManualClock();
    const load = async () => duplexEngine({ stuck: true });
    await using stuck = await voiceChatServer({ load, clock });
    const peer = await Peer.ready(stuck);
    peer.say(append(frames(1)));
    await expect.poll(() => metric(stuck, 'antiphon_audio_seconds_total{direction="input"}')).toBeCloseTo(0.08);
    clock.advance(1_000_000);
    expect(await metric(stuck, "antiphon_sessions_open")).toBe(1);
    expect(peer.errors).toEqual([]);
    peer.socket.close();
    await peer.closed;
  });

  test("kill -9 in the middle of a frame: inference_error, the loop goes on, commit ends with 1011, the next one is well", async () => {
    await using other = await voiceChatServer();
    const peer = await Peer.ready(other);
    peer.say(append(frames(300)));
    await peer.until("response.audio.delta");
    for (const pid of modelProcesses()) process.kill(pid, "SIGKILL");
    await peer.until("error");
    // It answered "ok" while there was no model, and sent people to where they could only wait.
    const health = (): Promise<Response> => fetch(`${other.url}/health`);
    const waiting_for = ["the model process, which died and is started again"];
    expect(await (await health()).json()).toEqual({ status: "loading", waiting_for });
    peer.say(append(frames(1)), { type: "session.ping" });
    await peer.until("session.pong");
    expect(codes(peer)).toEqual(["inference_error", "inference_error"]);
    expect(peer.errors[0]?.message).toBe("The voicechat process ended; try again.");
    // It said that the session was not open, as if the client had not opened it, and counted it as the client's mistake.
    expect(peer.errors[1]?.message).toContain("the model's process died and was started again");
    expect(await metric(other, 'antiphon_errors_total{code="worker_died"}')).toBe(2);
    const answered = peer.of("response.audio.delta").map((event) => event["frame_index"]);
    expect(answered).toEqual(answered.map((_, index) => index));
    expect(answered.length).toBeLessThan(300);
    peer.say({ type: "input_audio_buffer.commit" });
    expect(await peer.closed).toBe(1011);
    await expectService(other);
    expect((await health()).status).toBe(200);
  });
});

describe("kill -9 (a process of its own)", () => {
  let killed: Server;
  let others: readonly number[];
  beforeAll(async () => {
    others = modelProcesses();
    killed = await voiceChatServer();
  });
  afterAll(() => killed[Symbol.asyncDispose]());
  const kill = (): void => {
    for (const pid of modelProcesses()) if (!others.includes(pid)) process.kill(pid, "SIGKILL");
  };

  // Cancelling needs no model; the client was told of an inference_error, and 1011.
  test("while nothing is asked of it: cancel is cancelled all the same", async () => {
    const peer = await Peer.ready(killed);
    peer.say(append(frames(3)));
    await peer.until("response.audio.delta", 3);
    kill();
    peer.say({ type: "session.cancel" });
    expect(await peer.closed).toBe(1000);
    expect(peer.heard.at(-1)).toMatchObject({ type: "response.cancelled", frame_index: 3 });
    await expectService(killed);
  });
  test("while a prompt is taken in: session_initialization_failed, and another may follow", async () => {
    const peer = new Peer(killed);
    await peer.until("session.created");
    peer.say({ type: "session.update", session: { system_prompt: "Be brief. ".repeat(400) } });
    // Whoever answers this has read that.
    await fetch(`${killed.url}/health`);
    kill();
    await peer.until("error");
    expect(codes(peer)).toEqual(["session_initialization_failed"]);
    peer.say({ type: "session.update" }, append(frames(1)), { type: "input_audio_buffer.commit" });
    expect(await peer.closed).toBe(1000);
    expect(peer.heard.at(-1)).toMatchObject({ type: "response.done", frame_index: 1 });
  });
});

test("a real model tells what frames take: each stage once for each frame, together no more than the whole", async () => {
  await using fresh = await voiceChatServer();
  const peer = await Peer.ready(fresh);
  peer.say(append(frames(20, 0.01)), { type: "input_audio_buffer.commit" });
  expect(await peer.closed).toBe(1000);
  const ofStage = (what: "count" | "sum", stage: string): Promise<number> =>
    metric(fresh, `antiphon_frame_seconds_${what}{stage="${stage}"}`);
  const stages = ["perception", "rnnt", "language", "tts", "codec"];
  expect(await Promise.all([...stages, "total"].map((stage) => ofStage("count", stage)))).toEqual(Array(6).fill(20));
  const seconds = await Promise.all(stages.map((stage) => ofStage("sum", stage)));
  for (const sum of seconds) expect(sum).toBeGreaterThan(0);
  expect(seconds.reduce((all, sum) => all + sum)).toBeLessThanOrEqual(await ofStage("sum", "total"));
  expect(await metric(fresh, "antiphon_realtime_factor")).toBeGreaterThan(0);
  expect(await metric(fresh, "antiphon_lag_seconds")).toBe(0);
  expect(await (await fetch(`${fresh.url}/health`)).json()).toEqual({ status: "ok", sessions: 0 });
});
