/**
 * WebRTC as a transport: Opus both ways on one media track, events on one data channel. libwebrtc lives in a process of its
 * own for each peer (peer-entry.ts); here are the call's clock, its paced line and its ends.
 */
import { int16ToFloat } from "../audio/pcm.ts";
import { AppError, CapacityError, ClientError, toAppError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type Log, silentLog } from "../util/log.ts";
import { Queue } from "../util/queue.ts";
import { PeerProcess } from "./peer-process.ts";
import type { FromPeer, PeerConfiguration } from "./peer-wire.ts";
import { RtpAudio } from "./rtp-audio.ts";
import { hasUdpCandidate, type Offer, publishAddress, readOffer } from "./sdp.ts";
import type { Transport, TransportMessage } from "./transport.ts";

export interface IceServer {
  readonly urls: string | readonly string[];
  readonly username?: string;
  readonly credential?: string;
}

export interface WebRtcOptions {
  /** STUN and TURN servers. None by default: host candidates only, and nobody else is asked. */
  readonly iceServers?: readonly IceServer[];
  /** The UDP ports that media may use; each call takes one, the same on every network interface. Default: any. */
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
/** 20 s of audio in pieces of 10 ms. */
const INCOMING_MESSAGES_MAX = 2_000;

/** Answers offers; each answer is a call of its own. */
export class WebRtc implements Disposable {
  readonly #settings: WebRtcSettings;
  /** Has loaded libwebrtc, or is about to, and waits for a call. */
  #spare: PeerProcess | null = null;
  #isDisposed = false;

  constructor(options: WebRtcOptions = {}) {
    this.#settings = resolveWebRtc(options);
  }

