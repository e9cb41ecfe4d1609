/**
 * A conversation through bad networks: what the recognizer loses, and what the way there and back adds.
 * The networks are userspace relays on loopback (test/support/bad-network.ts): no privileges, no kernel modules.
 *
 * `npx tsx bench/network.ts`; wants the default models in the cache. Between two hosts, with their handshake over the bad
 * network as well: `bench/network.ts serve ADDRESS` on one and `bench/network.ts ask URL` on the other (bench/two-hosts.py).
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resample } from "../src/audio/resample.ts";
import { readWav } from "../src/audio/wav.ts";
import { loadConfig } from "../src/config.ts";
import { engineLoader } from "../src/server/load-engine.ts";
import { realtimeSessions } from "../src/server/realtime-sessions.ts";
import { createServer, type Server } from "../src/server/server.ts";
import { silentLog } from "../src/util/log.ts";
import { BadNetwork, type NetworkFaults } from "../test/support/bad-network.ts";
import { WebRtcPeer } from "../test/support/webrtc-peer.ts";
import { wordErrors } from "../test/support/word-errors.ts";

const QUESTIONS: Record<string, string> = JSON.parse(readFileSync("test/fixtures/questions/questions.json", "utf8"));
const NETWORKS: Record<string, NetworkFaults> = {
  "no delay, no loss": { delayMs: 0, jitterMs: 0, loss: 0 },
  "50 ms": { delayMs: 50, jitterMs: 0, loss: 0 },
  "150 ms": { delayMs: 150, jitterMs: 0, loss: 0 },
  "50 ms, 5 % lost, reordered": { delayMs: 50, jitterMs: 40, loss: 0.05 },
  "150 ms, 5 % lost, reordered": { delayMs: 150, jitterMs: 40, loss: 0.05 },
};
const NAMES = ["capital", "story"];
const PIECE = 480;

async function serve(host: string): Promise<Server> {
  const log = silentLog;
  const dataDir = mkdtempSync(join(tmpdir(), "antiphon-network-"));
  const config = loadConfig({ flags: { host, port: role === "serve" ? "8765" : "0", llm: "local", dataDir } });
  const load = engineLoader({ config, log });
  const server = await createServer({ config, log, load, sessions: realtimeSessions({ config, log }) });
  await server.listen();
  await server.ready;
  return server;
}

/** Speaks in real time, silence when there is nothing to say. */
class Speaker {
  readonly #peer: WebRtcPeer;
  readonly #startedMs = performance.now();
  readonly #timer = setInterval(() => this.#speak(), 5);
  #sent = 0;
  #pcm: Int16Array = new Int16Array(0);
  constructor(peer: WebRtcPeer) {
    this.#peer = peer;
  }
  say(pcm: Int16Array): void {
    this.#pcm = pcm;
  }
  stop(): void {
    clearInterval(this.#timer);
  }
  #speak(): void {
    for (; this.#sent * 10 < performance.now() - this.#startedMs; this.#sent++) {
      const piece = new Int16Array(PIECE);
      piece.set(this.#pcm.subarray(0, PIECE));
      this.#pcm = this.#pcm.subarray(PIECE);
      this.#peer.speak(piece);
    }
  }
}

/** Without `faults` the network is as it is. */
async function converse(url: string, name: string, faults: NetworkFaults | null): Promise<object> {
  const network = faults === null ? null : new BadNetwork(faults);
  await network?.open();
  const peer = new WebRtcPeer();
  const offer = await peer.offer();
  const startedMs = performance.now();
  const response = await fetch(`${url}/v1/realtime/calls`, {
    method: "POST",
    headers: { "Content-Type": "application/sdp" },
    body: network?.offer(offer) ?? offer,
  });
  const answer = await response.text();
  await peer.accept(network?.answer(answer) ?? answer);
  await peer.event("session.created", 30_000);
  const createdMs = performance.now() - startedMs;
  const wav = readWav(readFileSync(`test/fixtures/questions/${name}.wav`));
  const speaker = new Speaker(peer);
  speaker.say(Int16Array.from(resample(wav.samples, wav.format.hz, 48_000), (x) => x * 32_767));
  const saidMs = performance.now() + (wav.samples.length / wav.format.hz) * 1000;
  const heard = await peer.event("conversation.item.input_audio_transcription.completed", 60_000);
  await peer.event("output_audio_buffer.started", 60_000);
  await peer.until(
    () => peer.heard.some(({ atMs, samples }) => atMs > saidMs && samples.some((x) => x > 1000)),
    30_000,
  );
  const answerMs = performance.now() - saidMs;
  speaker.stop();
  peer.close();
  network?.close();
  const transcript = String(heard["transcript"]);
  const { errors, rate } = wordErrors(QUESTIONS[name] ?? "", transcript);
  return {
    question: name,
    createdMs: Math.round(createdMs),
    answerMs: Math.round(answerMs),
    wordErrors: errors,
    rate: Number(rate.toFixed(2)),
    ...(network === null ? {} : { packets: network.sent, lost: network.lost }),
  };
}

async function ask(url: string, network: string, faults: NetworkFaults | null): Promise<void> {
  for (const name of NAMES) {
    const result = await converse(url, name, faults).catch((error: unknown) => ({
      question: name,
      failed: String(error),
    }));
    process.stdout.write(`${JSON.stringify({ network, ...result })}\n`);
  }
}

const [, , role, where] = process.argv;
if (role === "serve") {
  process.stdout.write(`${(await serve(where!)).url}\n`);
} else if (role === "ask") {
  await ask(where!, "as it is", null);
  process.exit();
} else {
  const server = await serve("127.0.0.1");
  for (const [network, faults] of Object.entries(NETWORKS)) await ask(server.url, network, faults);
  await server[Symbol.asyncDispose]();
  process.exit();
}
