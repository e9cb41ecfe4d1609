/** Calls where they end: large events, places, keys, dead processes, and the voice that is cut off. */
import { spawnSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Server } from "../../src/server/server.ts";
import type { TalkingEngine } from "../support/talking-engine.ts";
import { allCallsEnded, talkingServer } from "../support/talking-server.ts";
import { type JsonEvent, WebRtcPeer } from "../support/webrtc-peer.ts";

const PLACES = 6;
const KEY = { Authorization: "Bearer secret" };
let server: Server;
let engine: TalkingEngine;
beforeAll(async () => {
  ({ server, engine } = await talkingServer({ apiKey: "secret", maxSessions: `${PLACES}` }));
});
afterAll(() => server[Symbol.asyncDispose]());

const peers: WebRtcPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await allCallsEnded(engine);
});

function newPeer(): WebRtcPeer {
  const peer = new WebRtcPeer();
  peers.push(peer);
  return peer;
}
async function offer(peer: WebRtcPeer, session: object | null = null): Promise<Response> {
  const sdp = await peer.offer();
  const form = new FormData();
  form.set("sdp", sdp);
  form.set("session", JSON.stringify(session));
  const raw = session === null;
  const headers = raw ? { ...KEY, "Content-Type": "application/sdp" } : KEY;
  return await fetch(`${server.url}/v1/realtime/calls`, { method: "POST", headers, body: raw ? sdp : form });
}
async function call(): Promise<{ peer: WebRtcPeer; location: string }> {
  const peer = newPeer();
  const response = await offer(peer);
  expect(response.status).toBe(201);
  await peer.accept(await response.text());
  await peer.event("session.created");
  return { peer, location: response.headers.get("Location")! };
}
async function speak(peer: WebRtcPeer): Promise<void> {
  const content = [{ type: "input_text", text: "Hello" }];
  peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  peer.send({ type: "response.create" });
  await peer.event("output_audio_buffer.started");
}
const sidebandOf = (location: string): WebSocket =>
  new WebSocket(`${server.url.replace("http", "ws")}/v1/realtime?call_id=${location.split("/").at(-1)}`, {
    headers: KEY,
  });
const ask = async (method: string, path: string, headers: Record<string, string> = KEY): Promise<number> =>
  (await fetch(`${server.url}${path}`, { method, headers })).status;
const update = (instructions: string): object => ({
  type: "session.update",
  session: { type: "realtime", instructions },
});

describe("large events", () => {
  it("go up to what the answer announces, both ways", async () => {
    const { peer } = await call();
    expect(peer.pc.remoteDescription.sdp).toMatch(/^a=max-message-size:262144\r?$/m);
    peer.send(update("x".repeat(255_000)));
    expect((await peer.event("session.updated"))["session"]["instructions"]).toHaveLength(255_000);
  });

  it("come over the sideband where the channel is too narrow, and the peer is told", async () => {
    const { peer, location } = await call();
    const sideband = sidebandOf(location);
    const events: JsonEvent[] = [];
    sideband.on("message", (data) => events.push(JSON.parse(data.toString())));
    sideband.once("open", () => sideband.send(JSON.stringify(update("x".repeat(300_000)))));
    const error = (await peer.event("error"))["error"];
    expect(error).toMatchObject({ code: "message_too_large", message: expect.stringMatching(/262144.*call_id/) });
    await expect.poll(() => events.find(({ type }) => type === "session.updated")).toBeDefined();
    peer.send(update("short"));
    expect((await peer.event("session.updated"))["session"]["instructions"]).toBe("short");
  });
});

it("a call is hung up once, by whoever has a key", async () => {
  const { peer, location } = await call();
  for (const headers of [{}, { Authorization: "Bearer wrong" }, { Authorization: "Bearer ek_unknown" }]) {
    expect(await ask("DELETE", location, headers as Record<string, string>)).toBe(401);
    expect(await ask("POST", `${location}/hangup`, headers as Record<string, string>)).toBe(401);
  }
  const answers = await Promise.all([ask("DELETE", location), ask("DELETE", location), ask("DELETE", location)]);
  expect(answers.toSorted()).toEqual([204, 404, 404]);
  await peer.until(() => peer.closed);
  expect(await ask("POST", `${location}/hangup`)).toBe(404);
  expect(await ask("DELETE", "/v1/realtime/calls/rtc_unknown")).toBe(404);
});

