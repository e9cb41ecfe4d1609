/**
 * What calls leave behind, and what the media path adds. Opens calls and ends them in every way, and reads processes,
 * threads, open files, timers and memory of the server; then sends pulses both ways and times them.
 *
 * `npx tsx bench/calls.ts [CALLS]`, 100 by default; Linux, for /proc. Without Chromium no tab is closed. It ends in any
 * case: what goes wrong is counted, and after CALLS x 4 s + 4 min it says where it stands and gives up.
 */
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { WebRtc, type WebRtcTransport } from "../src/server/webrtc.ts";
import { hasChromium, openBrowser, writeMicrophone } from "../test/support/browser.ts";
import { talkingServer } from "../test/support/talking-server.ts";
import { WebRtcPeer } from "../test/support/webrtc-peer.ts";

const CALLS = Number(process.argv[2] ?? 100);
const WARM_CALLS = 8;
const PULSES = 30;
/** A busy machine may look away while a pulse passes. */
const MISSED_MS = 2000;
/** A vanished peer is noticed by ICE within half a minute. */
const QUIET_MS_MAX = 60_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
let stage = "start";

interface Footprint {
  /** Of calls: one waits for the next call. */
  readonly processes: number;
  readonly threads: number;
  readonly files: number;
  readonly sockets: number;
  readonly timers: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

/** Of this process, which is the server; the peers are in others. */
function footprint(): Footprint {
  collectGarbage();
  const { rss, heapUsed } = process.memoryUsage();
  const { stdout } = spawnSync("ps", ["-o", "args=", "--ppid", `${process.pid}`], { encoding: "utf8" });
  const files = readdirSync("/proc/self/fd").map(openFile);
  return {
    processes: stdout.split("\n").filter((line) => line.includes("peer-entry")).length,
    threads: Number(/^Threads:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]),
    files: files.length,
    sockets: files.filter((name) => name.startsWith("socket:")).length,
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
    rssMb: Math.round(rss / 1e6),
    heapMb: Math.round(heapUsed / 1e6),
  };
}
function openFile(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // The one that was open to list the others.
    return "";
  }
}

// ---------------------------------------------------------------------------------------------- the peers' process

type Ending = (peer: WebRtcPeer, location: string) => unknown;

/** Each way leaves the server to find out in its own manner. */
const ENDINGS: Readonly<Record<string, Ending>> = {
  "the peer closes its connection": (peer) => peer.close(),
  "the peer closes the data channel": (peer) => peer.channel.close(),
  "POST hangup": (_, location) => fetch(`${location}/hangup`, { method: "POST" }),
  DELETE: (_, location) => fetch(location, { method: "DELETE" }),
};

/** Until the server speaks. */
async function open(url: string): Promise<{ readonly peer: WebRtcPeer; readonly location: string }> {
  const peer = new WebRtcPeer();
  const body = await peer.offer();
  const headers = { "Content-Type": "application/sdp" };
  const response = await fetch(`${url}/v1/realtime/calls`, { method: "POST", body, headers });
  if (response.status !== 201) throw new Error(await response.text());
  await peer.accept(await response.text());
  await peer.event("session.created");
  const content = [{ type: "input_text", text: "Hello" }];
  peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  peer.send({ type: "response.create" });
  await peer.event("output_audio_buffer.started");
  return { peer, location: `${url}${response.headers.get("location")}` };
}

/** Opens a call for every message, ends it as the message says, or holds it; answers null or what went wrong. */
function bePeers(url: string): void {
  process.on("message", async (ending: string) => {
    try {
      const { peer, location } = await open(url);
      if (ending !== "hold") {
        await ENDINGS[ending]?.(peer, location);
        peer.close();
      }
      process.send?.(null);
    } catch (error) {
      process.send?.(String(error));
    }
  });
  process.on("disconnect", () => process.exit());
}

// ---------------------------------------------------------------------------------------------------- the server's

/** In the page: when its button was clicked, and when the session began. */
const TIME_CLICK = `
  addEventListener("click", () => (window.clickMs ??= performance.now()), true);
  const make = RTCPeerConnection.prototype.createDataChannel;
  RTCPeerConnection.prototype.createDataChannel = function (...options) {
    const channel = make.apply(this, options);
    channel.addEventListener("message", ({ data }) => {
      if (JSON.parse(data).type === "session.created") window.createdMs ??= performance.now();
    });
    return channel;
  };`;

