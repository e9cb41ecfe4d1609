/** A second control channel as an application's own server uses it: over TLS, behind a prefix, with tools. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { conversingServer } from "../support/conversing-server.ts";
import { Client } from "../support/scripted-server.ts";
import { type JsonEvent, WebRtcPeer } from "../support/webrtc-peer.ts";

const PREFIX = "/voice";
const Authorization = "Bearer secret";
const directory = mkdtempSync(join(tmpdir(), "antiphon-sideband-"));
let server: Server;
let ca: Buffer;
beforeAll(async () => {
  server = await conversingServer({ tls: "self-signed", dataDir: directory, apiPrefix: PREFIX, apiKey: "secret" });
  ca = readFileSync(server.tls!.selfSignedFile!);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
}

function post(path: string, body = "", headers: Record<string, string> = { Authorization }): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const type = body === "" ? {} : { "Content-Type": "application/sdp" };
    const options = { method: "POST", ca, headers: { ...headers, ...type } };
    const asked = request(`${server.url}${path}`, options, async (response) => {
      resolve({ status: response.statusCode!, location: response.headers.location, body: await text(response) });
    });
    asked.on("error", reject).end(body);
  });
}

async function call(): Promise<{ peer: WebRtcPeer; location: string }> {
  const peer = new WebRtcPeer();
  cleanups.push(() => peer.close());
  const { status, location, body } = await post(`${PREFIX}/v1/realtime/calls`, await peer.offer());
  expect({ status, location }).toEqual({
    status: 201,
    location: expect.stringMatching(`^${PREFIX}/v1/realtime/calls/`),
  });
  await peer.accept(body);
  await peer.event("session.created");
  return { peer, location: location! };
}

class Sideband {
  readonly client: Client;
  readonly seen: JsonEvent[] = [];
  constructor(callId: string) {
    this.client = new Client(`${server.url}${PREFIX}/v1/realtime?call_id=${callId}`, [], {
      ca,
      headers: { Authorization },
    });
    cleanups.push(() => this.client.socket.terminate());
  }
  send(event: object): void {
    this.client.socket.send(JSON.stringify(event));
  }
  /** The next event of this type. */
  async event(type: string): Promise<JsonEvent> {
    for (;;) {
      const event = (await this.client.nextEvent()) as JsonEvent;
      this.seen.push(event);
      if (event.type === type) return event;
    }
  }
}
const idOf = (location: string): string => location.split("/").at(-1)!;

describe("a sideband over wss:", () => {
  it("sees the call's events, updates the session, answers a tool, and cancels", async () => {
    const { peer, location } = await call();
    const sideband = new Sideband(idOf(location));
    const created = await sideband.event("session.created");
    expect(created["session"]["id"]).toBe((await peer.event("session.created"))["session"]["id"]);

    const parameters = { type: "object", properties: { city: { type: "string" } } };
    const tools = [{ type: "function", name: "weather", description: "The weather.", parameters }];
    sideband.send({ type: "session.update", session: { type: "realtime", tools, tool_choice: "required" } });
    expect((await peer.event("session.updated"))["session"]["tools"]).toMatchObject([{ name: "weather" }]);

    const content = [{ type: "input_text", text: "How is the weather in Paris?" }];
    peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
    peer.send({ type: "response.create" });
    const wanted = await sideband.event("response.function_call_arguments.done");
    expect(wanted).toMatchObject({ name: "weather", arguments: '{"city":"Paris"}' });
    await sideband.event("response.done");

    const output = { type: "function_call_output", call_id: wanted["call_id"], output: "Sunny." };
    sideband.send({ type: "conversation.item.create", item: output });
    sideband.send({ type: "response.create", response: { tool_choice: "none", instructions: "A hundred words." } });
    await sideband.event("output_audio_buffer.started");
    await peer.event("output_audio_buffer.started");
    sideband.send({ type: "output_audio_buffer.clear" });
    await peer.event("output_audio_buffer.cleared");
    await sideband.event("output_audio_buffer.cleared");
    const items = peer.events.filter(({ type }) => type === "conversation.item.added").map(({ item }) => item.type);
    expect(items).toEqual(["message", "function_call", "function_call_output", "message"]);
    // The voice itself goes to the peer alone.
    expect(sideband.seen.filter(({ type }) => type === "response.output_audio.delta")).toEqual([]);

    expect((await post(`${location}/hangup`)).status).toBe(200);
    expect((await sideband.client.closed).code).toBe(1000);
    await peer.until(() => peer.closed);
  });

  it("cancels a response that is being spoken", async () => {
    const { peer, location } = await call();
    const sideband = new Sideband(idOf(location));
    await sideband.event("session.created");
    sideband.send({ type: "response.create", response: { instructions: "A hundred words." } });
    await sideband.event("response.output_audio_transcript.delta");
    sideband.send({ type: "response.cancel" });
    const done = await sideband.event("response.done");
    expect(done["response"]).toMatchObject({ status: "cancelled" });
    expect((await peer.event("response.done"))["response"]).toEqual(done["response"]);
  });

  it("outlives a mistake of its own, which the peer never hears of", async () => {
    const { peer, location } = await call();
    const sideband = new Sideband(idOf(location));
    await sideband.event("session.created");
    sideband.send({ type: "session.update", session: { type: "realtime", instrutions: "?" } });
    expect((await sideband.event("error"))["error"]).toMatchObject({ code: "unknown_parameter" });
    sideband.send({ type: "session.update", session: { type: "realtime", instructions: "Be kind." } });
    await peer.event("session.updated");
    expect(peer.events.filter(({ type }) => type === "error")).toEqual([]);
  });

  it("is told when there is no such call", async () => {
    const sideband = new Sideband("rtc_unknown");
    expect((await sideband.event("error"))["error"]).toMatchObject({
      type: "invalid_request_error",
      code: "not_found",
      message: expect.stringMatching(/no call rtc_unknown/),
    });
    expect((await sideband.client.closed).code).toBe(1008);
  });
});

describe("calls behind --api-prefix", () => {
  it("are nowhere else", async () => {
    expect((await post("/v1/realtime/calls", "v=0")).status).toBe(404);
    expect((await post(`${PREFIX}/v1/realtime/calls`, "v=0", {})).status).toBe(401);
    expect((await post(`${PREFIX}/v1/realtime/calls/rtc_unknown/hangup`)).status).toBe(404);
  });
});