  /** Starts the process of the next call, so that the call need not wait for it. Where there is no WebRTC, calls say so. */
  prepare(): void {
    if (this.#isDisposed || (this.#spare?.pid ?? null) !== null) return;
    const spare = new PeerProcess(this.#settings.log);
    this.#spare = spare;
    spare.ready.catch((error: unknown) => {
      this.#settings.log.warn({ code: toAppError(error).code }, "no process for calls over WebRTC");
      if (this.#spare === spare) this.#spare = null;
    });
  }

  /**
   * Takes a peer's offer. The call is not open yet: the peer needs the answer first.
   * @throws {ClientError} invalid_sdp, with the reason.
   * @throws {CapacityError} session_limit_reached when every port of `udpPorts` is taken.
   * @throws {AppError} not_implemented where there is no build of libwebrtc for this machine.
   */
  async answer(offerSdp: string): Promise<{ readonly answerSdp: string; readonly transport: WebRtcTransport }> {
    const offer = readOffer(offerSdp);
    this.prepare();
    const peer = this.#spare ?? new PeerProcess(this.#settings.log);
    this.#spare = null;
    await peer.ready;
    const transport = new WebRtcTransport(peer, offer, this.#settings);
    try {
      const { iceServers, udpPorts, natIp } = this.#settings;
      const answerSdp = await transport.negotiate(offer, {
        iceServers,
        bundlePolicy: "max-bundle",
        ...(udpPorts === null ? {} : { portRange: udpPorts }),
      });
      if (udpPorts !== null && !hasUdpCandidate(answerSdp)) throw noPort(udpPorts);
      return { answerSdp: natIp === null ? answerSdp : publishAddress(answerSdp, natIp), transport };
    } catch (error) {
      await transport.close(1000, "no answer");
      throw error;
    } finally {
      this.prepare();
    }
  }

  /** Calls go on; the process that waits for the next one ends. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#spare?.kill();
    this.#spare = null;
  }
}

function noPort({ min, max }: { readonly min: number; readonly max: number }): CapacityError {
  const ports = min === max ? `The one media port ${min} is` : `All media ports ${min}-${max} are`;
  return new CapacityError(
    "session_limit_reached",
    `${ports} taken; try again when a call has ended. Each call takes one: whoever runs this server can give more with --ice-udp-port FIRST-LAST.`,
    { retryable: true },
  );
}

export class WebRtcTransport implements Transport {
  readonly kind = "webrtc";
  readonly audioPath = "track";
  /** True when the call can be used, false when it ended before. */
  readonly opened: Promise<boolean>;
  readonly #peer: PeerProcess;
  readonly #settings: WebRtcSettings;
  readonly #hasDataChannel: boolean;
  readonly #messageBytesMax: number;
  readonly #incoming = new Queue<TransportMessage>(INCOMING_MESSAGES_MAX);
  readonly #line: RtpAudio;
  #answered: { resolve: (sdp: string) => void; reject: (error: unknown) => void } | null = null;
  #resolveOpened: (opened: boolean) => void = () => {};
  #failure: AppError | null = null;
  #isOpen = false;
  #isChannelOpen = false;
  #sentBytes = 0;
  /** Of `#sentBytes`, what the peer's process had taken, and what of that waited for the network. */
  #taken = { takenBytes: 0, bufferedBytes: 0 };
  /** Ends the call when a peer has not come, or has gone. */
  #cancelDeadline: () => void;
  #closing: Promise<void> | null = null;

  constructor(peer: PeerProcess, offer: Offer, settings: WebRtcSettings) {
    this.#peer = peer;
    this.#settings = settings;
    this.#hasDataChannel = offer.hasDataChannel;
    this.#messageBytesMax = Math.min(MESSAGE_BYTES_MAX, offer.messageBytesMax);
    this.opened = new Promise((resolve) => {
      this.#resolveOpened = resolve;
    });
    this.#line = new RtpAudio(settings.clock, (samples) => this.#peer.send({ type: "audio", samples }));
    this.#cancelDeadline = settings.clock.schedule(settings.connectMs, () => this.#end("the peer never connected"));
    peer.listen({ receive: (message) => this.#receive(message), ended: (signal) => this.#lose(signal) });
  }

  /** The answer to the peer's offer. Once. @throws {ClientError} invalid_sdp. @throws {AppError} internal_error. */
  negotiate(offer: Offer, configuration: PeerConfiguration): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      this.#peer.send({ type: "answer", offerSdp: offer.sdp, sections: offer.sections, configuration });
    });
  }

  get incoming(): AsyncIterable<TransportMessage> {
    return this.#incoming;
  }
  get failure(): AppError | null {
    return this.#failure;
  }
  get isOpen(): boolean {
    return this.#isOpen && this.#closing === null;
  }
  /** Of the call's process; null when it has ended. */
  get pid(): number | null {
    return this.#peer.pid;
  }
  /** From the end's beginning on, which is before `close` resolves. */
  get isClosing(): boolean {
    return this.#closing !== null;
  }
  get bufferedBytes(): number {
    return this.#sentBytes - this.#taken.takenBytes + this.#taken.bufferedBytes;
  }
  get unplayedMs(): number {
    return this.#line.unplayedMs;
  }

  /** A message that the channel cannot carry is replaced by an error that says so. */
  send(text: string): void {
    if (!this.#isChannelOpen) return;
    const bytes = Buffer.byteLength(text);
    const message = bytes <= this.#messageBytesMax ? text : tooLarge(bytes, this.#messageBytesMax);
    this.#sentBytes += Buffer.byteLength(message);
    this.#peer.send({ type: "text", text: message });
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

  #receive(message: FromPeer): void {
    switch (message.type) {
      case "answered":
        this.#answered?.resolve(message.answerSdp);
        break;
      case "refused":
        this.#answered?.reject(refusal(message.fault, message.reason));
        break;
      case "state":
        this.#follow(message.state);
        break;
      case "channel":
        this.#isChannelOpen = message.state === "open";
        if (this.#isChannelOpen) this.#open();
        else this.#end("the peer closed the data channel");
        break;
      case "text":
        this.#hear({ type: "text", text: message.text });
        break;
      case "audio":
        this.#hear({ type: "audio", pcm: toMono(message.samples, message.channelCount), hz: message.hz });
        break;
      case "sent":
        this.#taken = message;
        break;
    }
  }

  /** What is said before the session exists has nowhere to go; a reader that is 20 s behind has lost the thread. */
  #hear(message: TransportMessage): void {
    if (!this.#isOpen && message.type === "audio") return;
    if (this.#incoming.push(message) || message.type === "audio") return;
    this.#end("events came faster than they could be read");
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
    if (!this.#isOpen || this.#closing !== null) return;
    this.#cancelDeadline();
    if (state !== "disconnected") return;
    const { clock, lostMs } = this.#settings;
    this.#cancelDeadline = clock.schedule(lostMs, () => this.#end("the peer is out of reach"));
  }

  /** The peer's process is gone. */
  #lose(signal: NodeJS.Signals | null): void {
    if (signal !== null) this.#settings.log.warn({ signal, closing: this.#closing !== null }, "a call's process died");
    this.#isChannelOpen = false;
    const failure = new AppError("internal_error", "The process of the call ended; try again.");
    this.#answered?.reject(failure);
    if (this.#closing === null) this.#failure = failure;
    this.#end("the process of the call ended");
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
    await this.#peer.end();
    this.#isChannelOpen = false;
  }
}

function refusal(fault: "offer" | "library", reason: string): AppError {
  if (fault === "offer") return new ClientError("invalid_sdp", `The SDP offer cannot be used: ${reason}.`, "sdp");
  return new AppError("internal_error", `The SDP offer could not be answered: ${reason}.`);
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