class Drops {
  readonly #url: string;
  readonly #peers: ChildProcess;
  readonly done: Record<string, number> = {};
  readonly failures: string[] = [];
  /** From the page's click to `session.created`. */
  readonly clickMs: number[] = [];
  constructor(url: string) {
    this.#url = url;
    this.#peers = newPeers(url);
  }
  async one(ending: string, peers: ChildProcess = this.#peers): Promise<void> {
    stage = ending;
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), 30_000);
    const answer = once(peers, "message", { signal: patience.signal });
    peers.send(ending);
    const [failure] = (await answer.catch(() => ["no answer in 30 s"])) as [string | null];
    clearTimeout(timer);
    this.#count(ending === "hold" ? "the peer is killed" : ending, failure);
  }
  /** `count` calls at the same time, whose process is killed without a goodbye. */
  async vanish(count: number): Promise<void> {
    const peers = newPeers(this.#url);
    for (let i = 0; i < count; i++) await this.one("hold", peers);
    peers.kill("SIGKILL");
  }
  async closeTabs(count: number): Promise<void> {
    const name = "the tab is closed";
    const microphone = join(tmpdir(), `antiphon-calls-${process.pid}.wav`);
    await writeMicrophone(microphone, [60]);
    const browser = await openBrowser(microphone);
    for (let i = 0; i < count; i++) {
      stage = name;
      const context = await browser.newContext({ permissions: ["microphone"] });
      context.setDefaultTimeout(30_000);
      const failure = await this.#closeTab(await context.newPage()).catch(String);
      this.#count(name, failure ?? null);
      await context.close();
    }
    await browser.close();
    rmSync(microphone);
  }
  end(): void {
    this.#peers.kill("SIGKILL");
  }
  async #closeTab(page: Awaited<ReturnType<Awaited<ReturnType<typeof openBrowser>>["newPage"]>>): Promise<void> {
    await page.addInitScript({ content: TIME_CLICK });
    await page.goto(this.#url);
    await page.click("#talk");
    await page.waitForSelector('body[data-phase="listening"]');
    await page.fill("#message", "Hello");
    await page.keyboard.press("Enter");
    await page.waitForSelector('body[data-phase="speaking"]');
    this.clickMs.push(await page.evaluate<number>("createdMs - clickMs"));
    await page.close();
  }
  #count(ending: string, failure: string | null): void {
    if (failure === null) this.done[ending] = (this.done[ending] ?? 0) + 1;
    else this.failures.push(`${ending}: ${failure}`);
  }
}

function newPeers(url: string): ChildProcess {
  return fork(fileURLToPath(import.meta.url), ["peers", url], { execArgv: process.execArgv });
}

async function drops(): Promise<object> {
  const { server, engine } = await talkingServer({ maxSessions: "64" });
  const calls = new Drops(server.url);
  const quiet = async (): Promise<number> => {
    const fromMs = performance.now();
    while (engine.openStreams > 0 && performance.now() - fromMs < QUIET_MS_MAX) await pause(50);
    const ms = performance.now() - fromMs;
    // The last process says its last words, and the next call's is there.
    await pause(2000);
    return Math.round(ms / 100) / 10;
  };
  const inTurn = async (count: number): Promise<void> => {
    const names = Object.keys(ENDINGS);
    for (let call = 0; call < count; call++) await calls.one(names[call % names.length]!);
  };
  const tabs = hasChromium ? Math.floor(CALLS / 10) : 0;
  const vanishing = Math.min(50, Math.floor(CALLS / 10));
  await inTurn(WARM_CALLS);
  await quiet();
  const afterWarmUp = footprint();
  await inTurn(Math.ceil((CALLS - tabs - vanishing) / 2));
  await quiet();
  const halfWay = footprint();
  await inTurn(Math.floor((CALLS - tabs - vanishing) / 2));
  await quiet();
  // From here on this process also holds what drives Chromium.
  const beforeTabs = footprint();
  if (tabs > 0) await calls.closeTabs(tabs);
  await calls.vanish(vanishing);
  stage = "waiting for the vanished";
  const vanishedSeconds = await quiet();
  const atTheEnd = footprint();
  calls.end();
  stage = "shutting the server down";
  const openStreams = engine.openStreams;
  await server[Symbol.asyncDispose]();
  await pause(1000);
  return {
    calls: { ...calls.done, failed: calls.failures },
    openStreams,
    vanishedSeconds,
    clickToCreatedMs: summary(calls.clickMs),
    footprint: { afterWarmUp, halfWay, beforeTabs, atTheEnd, withoutServer: footprint() },
  };
}

// ----------------------------------------------------------------------------------------------------- the media path

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
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN);
  return { median: at(0.5), p90: at(0.9), max: at(1) };
}

async function measure(): Promise<void> {
  const giveUp = (): void => {
    process.stdout.write(`gave up; the last stage was: ${stage}\n`);
    process.exit(1);
  };
  // Without a hold on the process, and so not among the timers that are counted.
  setTimeout(giveUp, CALLS * 4_000 + 240_000).unref();
  const left = await drops();
  process.stdout.write(`${JSON.stringify({ left }, null, 2)}\n`);
  stage = "delays";
  process.stdout.write(`${JSON.stringify({ delay: await delays() }, null, 2)}\n`);
  process.exit();
}

const [, , role, url] = process.argv;
if (role === "peers") bePeers(url!);
else await measure();
