/**
 * What calls leave behind, and what the media path adds. Opens and drops calls in every way and reads threads, open
 * files, timers and memory of the process; then sends pulses both ways and times them.
 *
 * `npx tsx bench/calls.ts [CALLS]`, 100 by default; Linux, for /proc.
 */
import { readdirSync, readFileSync } from "node:fs";
import { WebRtc, type WebRtcTransport } from "../src/server/webrtc.ts";
import { talkingServer } from "../test/support/talking-server.ts";
import { WebRtcPeer } from "../test/support/webrtc-peer.ts";

const CALLS = Number(process.argv[2] ?? 100);
const PULSES = 30;
/** A busy machine may look away while a pulse passes. */
const MISSED_MS = 2000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Footprint {
  readonly threads: number;
  readonly files: number;
  readonly timers: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

function footprint(): Footprint {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    threads: Number(/^Threads:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]),
    files: readdirSync("/proc/self/fd").length,
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
    rssMb: Math.round(rss / 1e6),
    heapMb: Math.round(heapUsed / 1e6),
  };
}

type Ending = (peer: WebRtcPeer, location: string) => unknown;

/** Each way leaves the server to find out in its own manner. */
const ENDINGS: readonly (readonly [string, Ending])[] = [
  ["the peer closes its connection", (peer) => peer.close()],
  ["the peer closes the data channel", (peer) => peer.channel.close()],
  ["POST hangup", (_, location) => fetch(`${location}/hangup`, { method: "POST" })],
  ["DELETE", (_, location) => fetch(location, { method: "DELETE" })],
];

async function openAndDrop(url: string, ending: Ending): Promise<void> {
  const peer = new WebRtcPeer();
  const response = await fetch(`${url}/v1/realtime/calls`, {
    method: "POST",
    body: await peer.offer(),
    headers: { "Content-Type": "application/sdp" },
  });
  if (response.status !== 201) throw new Error(await response.text());
  await peer.accept(await response.text());
  await peer.event("session.created");
  peer.send({
    type: "conversation.item.create",
    item: { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] },
  });
  peer.send({ type: "response.create" });
  await peer.event("output_audio_buffer.started");
  await ending(peer, `${url}${response.headers.get("location")}`);
  peer.close();
}

async function drops(): Promise<object> {
  const { server, engine } = await talkingServer({ maxSessions: "64" });
  const marks: Footprint[] = [];
  const warm = 8;
  for (let call = 0; call < CALLS + warm; call++) {
    if (call === warm || call === warm + CALLS / 2) {
      await pause(1000);
      marks.push(footprint());
    }
    await openAndDrop(server.url, ENDINGS[call % ENDINGS.length]![1]);
  }
  while (engine.openStreams > 0) await pause(50);
  await pause(3000);
  marks.push(footprint());
  await server[Symbol.asyncDispose]();
  return {
    calls: CALLS,
    endings: ENDINGS.map(([name]) => name),
    afterWarmUp: marks[0],
    halfWay: marks[1],
    atTheEnd: marks[2],
  };
}

/** Speaks in real time: silence, and a pulse when told. */
class Speaker {
  readonly #peer: WebRtcPeer;
  readonly #startedMs = performance.now();
  #sentPieces = 0;
  #pulsePieces = 0;
  readonly #timer = setInterval(() => this.#speak(), 5);
  constructor(peer: WebRtcPeer) {
    this.#peer = peer;
  }
  /** Begins a pulse of 100 ms now; returns the time. */
  pulse(): number {
    this.#pulsePieces = 10;
    return performance.now();
  }
  stop(): void {
    clearInterval(this.#timer);
  }
  #speak(): void {
    for (; this.#sentPieces * 10 < performance.now() - this.#startedMs; this.#sentPieces++) {
      const isLoud = this.#pulsePieces > 0;
      if (isLoud) this.#pulsePieces -= 1;
      this.#peer.speak(Int16Array.from({ length: 480 }, (_, i) => (isLoud ? 20_000 * Math.sin(i / 8) : 0)));
    }
  }
}

const isHeardBy = (peer: WebRtcPeer) => (): boolean => Math.max(...(peer.heard.at(-1)?.samples ?? [0])) > 3000;

/** Sends pulses and takes the times until each is heard. */
async function timePulses(send: () => number, isHeard: () => boolean): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < PULSES; i++) {
    await pause(400 + ((i * 7) % 20));
    const fromMs = send();
    while (!isHeard() && performance.now() - fromMs < MISSED_MS) await pause(1);
    const ms = performance.now() - fromMs;
    if (ms < MISSED_MS) times.push(ms);
  }
  return times;
}

/** Two peers without a server between them: what libwebrtc and this machine cost anyway. */
async function directDelay(): Promise<number[]> {
  const [a, b] = [new WebRtcPeer(), new WebRtcPeer({ channel: false })];
  await b.pc.setRemoteDescription({ type: "offer", sdp: await a.offer() });
  await b.pc.setLocalDescription(await b.pc.createAnswer());
  await b.until(() => b.pc.iceGatheringState === "complete");
  await a.accept(b.pc.localDescription.sdp);
  const speaker = new Speaker(a);
  await pause(3000);
  const times = await timePulses(() => speaker.pulse(), isHeardBy(b));
  speaker.stop();
  a.close();
  b.close();
  return times;
}

async function delays(): Promise<object> {
  const peer = new WebRtcPeer();
  const webrtc = new WebRtc();
  const { answerSdp, transport } = await webrtc.answer(await peer.offer());
  await peer.accept(answerSdp);
  await transport.opened;
  let level = 0;
  void listen(transport, (loudness) => {
    level = loudness;
  });
  const speaker = new Speaker(peer);
  await pause(3000);
  const voice = Float32Array.from({ length: 2400 }, (_, k) => 0.6 * Math.sin(k / 4));
  const speak = (): number => {
    transport.sendAudio(voice, 24_000);
    return performance.now();
  };
  const out = await timePulses(speak, isHeardBy(peer));
  const back = await timePulses(
    () => speaker.pulse(),
    () => level > 0.1,
  );
  speaker.stop();
  await transport.close(1000, "");
  peer.close();
  return { directMs: summary(await directDelay()), toThePeerMs: summary(out), fromThePeerMs: summary(back) };
}

async function listen(transport: WebRtcTransport, tell: (loudness: number) => void): Promise<void> {
  for await (const message of transport.incoming) if (message.type === "audio") tell(Math.max(...message.pcm));
}

function summary(values: number[]): object {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))]!);
  return { median: at(0.5), p90: at(0.9), max: at(1) };
}

const delay = await delays();
const left = await drops();
process.stdout.write(`${JSON.stringify({ delay, left }, null, 2)}\n`);
process.exit();
