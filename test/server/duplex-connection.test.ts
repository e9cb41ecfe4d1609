import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { floatToPcm16 } from "../../src/audio/pcm.ts";
import { readWav } from "../../src/audio/wav.ts";
import { VoiceChatEngine } from "../../src/engines/voicechat/engine.ts";
import { DuplexConnection } from "../../src/server/duplex-connection.ts";
import { MemoryTransport } from "../../src/server/memory.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { randomId } from "../../src/util/ids.ts";
import { silentLog } from "../../src/util/log.ts";
import { checkpointDirectory, FIXTURES } from "../support/voicechat.ts";

type Wire = Record<string, unknown> & { readonly type: string };

let engine: VoiceChatEngine;
beforeAll(async () => {
  engine = await VoiceChatEngine.load({
    directory: checkpointDirectory("tiny-f32"),
    alias: "tiny-f32",
    threads: 1,
    sessionSeconds: 600,
    log: silentLog,
  });
});
afterAll(() => engine[Symbol.asyncDispose]());

function connect(): {
  readonly clock: ManualClock;
  readonly transport: MemoryTransport;
  readonly ended: Promise<void>;
  readonly say: (message: unknown) => void;
  readonly heard: () => Wire[];
  readonly until: (type: string, count?: number) => Promise<void>;
} {
  const clock = new ManualClock();
  const transport = new MemoryTransport({ audioPath: "events", clock });
  const connection = new DuplexConnection({ transport, engine, clock, ids: randomId, log: silentLog });
  const heard = (): Wire[] => transport.client.texts.map((text) => JSON.parse(text) as Wire);
  return {
    clock,
    transport,
    ended: connection.run().then(() => connection.leave()),
    say: (message) => transport.client.send(typeof message === "string" ? message : JSON.stringify(message)),
    heard,
    until: (type, count = 1) =>
      transport.client.until(
        (texts) => texts.filter((text) => (JSON.parse(text) as Wire).type === type).length >= count,
      ),
  };
}

const base64 = (samples: Float32Array): string => Buffer.from(floatToPcm16(samples)).toString("base64");
const append = (samples: Float32Array): unknown => ({ type: "input_audio_buffer.append", audio: base64(samples) });
const errors = (heard: readonly Wire[]): unknown[] =>
  heard.flatMap((event) => (event.type === "error" ? [(event["error"] as { code: string }).code] : []));

/** Without what differs from session to session. */
function plain({ event_id, ...event }: Wire): Record<string, unknown> {
  expect(event_id).toMatch(/^event_[0-9a-f]{16}$/);
  const session = event["session"] as { id: string } | undefined;
  if (session === undefined) return event;
  expect(session.id).toMatch(/^sess_[0-9a-f]{16}$/);
  return { ...event, session: { ...session, id: "sess" } };
}

const SAMPLES = "response.audio.delta";

/** The events with their audio as samples, and without the ids. */
function comparable(events: readonly Wire[]): { readonly events: unknown[]; readonly samples: Int16Array } {
  const bytes: Buffer[] = [];
  const rest = events.map((event) => {
    if (event.type !== SAMPLES) return plain(event);
    bytes.push(Buffer.from(event["delta"] as string, "base64"));
    return { ...plain(event), delta: bytes.at(-1)?.length };
  });
  return { events: rest, samples: new Int16Array(Uint8Array.from(Buffer.concat(bytes)).buffer) };
}

test("one session equals the reference server's, event by event", async () => {
  const lines = readFileSync(`${FIXTURES}/tiny-f32/reference/wire.jsonl`, "utf8").trim().split("\n");
  const recorded = lines.map((line) => JSON.parse(line) as Wire & { readonly dir: string });
  const recording = readWav(readFileSync(`${FIXTURES}/audio/question.wav`)).samples;
  const samples = new Float32Array(recording.length + 8000);
  samples.set(recording);
  const { say, heard, ended, transport } = connect();
  for (const { dir, ...message } of recorded) {
    if (dir !== ">") continue;
    if (message.type === "input_audio_buffer.append") continue;
    if (message.type === "input_audio_buffer.commit") {
      for (let at = 0; at < samples.length; at += 2000) say(append(samples.subarray(at, at + 2000)));
    }
    say(message);
  }
  await ended;
  const ours = comparable(heard());
  const theirs = comparable(recorded.flatMap(({ dir, ...event }) => (dir === "<" ? [event as Wire] : [])));
  expect(ours.events).toEqual(theirs.events);
  // Float32 sums in another order differ by about 1e-7, which moves one rounding to 16 bits in a hundred by one step.
  const steps = ours.samples.map((sample, index) => Math.abs(sample - theirs.samples[index]!));
  expect(Math.max(...steps)).toBeLessThanOrEqual(1);
  expect(steps.filter((step) => step > 0).length / steps.length).toBeLessThan(0.01);
  expect(transport.closed).toEqual({ code: 1000, reason: "" });
});

