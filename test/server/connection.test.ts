import { describe, expect, it } from "vitest";
import type { EngineCapabilities } from "../../src/engines/engine.ts";
import { AppError, CapacityError } from "../../src/errors.ts";
import type { ServerEvent } from "../../src/protocol/openai/server-events.ts";
import { Connection } from "../../src/server/connection.ts";
import type { ConnectionOptions } from "../../src/server/connection-options.ts";
import type { TurnLatency } from "../../src/server/latency.ts";
import { MemoryTransport } from "../../src/server/memory.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { countingIds } from "../../src/util/ids.ts";
import { createLog, silentLog } from "../../src/util/log.ts";
import { ScriptedEngine, type ScriptedStream } from "../support/scripted-engine.ts";

interface Peer {
  readonly transport: MemoryTransport;
  readonly connection: Connection;
  readonly engine: ScriptedEngine;
  readonly clock: ManualClock;
  readonly running: Promise<void>;
  readonly stream: ScriptedStream;
  readonly events: () => ServerEvent[];
  /** Sends and waits until the last of it was worked on. */
  readonly send: (event: object | string) => Promise<void>;
  readonly until: (type: string) => Promise<void>;
}

type Rest = Partial<ConnectionOptions> & {
  readonly audioPath?: "events" | "track";
  readonly capabilities?: Partial<EngineCapabilities>;
};

async function connect(rest: Rest = {}): Promise<Peer> {
  const { audioPath = "events", capabilities, ...options } = rest;
  const clock = new ManualClock();
  const engine = (options.engine as ScriptedEngine | undefined) ?? new ScriptedEngine(capabilities);
  const transport = new MemoryTransport({ audioPath, clock });
  const connection = new Connection({
    transport,
    engine,
    session: { type: "realtime", model: null },
    clock,
    ids: countingIds(),
    log: silentLog,
    ...options,
  });
  const running = connection.run();
  const events = (): ServerEvent[] => transport.client.texts.map((text) => JSON.parse(text) as ServerEvent);
  const until = (type: string): Promise<void> =>
    transport.client.until((texts) => texts.some((text) => text.includes(`"type":"${type}"`)));
  await until("conversation.created");
  let probes = 0;
  const send = async (event: object | string): Promise<void> => {
    probes += 1;
    transport.client.send(typeof event === "string" ? event : JSON.stringify(event));
    transport.client.send(JSON.stringify({ type: "conversation.item.retrieve", item_id: `probe_${probes}` }));
    await transport.client.until((texts) => texts.some((text) => text.includes(`probe_${probes}'`)));
  };
  return { transport, connection, engine, clock, running, events, send, until, stream: engine.stream };
}

const errors = (peer: Peer): string[] =>
  peer
    .events()
    .flatMap((event) => (event.type === "error" && !event.error.message.includes("probe_") ? [event.error.code] : []));

