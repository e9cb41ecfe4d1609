/** Offers of every shape, and what is made of them. The peers are libwebrtc's, as in browsers. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { networkInterfaces } from "node:os";
import wrtc from "@roamhq/wrtc";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import { WebRtc } from "../../src/server/webrtc.ts";
import type { TalkingEngine } from "../support/talking-engine.ts";
import { allCallsEnded, talkingServer } from "../support/talking-server.ts";
import { WebRtcPeer, type WebRtcPeerOptions } from "../support/webrtc-peer.ts";

let server: Server;
let engine: TalkingEngine;
beforeAll(async () => {
  ({ server, engine } = await talkingServer());
});
afterAll(() => server[Symbol.asyncDispose]());

const peers: WebRtcPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await allCallsEnded(engine);
});

async function call(options: WebRtcPeerOptions = {}, edit = (sdp: string): string => sdp): Promise<WebRtcPeer> {
  const peer = new WebRtcPeer(options);
  peers.push(peer);
  const response = await fetch(`${server.url}/v1/realtime/calls`, {
    method: "POST",
    headers: { "Content-Type": "application/sdp" },
    body: edit(await peer.offer()),
  });
  expect(response.status).toBe(201);
  await peer.accept(await response.text());
  return peer;
}

const isLoud = ({ samples }: { samples: Int16Array }): boolean => samples.some((x) => Math.abs(x) > 3000);
async function hearsTheVoice(peer: WebRtcPeer): Promise<void> {
  const content = [{ type: "input_text", text: "Hello" }];
  peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  peer.send({ type: "response.create" });
  await peer.until(() => peer.heard.some(isLoud));
}
async function isHeard(peer: WebRtcPeer): Promise<void> {
  const piece = Int16Array.from({ length: 480 }, (_, i) => 16_000 * Math.sin(i / 8));
  const speaking = setInterval(() => peer.speak(piece.slice()), 10);
  await peer.event("input_audio_buffer.speech_started").finally(() => clearInterval(speaking));
}
const directions = (peer: WebRtcPeer): string[] =>
  [...peer.pc.remoteDescription.sdp.matchAll(/^m=(audio|video)[\s\S]*?a=(sendrecv|sendonly|recvonly|inactive)/gm)].map(
    ([, kind, direction]) => `${kind} ${direction}`,
  );

describe("media sections", () => {
  // OpenAI's browser SDK and examples play `event.streams[0]`. The voice belonged to no stream, and they stayed silent.
  it("gives the voice a stream", async () => {
    const peer = await call();
    await peer.event("session.created");
    expect(peer.streamCount).toBe(1);
  });

  // The voice went into the first section, where this peer only speaks: it heard nothing.
  it("speaks where the peer listens, and listens where it speaks", async () => {
    const peer = await call({
      add(connection, microphone) {
        connection.addTransceiver(microphone, { direction: "sendonly" });
        connection.addTransceiver("audio", { direction: "recvonly" });
      },
    });
    await peer.event("session.created");
    expect(directions(peer)).toEqual(["audio recvonly", "audio sendonly"]);
    await hearsTheVoice(peer);
    await isHeard(peer);
  });

  it("speaks to a peer without a microphone, and listens to one without a loudspeaker", async () => {
    const listener = await call({ add: (connection) => connection.addTransceiver("audio", { direction: "recvonly" }) });
    await listener.event("session.created");
    await hearsTheVoice(listener);
    const speaker = await call({
      add: (connection, microphone) => connection.addTransceiver(microphone, { direction: "sendonly" }),
    });
    await speaker.event("session.created");
    await isHeard(speaker);
  });

  // Whoever offered a camera sent its pictures, which libwebrtc decoded for nobody.
  it("takes no video, before or behind the audio", async () => {
    const camera = (connection: WebRtcPeer["pc"]): void =>
      void connection.addTransceiver(new wrtc.nonstandard.RTCVideoSource().createTrack());
    const peer = await call({
      add(connection, microphone) {
        camera(connection);
        connection.addTrack(microphone);
        camera(connection);
      },
    });
    await peer.event("session.created");
    expect(directions(peer)).toEqual(["video inactive", "audio sendrecv", "video inactive"]);
    await hearsTheVoice(peer);
  });

  // Only the first audio section was looked at: one without Opus was the end of the call, the second kept every codec.
  it("uses the first section that offers Opus, and Opus alone in each", async () => {
    let sections = 0;
    const withoutOpus = (sdp: string): string =>
      sdp.replaceAll(/opus\/48000/g, (codec) => (sections++ === 0 ? "other/48000" : codec));
    const peer = await call(
      {
        add(connection, microphone) {
          connection.addTransceiver("audio");
          connection.addTransceiver(microphone);
          connection.addTransceiver("audio");
        },
      },
      withoutOpus,
    );
    await peer.event("session.created");
    expect(directions(peer)).toEqual(["audio inactive", "audio sendrecv", "audio inactive"]);
    const codecs = peer.pc.remoteDescription.sdp
      .split(/^m=/m)
      .slice(2, 4)
      .join("")
      .match(/^a=rtpmap.*$/gm);
    expect(codecs.map((line: string) => line.trim())).toEqual([
      "a=rtpmap:111 opus/48000/2",
      "a=rtpmap:111 opus/48000/2",
    ]);
    await hearsTheVoice(peer);
    await isHeard(peer);
  });
});

describe("candidates", () => {
  const udp = /^(a=candidate:\S+ \d+ udp \d+ )(\S+)( .*)$/gim;
  it.each<[string, (sdp: string) => string]>([
    ["none, as with trickle", (sdp) => sdp.replaceAll(/^a=(candidate|end-of-candidates).*\r\n/gm, "")],
    [
      "mDNS names alone, as of a browser without a microphone",
      (sdp) =>
        sdp
          .replaceAll(/^a=candidate.* tcp .*\r\n/gim, "")
          .replaceAll(udp, "$16f1e2f3a-1111-4222-8333-444455556666.local$3"),
    ],
    ["IPv4 alone", (sdp) => sdp.replaceAll(/^a=candidate:\S+ \d+ \S+ \d+ \S*:\S* .*\r\n/gm, "")],
  ])("connects a peer whose offer has %s", async (_, edit) => {
    const peer = await call({}, edit);
    await peer.event("session.created");
    await isHeard(peer);
  });
});

describe("data channels", () => {
  // The first channel was taken, whatever its name, and OpenAI's own closed.
  it("takes oai-events, in whatever order they come, and closes the other", async () => {
    let other: WebRtcPeer["channel"];
    const peer = await call({
      add(connection, microphone) {
        connection.addTrack(microphone);
        other = connection.createDataChannel("telemetry");
      },
    });
    await peer.event("session.created");
    await peer.until(() => other.readyState === "closed");
    await hearsTheVoice(peer);
  });

  it("takes one of another name where there is no other", async () => {
    const events: string[] = [];
    const peer = await call({
      channel: false,
      add(connection, microphone) {
        connection.addTrack(microphone);
        connection.createDataChannel("events").onmessage = ({ data }: { data: string }) =>
          events.push(JSON.parse(data).type);
      },
    });
    await peer.until(() => events.includes("session.created"));
  });

  it("talks to a peer that has none", async () => {
    const peer = await call({ channel: false });
    await peer.until(() => peer.pc.connectionState === "connected");
    await expect.poll(() => engine.openStreams).toBe(1);
    peer.close();
  });
});

/** Tells whoever asks that it is 203.0.113.7:7777. Shape: RFC 5389, a binding response with XOR-MAPPED-ADDRESS. */
async function stunServer(): Promise<{ readonly url: string; close(): void }> {
  const socket = createSocket("udp4");
  socket.on("message", (request, { address, port }) => {
    const response = Buffer.alloc(32);
    response.writeUInt16BE(0x0101, 0);
    response.writeUInt16BE(12, 2);
    request.copy(response, 4, 4, 20);
    response.writeUInt32BE(0x00200008, 20);
    response.writeUInt16BE(0x0001, 24);
    response.writeUInt16BE(7777 ^ 0x2112, 26);
    response.writeUInt32BE((0xcb007107 ^ 0x2112a442) >>> 0, 28);
    socket.send(response, port, address);
  });
  socket.bind();
  await once(socket, "listening");
  const own = Object.values(networkInterfaces()).flat();
  const host = own.find((at) => at?.family === "IPv4" && !at.internal)?.address ?? "127.0.0.1";
  return { url: `stun:${host}:${socket.address().port}`, close: () => void socket.close() };
}