test("before the session is configured only its configuration and pings are heard", async () => {
  const { say, heard, until, transport, ended } = connect();
  say({ type: "session.ping" });
  say(append(new Float32Array(10)));
  say({ type: "input_audio_buffer.commit" });
  say({ type: "no.such.thing" });
  say("[]");
  await until("error", 4);
  expect(heard().map((event) => event.type)).toEqual(["session.created", "session.pong", ...Array(4).fill("error")]);
  expect(new Set(errors(heard()))).toEqual(new Set(["invalid_request"]));
  transport.client.close();
  await ended;
});

test("a configuration that cannot be leaves the session open for another", async () => {
  const { say, heard, until, transport, ended } = connect();
  say({ type: "session.update", session: { seed: -1 } });
  say({ type: "session.update", session: { max_streaming_seconds: 0 } });
  say({ type: "session.update", session: { seed: 3, model: "whatever" } });
  say({ type: "session.update" });
  await until("error", 3);
  expect(errors(heard())).toEqual([
    "session_initialization_failed",
    "session_initialization_failed",
    "invalid_request",
  ]);
  expect(heard().find((event) => event.type === "session.updated")).toMatchObject({
    session: { state: "ready", model: "tiny-f32", frame_samples: 1280 },
  });
  transport.client.close();
  await ended;
});

test("audio that cannot be used is an inference_error, and the loop goes on", async () => {
  const { say, heard, until, ended } = connect();
  say({ type: "session.update", session: { max_streaming_seconds: 0.16 } });
  say({ type: "input_audio_buffer.append", audio: "a$==" });
  say({ type: "input_audio_buffer.append", audio: "AAAA" });
  say({ type: "input_audio_buffer.append", audio: "AAAA", sample_rate: "x" });
  say({ type: "input_audio_buffer.append", audio: "AAA=", sample_rate: 24_000 });
  say({ type: "unknown" });
  await until("error", 5);
  say(append(new Float32Array(5 * 1280)));
  await until("error", 6);
  say({ type: "input_audio_buffer.commit" });
  await ended;
  const codes = Array(4).fill("inference_error");
  expect(errors(heard())).toEqual([...codes, "invalid_request", "inference_error"]);
  expect(heard().filter((event) => event.type === "response.audio.delta")).toHaveLength(2);
  expect(heard().at(-1)).toMatchObject({ type: "response.done", frame_index: 2 });
});

test.each(["session.cancel", "response.cancel"])("%s ends with response.cancelled and 1000", async (type) => {
  const { say, heard, ended, transport } = connect();
  say({ type: "session.update" });
  say(append(new Float32Array(2000)));
  say({ type });
  await ended;
  expect(heard().at(-1)).toMatchObject({ type: "response.cancelled", frame_index: 1 });
  expect(transport.closed?.code).toBe(1000);
});

describe("silence", () => {
  test("a session that is not configured within 30 s is closed with 1008", async () => {
    const { clock, heard, until, ended, transport } = connect();
    await until("session.created");
    clock.advance(30_000);
    await ended;
    expect(errors(heard())).toEqual(["invalid_request"]);
    expect(transport.closed?.code).toBe(1008);
  });

  test("a configured session is closed after 120 s without a message; a message begins the wait anew", async () => {
    const { clock, say, heard, until, ended, transport } = connect();
    say({ type: "session.update" });
    await until("session.updated");
    clock.advance(119_000);
    say({ type: "session.ping" });
    await until("session.pong");
    clock.advance(119_000);
    expect(transport.closed).toBeNull();
    clock.advance(1000);
    await ended;
    expect(errors(heard())).toEqual(["invalid_request"]);
    expect(transport.closed?.code).toBe(1008);
  });
});

test("one session at a time: the next is configured once the first has gone, in whatever way", async () => {
  const leave: ((peer: ReturnType<typeof connect>) => void)[] = [
    (peer) => peer.say({ type: "session.cancel" }),
    (peer) => peer.say({ type: "input_audio_buffer.commit" }),
    (peer) => peer.transport.client.close(),
    (peer) => peer.clock.advance(120_000),
  ];
  const outputs: unknown[] = [];
  for (const go of leave) {
    const peer = connect();
    peer.say({ type: "session.update", session: { seed: 5 } });
    peer.say(append(new Float32Array(3 * 1280).fill(0.01)));
    // The answer to a ping says that all before it has been worked on.
    peer.say({ type: "session.ping" });
    await peer.until("session.pong");
    const second = connect();
    second.say({ type: "session.update" });
    await second.until("error");
    expect(errors(second.heard())).toEqual(["session_initialization_failed"]);
    second.transport.client.close();
    await second.ended;
    go(peer);
    await peer.ended;
    outputs.push(
      peer
        .heard()
        .filter((event) => event.type === "response.audio.delta")
        .map((event) => event["delta"]),
    );
  }
  for (const output of outputs) expect(output).toEqual(outputs[0]);
});
