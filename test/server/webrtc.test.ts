import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import type { TransportMessage } from "../../src/server/transport.ts";
import { WebRtc, type WebRtcOptions, type WebRtcTransport } from "../../src/server/webrtc.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { loudness, WebRtcPeer } from "../support/webrtc-peer.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function newWebRtc(options: WebRtcOptions = {}): WebRtc {
  const webrtc = new WebRtc(options);
  cleanups.push(() => webrtc[Symbol.dispose]());
  return webrtc;
}

function newPeer(): WebRtcPeer {
  const peer = new WebRtcPeer();
  cleanups.push(() => peer.close());
  return peer;
}

async function call(options: WebRtcOptions = {}): Promise<{ peer: WebRtcPeer; transport: WebRtcTransport }> {
  const peer = new WebRtcPeer();
  cleanups.push(() => peer.close());
  const webrtc = newWebRtc(options);
  const { answerSdp, transport } = await webrtc.answer(await peer.offer());
  cleanups.push(() => transport.close(1000, "test over"));
  await peer.accept(answerSdp);
  return { peer, transport };
}

async function openCall(options: WebRtcOptions = {}): Promise<{
  peer: WebRtcPeer;
  transport: WebRtcTransport;
  received: TransportMessage[];
  ended: Promise<void>;
}> {
  const { peer, transport } = await call(options);
  expect(await transport.opened).toBe(true);
  const received: TransportMessage[] = [];
  const ended = (async () => {
    for await (const message of transport.incoming) received.push(message);
  })();
  return { peer, transport, received, ended };
}

const tone = (samples: number, hz: number): Float32Array =>
  Float32Array.from({ length: samples }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / hz));