describe("a connection", () => {
  it("answers each kind of bad input and goes on", async () => {
    const peer = await connect();
    await peer.send("not JSON");
    await peer.send("[]");
    await peer.send({ type: "nonsense" });
    await peer.send({ type: "input_audio_buffer.append", audio: "%%%" });
    await peer.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(3).toString("base64") });
    await peer.send({ type: "input_audio_buffer.append", audio: "A".repeat(20 * 1024 * 1024 + 8) });
    expect(errors(peer)).toEqual([
      "invalid_json",
      "invalid_event",
      "unknown_or_invalid_event",
      "invalid_audio",
      "invalid_audio",
      "invalid_audio",
    ]);
    await peer.send({ type: "response.create" });
    expect(peer.stream.requests).toHaveLength(1);
    peer.transport.client.close();
    await peer.running;
  });

  it("lets the engine's stream go when the client vanishes in mid-answer", async () => {
    const peer = await connect();
    await peer.send({ type: "response.create" });
    peer.stream.say(peer.stream.lastRequest.responseId, "Hello", 500);
    peer.transport.client.close();
    await peer.running;
    expect(peer.stream.disposed).toBe(true);
    expect(peer.clock.pendingCount).toBe(0);
  });

  it("closes a client that never reads", async () => {
    const peer = await connect({ limits: { bufferedBytesMax: 1000 } });
    peer.transport.bufferedBytes = 1001;
    peer.transport.client.send(JSON.stringify({ type: "response.create" }));
    await peer.running;
    expect(peer.transport.closed).toEqual({ code: 1008, reason: "client_too_slow" });
  });

  it("ends after silence of every kind, and not while something comes", async () => {
    const peer = await connect({ limits: { idleMsMax: 60_000 } });
    peer.clock.advance(50_000);
    await peer.send({ type: "response.create" });
    peer.clock.advance(50_000);
    expect(peer.transport.closed).toBeNull();
    peer.clock.advance(10_000);
    await peer.running;
    expect(peer.transport.closed).toEqual({ code: 1008, reason: "idle_timeout" });
    expect(errors(peer)).toEqual(["idle_timeout"]);
  });

  it("ends at its greatest length, which it tells beforehand", async () => {
    const peer = await connect({ limits: { sessionMsMax: 3_600_000, idleMsMax: null } });
    expect(peer.events()[0]).toMatchObject({ session: { expires_at: 3600 } });
    peer.clock.advance(3_600_000);
    await peer.running;
    expect(peer.transport.closed).toEqual({ code: 1000, reason: "session_expired" });
  });

  it("tells why the engine has no place for it", async () => {
    class FullEngine extends ScriptedEngine {
      override open(): Promise<never> {
        return Promise.reject(new CapacityError("session_limit_reached"));
      }
    }
    const clock = new ManualClock();
    const transport = new MemoryTransport({ audioPath: "events", clock });
    const session = { type: "realtime", model: null } as const;
    const engine = new FullEngine();
    await new Connection({ transport, engine, session, clock, ids: countingIds(), log: silentLog }).run();
    expect(JSON.parse(transport.client.texts[0] ?? "")).toMatchObject({ error: { code: "session_limit_reached" } });
    expect(transport.closed).toEqual({ code: 1008, reason: "session_limit_reached" });
  });

  it("closes 1011 on a fault of ours, and another connection of the same engine goes on", async () => {
    const engine = new ScriptedEngine();
    const other = await connect({ engine });
    const peer = await connect({ engine });
    peer.stream.push = () => {
      throw new TypeError("a bug");
    };
    peer.transport.client.send(JSON.stringify({ type: "input_audio_buffer.append", audio: "AAA=" }));
    await peer.running;
    expect(peer.transport.closed).toEqual({ code: 1011, reason: "internal_error" });
    expect(errors(peer)).toEqual(["internal_error"]);
    expect(peer.transport.client.texts.join()).not.toContain("a bug");
    await other.send({ type: "response.create" });
    expect(other.stream.requests).toHaveLength(1);
  });

  it("closes 1011 when the engine's stream fails, and says with what", async () => {
    const peer = await connect();
    await peer.send({ type: "response.create" });
    peer.stream.deliver({ type: "failed", error: new AppError("worker_died") });
    await peer.running;
    expect(peer.transport.closed?.code).toBe(1011);
    expect(peer.events().filter((event) => event.type === "response.done")).toMatchObject([
      { response: { status: "failed", status_details: { error: { code: "worker_died" } } } },
    ]);
  });

  it("closes 1011 when the engine ends without a word", async () => {
    const peer = await connect();
    peer.stream.events.close();
    await peer.running;
    expect(peer.transport.closed).toEqual({ code: 1011, reason: "engine_failed" });
  });

  it("does not read on while the engine is far behind", async () => {
    const peer = await connect({ limits: { backlogMsMax: 1000 } });
    peer.stream.backlogSamples = 16_001;
    peer.transport.client.send(JSON.stringify({ type: "input_audio_buffer.append", audio: "AAA=" }));
    peer.transport.client.send(JSON.stringify({ type: "response.create" }));
    for (let i = 0; i < 20; i++) {
      await new Promise(setImmediate);
      peer.clock.advance(10);
    }
    expect(peer.stream.requests).toHaveLength(0);
    peer.stream.backlogSamples = 0;
    peer.clock.advance(10);
    await peer.until("response.created");
  });

  it("drains: what is being answered is finished, then it ends", async () => {
    const peer = await connect();
    await peer.send({ type: "response.create" });
    peer.connection.drain();
    peer.clock.advance(1000);
    expect(peer.transport.closed).toBeNull();
    peer.stream.say(peer.stream.lastRequest.responseId, "Bye.", 100);
    peer.stream.end(peer.stream.lastRequest.responseId);
    await peer.until("response.done");
    peer.clock.advance(1000);
    await peer.running;
    expect(peer.transport.closed?.code).toBe(1012);
    expect(errors(peer)).toEqual(["server_draining"]);
  });

  it("starts with the configuration that came with its request", async () => {
    const configuration = { type: "realtime", instructions: "Sing.", audio: { output: { voice: "amy" } } } as const;
    const peer = await connect({ session: { type: "realtime", model: null, configuration } });
    expect(peer.events()[0]).toMatchObject({ session: { instructions: "Sing.", audio: { output: { voice: "amy" } } } });
    expect(peer.stream.settings.systemPrompt).toBe("Sing.");
  });

  it("measures each turn from the end of the speech, and logs it without a word of it", async () => {
    const turns: TurnLatency[] = [];
    const lines: string[] = [];
    const observer = {
      turn: (latency: TurnLatency) => turns.push(latency),
      response: () => {},
      audio: () => {},
      error: () => {},
    };
    const peer = await connect({ observer, log: createLog("info", (line) => lines.push(line)) });
    peer.stream.startSpeech("s1");
    peer.stream.stopSpeech("s1");
    await peer.until("input_audio_buffer.committed");
    peer.clock.advance(80);
    peer.stream.understand("s1", "A secret question.");
    await peer.until("response.created");
    const { responseId } = peer.stream.lastRequest;
    peer.clock.advance(50);
    peer.stream.deliver({ type: "response.mark", responseId, stage: "llm.first_token", ms: 50 });
    await new Promise(setImmediate);
    peer.clock.advance(70);
    peer.stream.say(responseId, "A secret answer.", 500);
    await peer.until("response.output_audio.delta");
    peer.clock.advance(100);
    peer.stream.end(responseId);
    await peer.until("response.done");
    expect(turns).toEqual([{ transcript: 80, first_token: 130, first_audio: 200, done: 300 }]);
    const line = lines.find((other) => other.includes('"msg":"turn"')) ?? "";
    expect(JSON.parse(line)).toMatchObject({
      transcriptMs: 80,
      firstTokenMs: 130,
      firstAudioMs: 200,
      status: "completed",
    });
    expect(lines.join()).not.toContain("secret");
  });
});

