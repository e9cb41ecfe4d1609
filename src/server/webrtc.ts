/**
 * WebRTC as a transport: Opus both ways on one media track, events on one data channel. libwebrtc does ICE, DTLS, the
 * jitter buffer and the codec; this file owns its objects and lets go of every one of them when the call ends.
 */
import { int16ToFloat } from "../audio/pcm.ts";
import { AppError, ClientError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type Log, silentLog } from "../util/log.ts";
import { Queue } from "../util/queue.ts";
import { LINE_HZ, RtpAudio } from "./rtp-audio.ts";
import { publishAddress, readOffer } from "./sdp.ts";
import type { Transport, TransportMessage } from "./transport.ts";

export interface IceServer {
  readonly urls: string | readonly string[];
  readonly username?: string;
  readonly credential?: string;
}

export interface WebRtcOptions {
  /** STUN and TURN servers. None by default: host candidates only, and nobody else is asked. */
  readonly iceServers?: readonly IceServer[];
  /** The UDP ports that media may use; each call takes one per network interface. Default: any. */
  readonly udpPorts?: { readonly min: number; readonly max: number } | null;
  /** The address under which peers reach this host, where it is not one of its own. */
  readonly natIp?: string | null;
  /** How long a call may take from answer to open data channel. */
  readonly connectMs?: number;
  /** How long a peer may be out of reach before its call ends. */
  readonly lostMs?: number;
  readonly clock?: Clock;
  readonly log?: Log;
}

export interface WebRtcSettings extends Required<WebRtcOptions> {}

function resolveWebRtc(options: WebRtcOptions = {}): WebRtcSettings {
  return Object.freeze({
    iceServers: options.iceServers ?? [],
    udpPorts: options.udpPorts ?? null,
    natIp: options.natIp ?? null,
    connectMs: options.connectMs ?? 30_000,
    lostMs: options.lostMs ?? 10_000,
    clock: options.clock ?? systemClock,
    log: options.log ?? silentLog,
  });
}

/** libwebrtc closes the channel on a longer message. */
const MESSAGE_BYTES_MAX = 262_144;
/** Candidates that come later than this are left out of the answer; only STUN and TURN take time. */
const GATHERING_MS_MAX = 3_000;
/** What the last words of a call may take to leave. */
const FAREWELL_MS_MAX = 500;
/** 20 s of audio in pieces of 10 ms. */
const INCOMING_MESSAGES_MAX = 2_000;

// What is used of @roamhq/wrtc, whose own types need the browser's.
interface Emitter {
  addEventListener(name: string, listener: (event: never) => void): void;
}
interface Track {
  readonly kind: string;
  stop(): void;
}
interface Channel extends Emitter {
  readonly readyState: string;
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
}
interface Peer extends Emitter {
  readonly connectionState: string;
  readonly iceGatheringState: string;
  readonly localDescription: { readonly sdp: string } | null;
  setRemoteDescription(description: { type: "offer"; sdp: string }): Promise<void>;
  addTrack(track: Track): unknown;
  createAnswer(): Promise<unknown>;
  setLocalDescription(description: unknown): Promise<void>;
  close(): void;
}
interface SinkData {
  readonly samples: Int16Array;
  readonly sampleRate: number;
  readonly channelCount: number;
}
interface Sink {
  ondata: ((data: SinkData) => void) | null;
  stop(): void;
}
interface Source {
  createTrack(): Track;
  onData(data: object): void;
}
interface Library {
  readonly RTCPeerConnection: new (configuration: object) => Peer;
  readonly nonstandard: {
    readonly RTCAudioSource: new () => Source;
    readonly RTCAudioSink: new (track: Track) => Sink;
  };
}

let loading: Promise<Library> | null = null;

async function loadLibrary(): Promise<Library> {
  let library: Library;
  try {
    library = ((await import("@roamhq/wrtc")) as unknown as { default: Library }).default;
  } catch (cause) {
    const machine = `${process.platform}-${process.arch}`;
    throw new AppError("not_implemented", `No WebRTC on ${machine}: use the WebSocket at /v1/realtime.`, { cause });
  }
  // The library's audio sources crash when Node takes its environment down at a natural end; leaving first avoids it.
  process.once("beforeExit", () => process.exit());
  return library;
}

/** The library, loaded, and the network it may use. Answers offers; each answer is a call of its own. */
export class WebRtc {
  readonly #library: Library;
  readonly #settings: WebRtcSettings;

