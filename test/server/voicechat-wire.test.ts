/** Every row of the tables in docs/voicechat-protocol.md, over a real socket and, but where it says so, with a real model. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { loadConfig } from "../../src/config.ts";
import type { Engine, EngineSettings } from "../../src/engines/engine.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { voiceChatSessions } from "../../src/server/voicechat-sessions.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { createLog, silentLog } from "../../src/util/log.ts";
import { duplexEngine } from "../support/duplex-engine.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";
import { append, frames, metric, Peer, voiceChatServer, type Wire } from "../support/voicechat-server.ts";

const clock = new ManualClock();
let server: Server;
beforeAll(async () => {
  server = await voiceChatServer({ clock, flags: { alias: "aria" } });
});
afterAll(() => server[Symbol.asyncDispose]());

const FORMATS = {
  input_audio_format: { type: "pcm16", sample_rate: 16_000 },
  output_audio_format: { type: "pcm16", sample_rate: 22_050 },
};
const question = readWav(readFileSync(`${FIXTURES}/audio/question.wav`)).samples;
const codes = (peer: Peer): string[] => peer.errors.map(({ code }) => code);
const framesAnswered = (on: Server): Promise<number> => metric(on, 'antiphon_frame_seconds_count{stage="total"}');

describe("events", () => {
  let heard: Wire[];
  let peer: Peer;
  beforeAll(async () => {
    peer = await Peer.ready(server, { system_prompt: "Be brief.", seed: 7, model: "whatever" });
    peer.say(append(question), { type: "session.ping" }, { type: "input_audio_buffer.commit" });
    await peer.closed;
    heard = peer.heard;
  });
  const first = (type: string): Wire => heard.find((event) => event.type === type) as Wire;

  test("each has an id: event_ and 16 hex digits, and no two are the same", () => {
    for (const { event_id } of heard) expect(event_id).toMatch(/^event_[0-9a-f]{16}$/);
    expect(new Set(heard.map(({ event_id }) => event_id)).size).toBe(heard.length);
  });
  test("session.created", () => {
    const id = expect.stringMatching(/^sess_[0-9a-f]{16}$/);
    const event_id = expect.any(String);
    expect(heard[0]).toEqual({ event_id, type: "session.created", session: { id, state: "configuring", ...FORMATS } });
  });
  test("session.updated: the served id, whatever was asked for", () => {
    const { id } = (heard[0] as Wire)["session"] as { id: string };
    const event_id = expect.any(String);
    const session = { id, state: "ready", model: "aria", frame_samples: 1280, ...FORMATS };
    expect(heard[1]).toEqual({ event_id, type: "session.updated", session });
  });
  test("conversation.item.input_audio_transcription.delta", () => {
    const { frame_index, delta, transcript, event_id, type, ...rest } = first(
      "conversation.item.input_audio_transcription.delta",
    );
    expect([typeof frame_index, typeof delta, typeof transcript, rest]).toEqual(["number", "string", "string", {}]);
    expect([type, event_id]).toEqual([expect.any(String), expect.any(String)]);
  });
  test.each(["response.text.delta", "response.function.delta"])("%s", (type) => {
    const fields = { frame_index: expect.any(Number), token_id: expect.any(Number), delta: expect.any(String) };
    expect(first(type)).toEqual({ event_id: expect.any(String), type, ...fields, text: expect.any(String) });
  });
  test("response.audio.delta: 1,764 samples and 31 codes for each frame, in order", () => {
    const audio = heard.filter(({ type }) => type === "response.audio.delta");
    for (const [index, { event_id, delta, audio_codes, ...event }] of audio.entries()) {
      const fields = { format: "pcm16", sample_rate: 22_050, channels: 1 };
      expect(event).toEqual({ type: "response.audio.delta", frame_index: index, ...fields });
      expect(Buffer.from(delta as string, "base64")).toHaveLength(2 * 1764);
      expect(audio_codes).toHaveLength(31);
      expect(event_id).toBeDefined();
    }
    expect(audio).toHaveLength(Math.ceil(question.length / 1280));
  });
  test("session.pong, input_audio_buffer.committed, response.done, 1000", async () => {
    const types = heard.map(({ type }) => type);
    expect(types.indexOf("session.pong")).toBeLessThan(types.indexOf("input_audio_buffer.committed"));
    expect(types.at(-1)).toBe("response.done");
    expect(heard.at(-1)).toMatchObject({ frame_index: Math.ceil(question.length / 1280) });
    expect(await peer.closed).toBe(1000);
  });
});

describe("messages", () => {
  test("before session.update only that and session.ping are heard", async () => {
    const peer = new Peer(server);
    await peer.until("session.created");
    peer.say({ type: "session.ping" }, append(frames(1)), { type: "input_audio_buffer.commit" });
    peer.say({ type: "session.cancel" }, { type: "response.cancel" }, { type: "what" });
    await peer.until("error", 5);
    expect(peer.of("session.pong")).toHaveLength(1);
    const refusal = { code: "invalid_request", message: "send session.update before audio" };
    expect(peer.errors).toEqual(Array(5).fill(refusal));
    peer.socket.close();
    await peer.closed;
  });
  test.each(["[1]", "1", "null", '"x"', "{", ""])(
    "%s is no JSON object: invalid_request, and the loop goes on",
    async (text) => {
      const peer = await Peer.ready(server);
      peer.say(text, { type: "session.ping" });
      await peer.until("session.pong");
      expect(codes(peer)).toEqual(["invalid_request"]);
      peer.say({ type: "session.cancel" });
      expect(await peer.closed).toBe(1000);
    },
  );
  test("an unknown type and a second session.update are invalid_request", async () => {
    const peer = await Peer.ready(server);
    peer.say(
      { type: "input_audio_buffer.clear" },
      {},
      { type: "session.update", session: {} },
      { type: "session.ping" },
    );
    await peer.until("session.pong");
    expect(codes(peer)).toEqual(["invalid_request", "invalid_request", "invalid_request"]);
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
  test.each([
    { seed: -1 },
    { seed: 1.5 },
    { seed: "1" },
    { max_streaming_seconds: 0 },
    { max_streaming_seconds: -1 },
    { max_streaming_seconds: "long" },
    { system_prompt: 1 },
    { voice: "aria" },
  ])("session.update with %j: session_initialization_failed, and another may follow", async (session) => {
    const peer = new Peer(server);
    await peer.until("session.created");
    peer.say({ type: "session.update", session });
    await peer.until("error");
    expect(codes(peer)).toEqual(["session_initialization_failed"]);
    peer.say({ type: "session.update" });
    await peer.until("session.updated");
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
  test.each([
    ["not base64", { audio: "###" }],
    ["an odd number of bytes", { audio: "AAAA" }],
    ["no audio", {}],
    ["a rate that is no integer", { audio: "AAA=", sample_rate: "16000" }],
    ["another rate", { audio: "AAA=", sample_rate: 24_000 }],
  ])("append with %s: inference_error, and the loop goes on", async (_, fields) => {
    const peer = await Peer.ready(server);
    peer.say({ type: "input_audio_buffer.append", ...fields }, append(frames(1)));
    await peer.until("response.audio.delta");
    expect(codes(peer)).toEqual(["inference_error"]);
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
  test.each([
    [{ pad_partial: true }, 2],
    [{}, 2],
    [{ pad_partial: false }, 1],
  ])("commit with %j", async (fields, count) => {
    const peer = await Peer.ready(server);
    peer.say(append(new Float32Array(2000)), { type: "input_audio_buffer.commit", ...fields });
    expect(await peer.closed).toBe(1000);
    expect(peer.of("response.audio.delta")).toHaveLength(count);
    expect(peer.heard.at(-1)).toMatchObject({ type: "response.done", frame_index: count });
  });
  test.each(["session.cancel", "response.cancel"])(
    "%s: response.cancelled, 1000, nothing of what was pending",
    async (type) => {
      const peer = await Peer.ready(server);
      peer.say(append(new Float32Array(2000)), { type });
      expect(await peer.closed).toBe(1000);
      expect(peer.heard.at(-1)).toMatchObject({ type: "response.cancelled", frame_index: 1 });
      expect(peer.of("response.audio.delta")).toHaveLength(1);
    },
  );
});

test("the events of each 80 ms are sent before the next are worked on: the first is heard long before the last", async () => {
  const before = await framesAnswered(server);
  const peer = await Peer.ready(server);
  peer.say(append(frames(250)), { type: "input_audio_buffer.commit" });
  await peer.until("response.audio.delta");
  expect((await framesAnswered(server)) - before).toBeLessThan(125);
  expect(await peer.closed).toBe(1000);
  expect(peer.of("response.audio.delta")).toHaveLength(250);
});

describe("limits", () => {
  test("a message above 1 MiB closes the connection with 1009; one of just that size is read", async () => {
    const peer = await Peer.ready(server);
    const padding = " ".repeat(1024 * 1024 - '{"type":"session.ping"}'.length);
    peer.say(`{"type":"session.ping"}${padding}`);
    await peer.until("session.pong");
    peer.say(`{"type":"session.ping"}${padding} `);
    expect(await peer.closed).toBe(1009);
  });
  test("30 s to session.update: invalid_request, 1008", async () => {
    const peer = new Peer(server);
    await peer.until("session.created");
    clock.advance(29_999);
    peer.say({ type: "session.ping" });
    await peer.until("session.pong");
    clock.advance(1);
    expect(await peer.closed).toBe(1008);
    expect(codes(peer)).toEqual(["invalid_request"]);
  });
  test("120 s without a message: invalid_request, 1008; a WebSocket ping is no message", async () => {
    const peer = await Peer.ready(server);
    clock.advance(119_000);
    peer.say({ type: "session.ping" });
    await peer.until("session.pong");
    clock.advance(119_000);
    peer.socket.ping();
    await once(peer.socket, "pong");
    clock.advance(1000);
    expect(await peer.closed).toBe(1008);
    expect(codes(peer)).toEqual(["invalid_request"]);
  });
  test("max_streaming_seconds ends the stream with inference_error; commit still ends the session", async () => {
    const peer = await Peer.ready(server, { max_streaming_seconds: 0.24 });
    peer.say(append(frames(5)), { type: "input_audio_buffer.commit" });
    expect(await peer.closed).toBe(1000);
    expect(codes(peer)).toEqual(["inference_error"]);
    expect(peer.of("response.audio.delta")).toHaveLength(3);
    expect(peer.heard.at(-1)).toMatchObject({ type: "response.done", frame_index: 3 });
  });
  test("a session has 600 s, and what asks for more gets those (without a model)", async () => {
    const opened: EngineSettings[] = [];
    const load = async () => duplexEngine({ onOpen: (settings) => void opened.push(settings) });
    await using other = await voiceChatServer({ load });
    for (const session of [{}, { max_streaming_seconds: 601 }, { max_streaming_seconds: 60 }]) {
      const peer = await Peer.ready(other, session);
      peer.say({ type: "session.cancel" });
      await peer.closed;
    }
    expect(opened.map(({ maxStreamingSeconds }) => maxStreamingSeconds)).toEqual([600, 600, 60]);
  });
  test("a peer that sends faster than the model runs is held back by its own socket", async () => {
    const peer = await Peer.ready(server);
    const message = JSON.stringify(append(frames(100)));
    for (let count = 0; count < 60; count++) peer.say(message);
    await peer.until("response.audio.delta", 5);
    // 20 MB were said; the server has read some, and the two kernels hold some.
    expect(peer.socket.bufferedAmount).toBeGreaterThan(5_000_000);
    peer.socket.terminate();
    await expect.poll(() => metric(server, "antiphon_sessions_open")).toBe(0);
  });
  test("a peer that does not read is closed with 1008 (without a model)", async () => {
    const load = async () => duplexEngine({ textLength: 200_000 });
    await using other = await voiceChatServer({ load, unsentBytesMax: 1_000_000 });
    const peer = await Peer.ready(other);
    peer.socket.pause();
    peer.say(append(frames(200)));
    await expect.poll(() => metric(other, 'antiphon_errors_total{code="client_too_slow"}')).toBe(1);
    peer.socket.resume();
    expect(await peer.closed).toBe(1008);
  });
});

describe("one session at a time", () => {
  test("a second connection: server_busy and 1013, and nothing else", async () => {
    const peer = await Peer.ready(server);
    const second = new Peer(server);
    expect(await second.closed).toBe(1013);
    expect(second.heard.map(({ type }) => type)).toEqual(["error"]);
    expect(codes(second)).toEqual(["server_busy"]);
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
  test.each([
    ["commit", { type: "input_audio_buffer.commit" }],
    ["cancel", { type: "session.cancel" }],
  ])("the place is free before the close frame of a %s", async (_, message) => {
    for (let count = 0; count < 10; count++) {
      const peer = await Peer.ready(server);
      peer.say(append(frames(1)), message);
      // At the instant of the frame: the connection itself may still be closing.
      await new Promise<void>((resolve) => {
        const receiver = (peer.socket as unknown as { _receiver: { once(name: string, then: () => void): void } })
          ._receiver;
        receiver.once("conclude", () => resolve());
      });
      const next = new Peer(server);
      await next.until("session.created");
      next.socket.close();
      await next.closed;
    }
  });
  test("a peer that vanishes in the middle of an append cancels the rest: no frame is computed for nobody", async () => {
    const before = await framesAnswered(server);
    const peer = await Peer.ready(server);
    peer.say(append(frames(300)));
    await peer.until("response.audio.delta");
    peer.socket.terminate();
    await expect.poll(() => metric(server, "antiphon_sessions_open")).toBe(0);
    expect((await framesAnswered(server)) - before).toBeLessThan(300);
    const next = await Peer.ready(server);
    next.say({ type: "session.cancel" });
    expect(await next.closed).toBe(1000);
  });
  test("--max-sessions 2: two live side by side, undisturbed, and a third is refused", async () => {
    await using wide = await voiceChatServer({ flags: { maxSessions: "2" } });
    const peers = await Promise.all([Peer.ready(wide, { seed: 3 }), Peer.ready(wide, { seed: 3 })]);
    expect(await new Peer(wide).closed).toBe(1013);
    for (let at = 0; at < question.length; at += 2560) {
      for (const peer of peers) peer.say(append(question.subarray(at, at + 2560)));
    }
    for (const peer of peers) peer.say({ type: "input_audio_buffer.commit" });
    await Promise.all(peers.map((peer) => peer.closed));
    const plain = peers.map(({ heard }) => heard.map(({ event_id, session, ...event }) => event));
    expect(plain[0]).toEqual(plain[1]);
    expect(plain[0]?.at(-1)).toMatchObject({ type: "response.done" });
  });
});

describe("the door", () => {
  let guarded: Server;
  beforeAll(async () => {
    const flags = {
      apiKey: "secret",
      apiPrefix: "/voice",
      allowedOrigins: "https://good.example",
      corsOrigins: "https://cors.example",
    };
    guarded = await voiceChatServer({ load: async () => duplexEngine(), flags });
  });
  afterAll(() => guarded[Symbol.asyncDispose]());
  const headers = { Authorization: "Bearer secret" };
  const PATH = "/voice/v1/realtime";

  test.each([
    ["the key", PATH, { headers }, 101],
    ["no key", PATH, {}, 401],
    ["a wrong key", PATH, { headers: { Authorization: "Bearer wrong" } }, 401],
    ["no prefix", "/v1/realtime", { headers }, 404],
    ["a foreign origin", PATH, { headers, origin: "https://evil.example" }, 403],
    ["an allowed origin", PATH, { headers, origin: "https://good.example" }, 101],
    ["a cors origin", PATH, { headers, origin: "https://cors.example" }, 101],
  ])("%s", async (_, path, options, status) => {
    const peer = new Peer(guarded, path, options);
    expect(await peer.status()).toBe(status);
    peer.socket.terminate();
    await peer.closed;
    await expect.poll(() => metric(guarded, "antiphon_sessions_open")).toBe(0);
  });
  test("a page sends its key as a subprotocol, and reads its refusal as an event, for it cannot read a status", async () => {
    const wrong = new Peer(guarded, PATH, {}, ["realtime", "openai-insecure-api-key.wrong"]);
    expect(await wrong.closed).toBe(1008);
    expect(wrong.heard.map(({ type }) => type)).toEqual(["error"]);
    expect(codes(wrong)).toEqual(["invalid_request"]);
    const right = new Peer(guarded, PATH, {}, ["realtime", "openai-insecure-api-key.secret"]);
    await right.until("session.created");
    right.socket.close();
    await right.closed;
    await expect.poll(() => metric(guarded, "antiphon_sessions_open")).toBe(0);
  });
  test.each(["chat/completions", "completions", "responses", "messages"])(
    "POST /v1/%s: 501, and where to go",
    async (path) => {
      const response = await fetch(`${guarded.url}/voice/v1/${path}`, { method: "POST", headers, body: "{}" });
      expect(response.status).toBe(501);
      const { error } = (await response.json()) as { error: { message: string } };
      expect(error.message).toContain("/v1/realtime");
    },
  );
  test("the served id is the alias, else the directory's name", async () => {
    const ids = async (on: Server): Promise<unknown> => {
      const { data } = (await (await fetch(`${on.url}/v1/models`)).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    expect(await ids(server)).toEqual(["aria"]);
    // The slash that shells complete made it a model without a name.
    await using plain = await voiceChatServer({ flags: { model: `${checkpointDirectory("tiny-f32")}/` } });
    expect(await ids(plain)).toEqual(["checkpoint"]);
  });
});

describe("a server that comes or goes (without a model)", () => {
  test("still loads: 1013, and the door opens when it has", async () => {
    let loaded: () => void = () => {};
    const load = (): Promise<Engine> =>
      new Promise((resolve) => {
        loaded = () => resolve(duplexEngine());
      });
    const config = { port: "0", model: "unused" };
    await using early = await createServer({
      config: loadConfig({ flags: config, env: {} }),
      log: silentLog,
      load,
      sessions: voiceChatSessions({ log: silentLog }),
    });
    await early.listen();
    const peer = new Peer(early);
    expect(await peer.closed).toBe(1013);
    expect(peer.heard.map(({ type }) => type)).toEqual(["error"]);
    loaded();
    await early.ready;
    const next = await Peer.ready(early);
    next.say({ type: "session.cancel" });
    expect(await next.closed).toBe(1000);
  });
  test("shuts down: 1012, at once, for there is no turn to wait for", async () => {
    const load = async () => duplexEngine();
    await using going = await voiceChatServer({ load });
    const peer = await Peer.ready(going);
    await going.drain();
    expect(await peer.closed).toBe(1012);
    const late = new Peer(going);
    expect(await late.closed).toBe(1012);
  });
});

describe("a model that is slower than the clock (without a model)", () => {
  test("is told in the log, once, and in /metrics with stage times, realtime factor and lag", async () => {
    const lines: { msg: string; level: number; lagMs?: number }[] = [];
    const log = createLog("warn", (line) => void lines.push(JSON.parse(line)));
    await using slow = await voiceChatServer({ load: async () => duplexEngine({ frameMs: 120 }), log });
    const peer = await Peer.ready(slow);
    peer.say(append(frames(50)));
    await peer.until("response.audio.delta", 50);
    const behind = lines.filter(({ msg }) => msg.includes("falls behind the clock"));
    // 40 ms more with each frame: a second after 25 of them.
    expect(behind).toMatchObject([{ level: 40, lagMs: 1000 }]);
    expect(await metric(slow, "antiphon_realtime_factor")).toBeCloseTo(1.5);
    expect(await metric(slow, "antiphon_lag_seconds")).toBeCloseTo(2);
    expect(await metric(slow, "antiphon_late_frames_total")).toBe(50);
    expect(await metric(slow, "antiphon_sessions_behind_total")).toBe(1);
    expect(await metric(slow, 'antiphon_frame_seconds_count{stage="perception"}')).toBe(50);
    expect(await metric(slow, 'antiphon_frame_seconds_sum{stage="language"}')).toBeCloseTo(3);
    peer.say({ type: "session.cancel" });
    await peer.closed;
    expect(await metric(slow, "antiphon_lag_seconds")).toBe(0);
  });
  // Only what the networks took was counted: with its process held up for two seconds, each answer came two seconds late, and
  // the lag was 0.
  test("what holds its process up is lag like any other, and is caught up with", async () => {
    const time = new ManualClock();
    const beforeFrame = (index: number): void => {
      if (index === 1) time.advance(2000);
    };
    await using held = await voiceChatServer({
      clock: time,
      load: async () => duplexEngine({ frameMs: 10, beforeFrame }),
    });
    const peer = await Peer.ready(held);
    const lagSeconds = (): Promise<number> => metric(held, "antiphon_lag_seconds");
    for (const [count, lag] of [
      [1, 0],
      [2, 1.92],
      [12, 1.22],
      [32, 0],
    ] as const) {
      // What passes while nothing is said is nobody's lag.
      time.advance(10_000);
      while (peer.of("response.audio.delta").length < count) {
        const next = peer.of("response.audio.delta").length + 1;
        peer.say(append(frames(1)));
        await peer.until("response.audio.delta", next);
      }
      expect(await lagSeconds()).toBeCloseTo(lag);
    }
    expect(await metric(held, "antiphon_sessions_behind_total")).toBe(1);
    expect(await metric(held, "antiphon_late_frames_total")).toBe(0);
    peer.say({ type: "session.cancel" });
    await peer.closed;
  });
  test("one that keeps up is not complained about", async () => {
    const lines: string[] = [];
    const log = createLog("warn", (line) => void lines.push(line));
    await using quick = await voiceChatServer({ load: async () => duplexEngine({ frameMs: 79 }), log });
    const peer = await Peer.ready(quick);
    peer.say(append(frames(100)), { type: "input_audio_buffer.commit" });
    await peer.closed;
    expect(lines).toEqual([]);
    expect(await metric(quick, "antiphon_late_frames_total")).toBe(0);
  });
});