describe("WebRtcTransport", () => {
  it("carries text both ways and audio both ways, and answers with Opus alone", async () => {
    const { peer, transport, received } = await openCall();
    expect(peer.pc.remoteDescription.sdp.match(/^a=rtpmap.*$/gm).map((line: string) => line.trim())).toEqual([
      "a=rtpmap:111 opus/48000/2",
    ]);
    await peer.until(() => peer.channel.readyState === "open");
    peer.send({ type: "hello" });
    await peer.until(() => received.some((message) => message.type === "text"));
    expect(received.find((message) => message.type === "text")).toEqual({ type: "text", text: '{"type":"hello"}' });
    transport.send('{"type":"welcome"}');
    await peer.event("welcome");

    transport.sendAudio(tone(24_000, 24_000), 24_000);
    await peer.until(() => loudness(peer, 10) > 0.2);
    const dropped = transport.clearAudio();
    expect(dropped).toBeGreaterThan(0);
    expect(transport.unplayedMs).toBeLessThanOrEqual(5);
    await peer.until(() => loudness(peer, 5) < 0.001);

    const loud = Int16Array.from({ length: 480 }, (_, i) => 16_000 * Math.sin((2 * Math.PI * 500 * i) / 48_000));
    const hears = (): boolean =>
      received.some((message) => message.type === "audio" && message.hz === 48_000 && Math.max(...message.pcm) > 0.3);
    await peer.until(() => {
      peer.speak(loud.slice());
      return hears();
    });
  });

  it("replaces a message that the channel cannot carry: a longer one makes libwebrtc close the channel", async () => {
    const { peer, transport } = await openCall();
    transport.send(JSON.stringify({ type: "long", text: "x".repeat(262_144) }));
    transport.send(JSON.stringify({ type: "long.enough", text: "é".repeat(100_000) }));
    const error = await peer.event("error");
    expect(error["error"]).toMatchObject({ code: "message_too_large", type: "server_error" });
    expect((await peer.event("long.enough"))["text"]).toHaveLength(100_000);
  });

  it("ends when the peer closes its data channel or its connection", async () => {
    const first = await openCall();
    first.peer.channel.close();
    await first.ended;
    const second = await openCall();
    second.peer.close();
    await second.ended;
  });

  it("tells the peer when the server closes", async () => {
    const { peer, transport, ended } = await openCall();
    transport.send('{"type":"last.words"}');
    await transport.close(1000, "done");
    await ended;
    await peer.until(() => peer.closed);
    expect(peer.events.map((event) => event.type)).toEqual(["last.words"]);
    transport.send("{}");
    transport.sendAudio(tone(100, 24_000), 24_000);
    await transport.close(1000, "twice");
  });

  it("gives up a call that nobody takes", async () => {
    const clock = new ManualClock();
    const peer = new WebRtcPeer();
    cleanups.push(() => peer.close());
    const webrtc = newWebRtc({ clock });
    const { transport } = await webrtc.answer(await peer.offer());
    clock.advance(29_999);
    expect(clock.pendingCount).toBe(1);
    clock.advance(1);
    expect(await transport.opened).toBe(false);
    await transport.close(1000, "");
    expect(clock.pendingCount).toBe(0);
  });

  it("says why an offer cannot be used", async () => {
    const webrtc = newWebRtc();
    await expect(webrtc.answer("nonsense")).rejects.toMatchObject({ code: "invalid_sdp" });
    const broken = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n";
    await expect(webrtc.answer(broken)).rejects.toMatchObject({
      code: "invalid_sdp",
      message: expect.stringMatching(/SDP/),
    });
  });

  it("keeps to the given UDP ports and publishes the given address", async () => {
    const peer = new WebRtcPeer();
    cleanups.push(() => peer.close());
    const webrtc = newWebRtc({ udpPorts: { min: 50_300, max: 50_320 }, natIp: "203.0.113.9" });
    const { answerSdp, transport } = await webrtc.answer(await peer.offer());
    cleanups.push(() => transport.close(1000, ""));
    const candidates = answerSdp.match(/^a=candidate.*$/gm) ?? [];
    expect(candidates).toHaveLength(1);
    const [, , , , address, port] = candidates[0]!.split(" ");
    expect(address).toBe("203.0.113.9");
    expect(Number(port)).toBeGreaterThanOrEqual(50_300);
    expect(Number(port)).toBeLessThanOrEqual(50_320);
  });

  // A second call on one port was answered without any address, and never connected.
  it("says that the ports are taken, names the option, and takes a call when one is free again", async () => {
    const webrtc = newWebRtc({ udpPorts: { min: 50_330, max: 50_330 } });
    const { transport } = await webrtc.answer(await newPeer().offer());
    await expect(webrtc.answer(await newPeer().offer())).rejects.toMatchObject({
      code: "session_limit_reached",
      retryable: true,
      message: expect.stringMatching(/port 50330 is taken.*--ice-udp-port/),
    });
    await transport.close(1000, "");
    const third = await webrtc.answer(await newPeer().offer());
    cleanups.push(() => third.transport.close(1000, ""));
    expect(third.answerSdp).toMatch(/ 50330 typ host/);
  });

  // libwebrtc's bindings crash where a peer closes its channel while the server writes to it; that took the server along.
  it("loses one call when the process of one call dies", async () => {
    const one = await openCall();
    const other = await openCall();
    process.kill(one.transport.pid!, "SIGSEGV");
    await one.ended;
    expect(one.transport.isOpen).toBe(false);
    one.transport.send("{}");
    one.transport.sendAudio(tone(100, 24_000), 24_000);
    await one.transport.close(1000, "");
    other.transport.send('{"type":"still.here"}');
    await other.peer.event("still.here");
  });

  it("leaves no process behind", async () => {
    await expect.poll(callPids, { timeout: 20_000 }).toEqual([]);
    const webrtc = new WebRtc();
    webrtc.prepare();
    expect(callPids()).toHaveLength(1);
    const { transport } = await webrtc.answer(await newPeer().offer());
    await transport.close(1000, "");
    webrtc[Symbol.dispose]();
    webrtc.prepare();
    await expect.poll(callPids, { timeout: 20_000 }).toEqual([]);
  });

  it("says that there is no WebRTC where its library does not load", async () => {
    const { NODE_OPTIONS = "" } = process.env;
    const missing = `data:text/javascript,import m from "node:module"; const load = m._load;
      m._load = (name, ...rest) => { if (/wrtc/.test(name)) throw new Error("no such library"); return load(name, ...rest); };`;
    process.env["NODE_OPTIONS"] =
      `${NODE_OPTIONS} --import "${missing.replaceAll(/\s+/g, "%20").replaceAll('"', "'")}"`;
    try {
      const webrtc = newWebRtc();
      webrtc.prepare();
      const offer = await newPeer().offer();
      for (let i = 0; i < 2; i++) {
        await expect(webrtc.answer(offer)).rejects.toMatchObject({
          code: "not_implemented",
          message: expect.stringMatching(/No WebRTC on .*WebSocket/),
        });
      }
      // A process that found no library waited for ever for a call that it could not take.
      await expect.poll(callPids, { timeout: 20_000 }).toEqual([]);
    } finally {
      process.env["NODE_OPTIONS"] = NODE_OPTIONS;
    }
  });
});

// "A fault in the server: the process of the call ended", said a server that only had too many calls.
it.skipIf(process.platform === "win32")(
  "says that the machine is full where no process can be started, and takes calls when it is not",
  async () => {
    const source = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);
    const program = `
    import { closeSync, openSync } from "node:fs";
    import { WebRtc } from ${source("server/webrtc.ts")};
    const webrtc = new WebRtc();
    const answer = () => webrtc.answer("v=0\\r\\nm=audio 9 RTP/SAVPF 111\\r\\na=rtpmap:111 opus/48000/2\\r\\n");
    // As a listening socket would.
    setInterval(() => {}, 1000);
    const taken = [];
    try { for (;;) taken.push(openSync("/dev/null")); } catch {}
    const full = await answer().catch((error) => error);
    taken.forEach((file) => closeSync(file));
    const free = await answer().catch((error) => error);
    console.log(JSON.stringify([full, free].map(({ code, message }) => ({ code, message }))));
    process.exit();`;
    const command = `ulimit -Sn 512; exec "$0" --import tsx --input-type=module -e "$1"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath, program], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([
      { code: "session_limit_reached", message: expect.stringMatching(/\(EMFILE\).*limits of open files/) },
      { code: "invalid_sdp", message: expect.any(String) },
    ]);
  },
);

/** Processes of calls that this process has started. */
function callPids(): number[] {
  const { stdout } = spawnSync("ps", ["-o", "pid=,args=", "--ppid", `${process.pid}`], { encoding: "utf8" });
  return stdout
    .split("\n")
    .filter((line) => line.includes("peer-entry"))
    .map((line) => Number.parseInt(line, 10));
}