describe("a media track", () => {
  it("carries audio both ways, and no append", async () => {
    const peer = await connect({ audioPath: "track" });
    await peer.send({ type: "input_audio_buffer.append", audio: "AAA=" });
    expect(errors(peer)).toEqual(["invalid_event_for_transport"]);
    peer.transport.client.sendAudio(new Float32Array(48_000), 48_000);
    await peer.send({ type: "response.create" });
    expect(peer.stream.pushedSamples).toBeGreaterThan(15_900);
    peer.stream.say(peer.stream.lastRequest.responseId, "Hello.", 300);
    await peer.until("output_audio_buffer.started");
    expect(peer.transport.client.audio).toMatchObject([{ hz: 24_000 }]);
    expect(peer.transport.client.audio[0]?.pcm).toHaveLength(7200);
  });
});

describe("a sideband channel", () => {
  it("sees every event, and may do all but speak", async () => {
    const peer = await connect();
    const control = new MemoryTransport({ audioPath: "events", clock: peer.clock });
    const attached = peer.connection.attach(control);
    await control.client.until((texts) => texts.length >= 2);
    control.client.send(JSON.stringify({ type: "input_audio_buffer.append", audio: "AAA=" }));
    control.client.send(
      JSON.stringify({ type: "session.update", session: { type: "realtime", instructions: "Be sly." } }),
    );
    await peer.until("session.updated");
    const types = control.client.texts.map((text) => (JSON.parse(text) as ServerEvent).type);
    expect(types).toEqual(["session.created", "conversation.created", "error", "session.updated"]);
    expect(errors(peer)).toEqual([]);
    control.client.close();
    await attached;
    await peer.send({ type: "response.create" });
    expect(control.client.texts).toHaveLength(4);
    peer.transport.client.close();
    await peer.running;
  });

  it("ends with the session", async () => {
    const peer = await connect();
    const control = new MemoryTransport({ audioPath: "events", clock: peer.clock });
    const attached = peer.connection.attach(control);
    await control.client.until((texts) => texts.length >= 2);
    peer.transport.client.close();
    await peer.running;
    await attached;
    expect(control.closed).not.toBeNull();
  });
});
