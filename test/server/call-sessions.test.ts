/** Calls of the whole server: the session behind the peer, its sideband, its secret, and what the transport refuses. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Server } from "../../src/server/server.ts";
import { duplexEngine } from "../support/duplex-engine.ts";
import type { TalkingEngine } from "../support/talking-engine.ts";
import { allCallsEnded, talkingServer } from "../support/talking-server.ts";
import { voiceChatServer } from "../support/voicechat-server.ts";
import { WebRtcPeer } from "../support/webrtc-peer.ts";

type Event = { readonly type: string } & Record<string, unknown>;

let server: Server;
let engine: TalkingEngine;
beforeAll(async () => {
  ({ server, engine } = await talkingServer({ apiKey: "secret" }));
});
afterAll(() => server[Symbol.asyncDispose]());

const KEY = { Authorization: "Bearer secret" };
const peers: WebRtcPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await allCallsEnded(engine);
});

async function call(headers: Record<string, string> = KEY): Promise<{ peer: WebRtcPeer; location: string }> {
  const peer = new WebRtcPeer();
  peers.push(peer);
  const response = await fetch(`${server.url}/v1/realtime/calls`, {
    method: "POST",
    headers: { "Content-Type": "application/sdp", ...headers },
    body: await peer.offer(),
  });
  expect(response.status).toBe(201);
  await peer.accept(await response.text());
  return { peer, location: response.headers.get("Location")! };
}

/** A second control channel of the call at `location`. */
class Sideband {
  readonly events: Event[] = [];
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  constructor(location: string, headers: Record<string, string> = KEY) {
    const callId = location.split("/").at(-1);
    this.#socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/realtime?call_id=${callId}`, { headers });
    this.#socket.on("message", (data) => this.events.push(JSON.parse(data.toString())));
    this.#socket.on("error", () => {});
    this.closed = new Promise((resolve) => this.#socket.once("close", resolve));
  }
  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }
  send(event: object): void {
    this.#socket.send(JSON.stringify(event));
  }
  of(type: string): Event[] {
    return this.events.filter((event) => event.type === type);
  }
}

describe("a call", () => {
  it("is seen and steered over its sideband, which its end closes", async () => {
    const { peer, location } = await call();
    await peer.event("session.created");
    const sideband = new Sideband(location);
    await peer.until(() => sideband.isOpen);
    sideband.send({ type: "session.update", session: { type: "realtime", instructions: "Be kind." } });
    const updated = await peer.event("session.updated");
    expect(updated["session"]).toMatchObject({ instructions: "Be kind." });
    await peer.until(() => sideband.of("session.updated").length === 1);

    sideband.send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] },
    });
    sideband.send({ type: "response.create" });
    await peer.event("output_audio_buffer.started");
    // Twelve seconds of voice are on their way, and stop.
    sideband.send({ type: "output_audio_buffer.clear" });
    await peer.event("output_audio_buffer.cleared");
    await peer.until(() => sideband.of("output_audio_buffer.cleared").length === 1);
    // The voice itself goes to the peer alone.
    expect(sideband.of("response.output_audio.delta")).toEqual([]);

    expect((await fetch(`${server.url}${location}/hangup`, { method: "POST", headers: KEY })).status).toBe(200);
    expect(await sideband.closed).toBe(1000);
    await peer.until(() => peer.closed);
  });

  it("has no sideband for strangers, and none once it is over", async () => {
    const { peer, location } = await call();
    await peer.event("session.created");
    const stranger = new Sideband(location, {});
    await stranger.closed;
    expect(stranger.events).toEqual([]);
    await fetch(`${server.url}${location}`, { method: "DELETE", headers: KEY });
    await peer.until(() => peer.closed);
    const late = new Sideband(location);
    await late.closed;
    expect(late.events.map(({ type }) => type)).toEqual(["error"]);
    expect(late.events[0]?.["error"]).toMatchObject({ code: "not_found" });
  });

  it("opens with a client secret, whose session stands", async () => {
    const response = await fetch(`${server.url}/v1/realtime/client_secrets`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...KEY },
      body: JSON.stringify({ session: { type: "realtime", instructions: "From the secret." } }),
    });
    const { value } = (await response.json()) as { value: string };
    const { peer } = await call({ Authorization: `Bearer ${value}` });
    const created = await peer.event("session.created");
    expect(created["session"]).toMatchObject({ instructions: "From the secret." });
  });

  it("takes audio over the track alone", async () => {
    const { peer } = await call();
    await peer.event("session.created");
    peer.send({ type: "input_audio_buffer.append", audio: "AAAA" });
    const refused = await peer.event("error");
    expect(refused["error"]).toMatchObject({ code: "invalid_event_for_transport" });
  });

  it("wants a key, and says which body it takes", async () => {
    const post = (headers: Record<string, string>, body: string): Promise<Response> =>
      fetch(`${server.url}/v1/realtime/calls`, { method: "POST", headers, body });
    expect((await post({ "Content-Type": "application/sdp" }, "v=0")).status).toBe(401);
    const json = await post({ "Content-Type": "application/json", ...KEY }, "{}");
    expect(json.status).toBe(415);
    expect(await json.json()).toMatchObject({ error: { message: expect.stringContaining("multipart/form-data") } });
    const empty = await post({ "Content-Type": "application/sdp", ...KEY }, "v=0\r\n");
    expect(empty.status).toBe(400);
    expect(await empty.json()).toMatchObject({
      error: { code: "invalid_sdp", message: expect.stringMatching(/m=audio/) },
    });
  });
});