it("asks the STUN server that it is given, and offers the address that it learns", async () => {
  const stun = await stunServer();
  const iceServers = JSON.stringify([{ urls: stun.url }]);
  const { server: asking } = await talkingServer({ iceServers });
  const peer = new WebRtcPeer();
  peers.push(peer);
  const response = await fetch(`${asking.url}/v1/realtime/calls`, {
    method: "POST",
    headers: { "Content-Type": "application/sdp" },
    // A peer that can be reached at once makes libwebrtc stop looking for further addresses.
    body: (await peer.offer()).replaceAll(/^a=candidate.*\r\n/gm, ""),
  });
  const answer = await response.text();
  expect(answer).toMatch(/^a=candidate:\S+ 1 udp \d+ 203\.0\.113\.7 7777 typ srflx raddr /m);
  await peer.accept(answer);
  await peer.event("session.created");
  await asking[Symbol.asyncDispose]();
  stun.close();
});

// The process of the call ended with an exception, and the caller read that it should try again.
it("says what libwebrtc says against the ICE servers", async () => {
  using webrtc = new WebRtc({ iceServers: [{ urls: "turn:turn.example.com" }] });
  const peer = new WebRtcPeer();
  peers.push(peer);
  await expect(webrtc.answer(await peer.offer())).rejects.toMatchObject({
    code: "internal_error",
    message: expect.stringMatching(/ICE server/),
  });
});