it("a session that a session.update could not make is refused with the offer", async () => {
  const cases: [object, number, string][] = [
    [{ type: "realtime", instrutions: "x" }, 400, "unknown_parameter"],
    [{ type: "realtime", audio: { output: { speed: 99 } } }, 400, "invalid_value"],
    [{ type: "nonsense" }, 400, "invalid_value"],
    [{ type: "realtime", model: "no-such-model" }, 404, "model_not_found"],
  ];
  for (const [session, status, code] of cases) {
    const response = await offer(newPeer(), session);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code, type: "invalid_request_error" } });
  }
});

it("offers of the same instant share the places, and the rest are told when to try again", async () => {
  const offers = await Promise.all(Array.from({ length: PLACES + 3 }, () => offer(newPeer())));
  expect(offers.map(({ status }) => status).toSorted()).toEqual([...Array(PLACES).fill(201), 503, 503, 503]);
  for (const [index, response] of offers.entries()) {
    if (response.status === 503) expect(response.headers.get("Retry-After")).toBe("5");
    else await peers[index]!.accept(await response.text());
  }
  for (const [index, { status }] of offers.entries()) if (status === 201) await peers[index]!.event("session.created");
});

// The sideband of a call whose process had died was closed with 1000, as if the peer had hung up.
it("a call whose process is killed ends with its sideband, which hears why; others go on", async () => {
  await expect.poll(callPids).toHaveLength(1);
  const [next] = callPids();
  const one = await call();
  const other = await call();
  const sideband = sidebandOf(one.location);
  const heard: JsonEvent[] = [];
  sideband.on("message", (data) => heard.push(JSON.parse(data.toString())));
  await new Promise((resolve) => sideband.once("open", resolve));
  await speak(one.peer);
  await speak(other.peer);
  const closed = new Promise((resolve) => sideband.once("close", resolve));
  process.kill(next!, "SIGKILL");
  expect(await closed).toBe(1011);
  expect(heard.at(-1)).toMatchObject({ type: "error", error: { code: "internal_error", type: "server_error" } });
  await expect.poll(() => engine.openStreams).toBe(1);
  expect(await ask("DELETE", one.location)).toBe(404);
  other.peer.send({ type: "output_audio_buffer.clear" });
  await other.peer.event("output_audio_buffer.cleared");
});

it("an answer that is talked over keeps what was sent of it, and the peer may cut it shorter", async () => {
  const { peer } = await call();
  await speak(peer);
  await peer.until(() => peer.heard.filter(({ samples }) => samples.some((x) => x > 3000)).length > 100);
  const piece = Int16Array.from({ length: 480 }, (_, i) => 16_000 * Math.sin(i / 8));
  const speaking = setInterval(() => peer.speak(piece.slice()), 10);
  await peer.event("output_audio_buffer.cleared").finally(() => clearInterval(speaking));
  const { item_id, audio_end_ms } = await peer.event("conversation.item.truncated");
  // A second of the voice was heard of twelve; a peer's buffer may stretch what it gets by some hundred milliseconds.
  expect(audio_end_ms).toBeGreaterThan(500);
  expect(audio_end_ms).toBeLessThan(11_000);
  peer.events.length = 0;
  peer.send({ type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: 400 });
  expect(await peer.event("conversation.item.truncated")).toMatchObject({ item_id, audio_end_ms: 400 });
  peer.send({ type: "conversation.item.retrieve", item_id });
  const { item } = await peer.event("conversation.item.retrieved");
  expect(item.content[0].transcript).toMatch(/^word0\b(?!.*word2)/);
});

/** Processes of calls that this process has started. */
function callPids(): number[] {
  const { stdout } = spawnSync("ps", ["-o", "pid=,args=", "--ppid", `${process.pid}`], { encoding: "utf8" });
  return stdout.split("\n").flatMap((line) => (line.includes("peer-entry") ? Number.parseInt(line, 10) : []));
}