  constructor(library: Library, settings: WebRtcSettings) {
    this.#library = library;
    this.#settings = settings;
  }

  /** @throws {AppError} not_implemented where there is no build of libwebrtc for this machine. */
  static async load(options: WebRtcOptions = {}): Promise<WebRtc> {
    loading ??= loadLibrary();
    return new WebRtc(await loading, resolveWebRtc(options));
  }

  /**
   * Takes a peer's offer. The call is not open yet: the peer needs the answer first.
   * @throws {ClientError} invalid_sdp, with the reason.
   */
  async answer(offerSdp: string): Promise<{ readonly answerSdp: string; readonly transport: WebRtcTransport }> {
    const offer = readOffer(offerSdp);
    const { iceServers, udpPorts, natIp } = this.#settings;
    const peer = new this.#library.RTCPeerConnection({
      iceServers,
      bundlePolicy: "max-bundle",
      ...(udpPorts === null ? {} : { portRange: udpPorts }),
    });
    const transport = new WebRtcTransport(peer, this.#library, offer, this.#settings);
    try {
      await peer.setRemoteDescription({ type: "offer", sdp: offer.sdp }).catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new ClientError("invalid_sdp", `The SDP offer cannot be used: ${reason}.`, "sdp", { cause });
      });
      transport.addVoice();
      await peer.setLocalDescription(await peer.createAnswer());
      await this.#gathered(peer);
      const answerSdp = peer.localDescription?.sdp ?? "";
      return { answerSdp: natIp === null ? answerSdp : publishAddress(answerSdp, natIp), transport };
    } catch (error) {
      await transport.close(1000, "no answer");
      throw error;
    }
  }

  #gathered(peer: Peer): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#settings.clock.schedule(GATHERING_MS_MAX, resolve);
      const look = (): void => {
        if (peer.iceGatheringState !== "complete") return;
        cancel();
        resolve();
      };
      peer.addEventListener("icegatheringstatechange", look);
      look();
    });
  }
}

export class WebRtcTransport implements Transport {
  readonly kind = "webrtc";
  readonly audioPath = "track";
  /** True when the call can be used, false when it ended before. */
  readonly opened: Promise<boolean>;
  readonly #peer: Peer;
  readonly #library: Library;
  readonly #settings: WebRtcSettings;
  readonly #hasDataChannel: boolean;
  readonly #messageBytesMax: number;
  readonly #incoming = new Queue<TransportMessage>(INCOMING_MESSAGES_MAX);
  readonly #source: Source;
  readonly #voice: Track;
  readonly #line: RtpAudio;
  #channel: Channel | null = null;
  #ear: Track | null = null;
  #sink: Sink | null = null;
  #resolveOpened: (opened: boolean) => void = () => {};
  #isOpen = false;
  /** Ends the call when a peer has not come, or has gone. */
  #cancelDeadline: () => void;
  #closing: Promise<void> | null = null;