const offerTo = async (url: string, peer: WebRtcPeer): Promise<Response> =>
  fetch(`${url}/v1/realtime/calls`, {
    method: "POST",
    headers: { "Content-Type": "application/sdp" },
    body: await peer.offer(),
  });
const newPeer = (): WebRtcPeer => {
  const peer = new WebRtcPeer();
  peers.push(peer);
  return peer;
};

describe("an offer that cannot become a call", () => {
  it("finds the one media port taken: 503, when to try again, and the option that gives more", async () => {
    const { server: narrow } = await talkingServer({ iceUdpPort: "50340" });
    try {
      const peer = newPeer();
      await peer.accept(await (await offerTo(narrow.url, peer)).text());
      await peer.event("session.created");
      const refused = await offerTo(narrow.url, newPeer());
      expect(refused.status).toBe(503);
      expect(refused.headers.get("Retry-After")).toBe("5");
      expect(await refused.json()).toMatchObject({
        error: {
          code: "session_limit_reached",
          type: "rate_limit_error",
          message: expect.stringMatching(/--ice-udp-port/),
        },
      });
      peer.close();
      const next = newPeer();
      let response = await offerTo(narrow.url, next);
      while (response.status === 503) response = await offerTo(narrow.url, next);
      await next.accept(await response.text());
      await next.event("session.created");
    } finally {
      await narrow[Symbol.asyncDispose]();
    }
  });

  it("is at a VoiceChat server: 501, and where to talk instead", async () => {
    await using duplex = await voiceChatServer({ load: async () => duplexEngine() });
    const refused = await offerTo(duplex.url, newPeer());
    expect(refused.status).toBe(501);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "not_implemented",
        type: "invalid_request_error",
        message: expect.stringMatching(/WebSocket.*\/v1\/realtime/),
      },
    });
  });

  it("comes while the server is shutting down", async () => {
    const { server: going } = await talkingServer();
    await going.drain();
    const refused = await offerTo(going.url, newPeer());
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: "server_draining" } });
    await going[Symbol.asyncDispose]();
  });
});

// A call that was just being answered held the shutdown up for half a minute.
it("a server shuts down at once, whatever its calls are doing", async () => {
  const { server: going } = await talkingServer({ drainTimeoutMs: "0" });
  const untaken = await offerTo(going.url, newPeer());
  expect(untaken.status).toBe(201);
  const answering = offerTo(going.url, newPeer());
  await expect.poll(() => sessionsOf(going)).toBe(2);
  await going.drain();
  expect([201, 503]).toContain((await answering).status);
  expect(await sessionsOf(going)).toBe(0);
  await going[Symbol.asyncDispose]();
});

// A call that the shutdown cut off in mid-answer just ended: a data channel has no close code that could say why.
it("a call that a shutdown cuts off hears why", async () => {
  const { server: going } = await talkingServer({ drainTimeoutMs: "300" });
  const peer = newPeer();
  await peer.accept(await (await offerTo(going.url, peer)).text());
  await peer.event("session.created");
  peer.send({ type: "response.create" });
  await peer.event("response.created");
  await going.drain();
  expect(await peer.event("error")).toMatchObject({ error: { code: "server_draining", type: "server_error" } });
  await peer.until(() => peer.closed);
  await going[Symbol.asyncDispose]();
});

async function sessionsOf({ url }: Server): Promise<number> {
  return ((await (await fetch(`${url}/health`)).json()) as { sessions: number }).sessions;
}
