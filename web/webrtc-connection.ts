/** OpenAI's WebRTC handshake: an offer by HTTP, then audio on tracks and events on a data channel. */
import {
  type ClientEvent,
  type ConnectionOptions,
  fatalProblem,
  opened,
  type RealtimeConnection,
  readRefusal,
  unreachable,
} from "./connection.ts";
import { Meter } from "./meter.ts";
import { callSlow, mediaBlocked, type Problem, serverAway, TalkFailure } from "./problems.ts";
import { apiUrl, authorization } from "./server.ts";
import type { ServerEvent } from "./talk-model.ts";

/** For the server's answer to the offer. */
const ANSWER_MS_MAX = 20_000;
/** From the answer to the session. */
const CONNECT_MS_MAX = 15_000;
/** This machine's own addresses are known at once; others are not waited for. */
const ADDRESSES_MS_MAX = 40;
/** Networks change under a call; the browser finds its way back in this time, or not. */
const LOST_MS = 6_000;

export function openWebRtc(options: ConnectionOptions): Promise<RealtimeConnection> {
  return opened(new WebRtcConnection(options));
}

class WebRtcConnection implements RealtimeConnection {
  readonly #options: ConnectionOptions;
  readonly #peer = new RTCPeerConnection();
  readonly #channel: RTCDataChannel = this.#peer.createDataChannel("oai-events");
  readonly #sender: RTCRtpSender;
  /** Web Audio alone does not pull a remote track; an element does. */
  readonly #player = new Audio();
  #microphone: MediaStream | null = null;
  #input: Meter | null = null;
  #output: Meter | null = null;
  #callPath: string | null = null;
  #lostTimer = 0;
  #isClosed = false;
  #isOpen = false;
  #fatal: Problem | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const direction = options.microphone === null ? "recvonly" : "sendrecv";
    this.#sender = this.#peer.addTransceiver("audio", { direction }).sender;
    this.#peer.addEventListener("track", ({ track }) => this.#hear(new MediaStream([track])));
    this.#peer.addEventListener("connectionstatechange", () => this.#follow());
    this.#channel.addEventListener("message", ({ data }) => this.#receive(JSON.parse(data) as ServerEvent));
    this.#channel.addEventListener("close", () => this.#lose());
  }

  async open(): Promise<void> {
    const created = this.#created();
    // Fails with the rest below, or is nobody's.
    created.catch(() => {});
    await Promise.all([this.#negotiate(), this.#takeMicrophone()]);
    await created;
    this.#isOpen = true;
    this.#measure();
  }

  send(event: ClientEvent): void {
    if (this.#channel.readyState !== "open") return;
    this.#options.listener.sent(event);
    this.#channel.send(JSON.stringify(event));
  }
  setMicrophone(isOn: boolean): void {
    for (const track of this.#microphone?.getAudioTracks() ?? []) track.enabled = isOn;
  }
  silence(): void {
    this.send({ type: "output_audio_buffer.clear" });
  }
  inputLevel(): number {
    return this.#input?.level() ?? 0;
  }
  outputLevel(): number {
    return this.#output?.level() ?? 0;
  }
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#lostTimer);
    this.#player.srcObject = null;
    // Closing the peer tells the server too; the request is for servers that the farewell does not reach.
    if (this.#callPath !== null && !this.#isOpen) this.#hangUp(this.#callPath);
    this.#peer.close();
  }

  async #negotiate(): Promise<void> {
    await this.#peer.setLocalDescription();
    await this.#ownAddresses();
    const sdp = await this.#askForAnswer(this.#peer.localDescription?.sdp ?? "");
    if (!this.#isClosed) await this.#peer.setRemoteDescription({ type: "answer", sdp });
  }

  /** With them, a server that cannot be reached from here can reach us. */
  #ownAddresses(): Promise<void> {
    return new Promise((resolve) => {
      this.#peer.addEventListener("icecandidate", () => resolve(), { once: true });
      setTimeout(resolve, ADDRESSES_MS_MAX);
    });
  }

  async #askForAnswer(offer: string): Promise<string> {
    const { key, session, signal } = this.#options;
    const body = new FormData();
    body.set("sdp", offer);
    body.set("session", JSON.stringify(session));
    const tooLate = AbortSignal.timeout(ANSWER_MS_MAX);
    const request = { method: "POST", body, headers: authorization(key), signal: AbortSignal.any([signal, tooLate]) };
    try {
      const response = await fetch(apiUrl("v1/realtime/calls"), request);
      if (!response.ok) throw await readRefusal(response);
      this.#callPath = response.headers.get("Location");
      // The call was given up while the answer was on its way.
      if (this.#isClosed && this.#callPath !== null) this.#hangUp(this.#callPath);
      return await response.text();
    } catch (error) {
      throw tooLate.aborted ? new TalkFailure(callSlow) : unreachable(error);
    }
  }

  /** The microphone joins what was offered for it. */
  async #takeMicrophone(): Promise<void> {
    this.#microphone = await this.#options.microphone;
    const track = this.#microphone?.getAudioTracks()[0];
    if (track !== undefined && !this.#isClosed) await this.#sender.replaceTrack(track);
  }

  /** Resolves with the session. @throws {TalkFailure} when it does not come. */
  #created(): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      let timer = 0;
      const fail = (problem: Problem): void => reject(new TalkFailure(this.#fatal ?? problem));
      const isBlocked = (): boolean => this.#peer.connectionState !== "connected";
      this.#peer.addEventListener("signalingstatechange", () => {
        if (this.#peer.signalingState !== "stable") return;
        timer = setTimeout(() => fail(isBlocked() ? mediaBlocked : callSlow), CONNECT_MS_MAX);
      });
      this.#peer.addEventListener("connectionstatechange", () => {
        if (this.#peer.connectionState === "failed") fail(mediaBlocked);
      });
      this.#channel.addEventListener("close", () => fail(serverAway));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#channel.addEventListener("message", () => {
        if (this.#fatal !== null) return fail(this.#fatal);
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #hear(stream: MediaStream): void {
    this.#player.srcObject = stream;
    void this.#player.play().catch(() => {});
  }

  /** Needs the page's audio, which takes a moment to begin: the session does not wait for it. */
  #measure(): void {
    const audio = this.#options.audio();
    const heard = this.#player.srcObject as MediaStream | null;
    if (this.#microphone !== null) this.#input = new Meter(audio.createMediaStreamSource(this.#microphone));
    if (heard !== null) this.#output = new Meter(audio.createMediaStreamSource(heard));
  }

  #receive(event: ServerEvent): void {
    this.#fatal = fatalProblem(event) ?? this.#fatal;
    this.#options.listener.received(event);
  }

  #follow(): void {
    clearTimeout(this.#lostTimer);
    const state = this.#peer.connectionState;
    if (state === "failed") this.#lose();
    if (state === "disconnected") this.#lostTimer = setTimeout(() => this.#lose(), LOST_MS);
  }

  #lose(): void {
    if (this.#isClosed || !this.#isOpen) return;
    this.close();
    this.#options.listener.lost(this.#fatal);
  }

  #hangUp(path: string): void {
    const headers = authorization(this.#options.key);
    void fetch(`${path}/hangup`, { method: "POST", headers, keepalive: true }).catch(() => {});
  }
}