  constructor(
    peer: Peer,
    library: Library,
    offer: { readonly hasDataChannel: boolean; readonly messageBytesMax: number },
    settings: WebRtcSettings,
  ) {
    this.#peer = peer;
    this.#library = library;
    this.#settings = settings;
    this.#hasDataChannel = offer.hasDataChannel;
    this.#messageBytesMax = Math.min(MESSAGE_BYTES_MAX, offer.messageBytesMax);
    this.opened = new Promise((resolve) => {
      this.#resolveOpened = resolve;
    });
    this.#source = new library.nonstandard.RTCAudioSource();
    this.#voice = this.#source.createTrack();
    this.#line = new RtpAudio(settings.clock, (samples) =>
      this.#source.onData({
        samples,
        sampleRate: LINE_HZ,
        bitsPerSample: 16,
        channelCount: 1,
        numberOfFrames: samples.length,
      }),
    );
    this.#cancelDeadline = settings.clock.schedule(settings.connectMs, () => this.#end("the peer never connected"));
    peer.addEventListener("track", (event: { track: Track }) => this.#hear(event.track));
    peer.addEventListener("datachannel", (event: { channel: Channel }) => this.#take(event.channel));
    peer.addEventListener("connectionstatechange", () => this.#follow(peer.connectionState));
  }

  /** Puts the assistant's voice on the offered media section. */
  addVoice(): void {
    this.#peer.addTrack(this.#voice);
  }

  get incoming(): AsyncIterable<TransportMessage> {
    return this.#incoming;
  }
  get isOpen(): boolean {
    return this.#isOpen && this.#closing === null;
  }
  get bufferedBytes(): number {
    return this.#channel?.bufferedAmount ?? 0;
  }
  get unplayedMs(): number {
    return this.#line.unplayedMs;
  }

  /** A message that the channel cannot carry is replaced by an error that says so. */
  send(text: string): void {
    if (this.#channel?.readyState !== "open") return;
    const bytes = Buffer.byteLength(text);
    this.#channel.send(bytes <= this.#messageBytesMax ? text : tooLarge(bytes, this.#messageBytesMax));
  }
  sendAudio(pcm: Float32Array, hz: number): void {
    if (this.#closing === null) this.#line.push(pcm, hz);
  }
  clearAudio(): number {
    return this.#line.clear();
  }
  close(_code: number, reason: string): Promise<void> {
    this.#closing ??= this.#release(reason);
    return this.#closing;
  }

  #hear(track: Track): void {
    if (track.kind !== "audio" || this.#sink !== null || this.#closing !== null) return;
    this.#ear = track;
    this.#sink = new this.#library.nonstandard.RTCAudioSink(track);
    this.#sink.ondata = ({ samples, sampleRate, channelCount }) => {
      // What is said before the session exists has nowhere to go; a reader that is 20 s behind has lost the thread.
      if (this.#isOpen) this.#incoming.push({ type: "audio", pcm: toMono(samples, channelCount), hz: sampleRate });
    };
  }

  #take(channel: Channel): void {
    if (this.#channel !== null) {
      channel.close();
      return;
    }
    this.#channel = channel;
    channel.addEventListener("message", (event: { data: string | ArrayBuffer }) => {
      const text = typeof event.data === "string" ? event.data : Buffer.from(event.data).toString("utf8");
      if (!this.#incoming.push({ type: "text", text })) this.#end("events came faster than they could be read");
    });
    channel.addEventListener("close", () => this.#end("the peer closed the data channel"));
    channel.addEventListener("open", () => this.#open());
    if (channel.readyState === "open") this.#open();
  }

  #open(): void {
    if (this.#isOpen || this.#closing !== null) return;
    this.#isOpen = true;
    this.#cancelDeadline();
    this.#line.start();
    this.#resolveOpened(true);
  }

  #follow(state: string): void {
    if (state === "failed" || state === "closed") this.#end(`the connection is ${state}`);
    if (!this.#isOpen && state === "connected" && !this.#hasDataChannel) this.#open();
    if (!this.#isOpen) return;
    this.#cancelDeadline();
    if (state !== "disconnected") return;
    const { clock, lostMs } = this.#settings;
    this.#cancelDeadline = clock.schedule(lostMs, () => this.#end("the peer is out of reach"));
  }

  #end(reason: string): void {
    void this.close(1000, reason);
  }

  async #release(reason: string): Promise<void> {
    this.#settings.log.debug({ reason }, "webrtc call closes");
    this.#cancelDeadline();
    this.#line.stop();
    this.#incoming.close();
    this.#resolveOpened(false);
    if (this.#sink !== null) {
      this.#sink.ondata = null;
      this.#sink.stop();
    }
    await this.#farewell();
    this.#channel?.close();
    this.#voice.stop();
    this.#ear?.stop();
    this.#peer.close();
  }

  /** Lets the last events leave. */
  async #farewell(): Promise<void> {
    const { clock } = this.#settings;
    const untilMs = clock.nowMs() + FAREWELL_MS_MAX;
    while (this.#channel?.readyState === "open" && this.bufferedBytes > 0 && clock.nowMs() < untilMs) {
      await new Promise<void>((resolve) => clock.schedule(10, resolve));
    }
  }
}

function toMono(samples: Int16Array, channelCount: number): Float32Array {
  const pcm = int16ToFloat(samples);
  if (channelCount === 1) return pcm;
  const mono = new Float32Array(pcm.length / channelCount);
  for (let i = 0; i < mono.length; i++) {
    let sum = 0;
    for (let channel = 0; channel < channelCount; channel++) sum += pcm[i * channelCount + channel]!;
    mono[i] = sum / channelCount;
  }
  return mono;
}

function tooLarge(bytes: number, bytesMax: number): string {
  const message =
    `An event of ${bytes} bytes does not fit into this data channel, which carries ${bytesMax}. ` +
    "Attach a WebSocket with ?call_id= to read it.";
  const error = { type: "server_error", code: "message_too_large", message, param: null, event_id: null };
  return JSON.stringify({ type: "error", event_id: `event_${bytes}`, error });
}
