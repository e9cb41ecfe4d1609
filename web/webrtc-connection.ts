/** OpenAI's WebRTC handshake: an offer by HTTP, then audio on tracks and events on a data channel. */
import {
  type ClientEvent,
  type ConnectionOptions,
  fatalProblem,
  type RealtimeConnection,
  readRefusal,
  unreachable,
} from "./connection.ts";
import { Meter } from "./meter.ts";
import { mediaBlocked, type Problem, TalkFailure } from "./problems.ts";
import { apiUrl, authorization } from "./server.ts";
import type { ServerEvent } from "./talk-model.ts";

const CONNECT_MS_MAX = 10_000;
/** Networks change under a call; the browser finds its way back in this time, or not. */
const LOST_MS = 6_000;

export async function openWebRtc(options: ConnectionOptions): Promise<RealtimeConnection> {
  const connection = new WebRtcConnection(options);
  try {
    await connection.open();
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

class WebRtcConnection implements RealtimeConnection {
  readonly #options: ConnectionOptions;
  readonly #peer = new RTCPeerConnection();
  readonly #channel: RTCDataChannel = this.#peer.createDataChannel("oai-events");
  /** Web Audio alone does not pull a remote track; an element does. */
  readonly #player = new Audio();
  readonly #input: Meter | null;
  #output: Meter | null = null;
  #callPath: string | null = null;
  #lostTimer = 0;
  #isClosed = false;
  #isOpen = false;
  #fatal: Problem | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { microphone, audio } = options;
    this.#input = microphone === null ? null : new Meter(audio.createMediaStreamSource(microphone));
    const track = microphone?.getAudioTracks()[0];
    if (track !== undefined && microphone !== null) this.#peer.addTrack(track, microphone);
    else this.#peer.addTransceiver("audio", { direction: "recvonly" });
    this.#peer.addEventListener("track", ({ track }) => this.#hear(new MediaStream([track])));
    this.#peer.addEventListener("connectionstatechange", () => this.#follow());
    this.#channel.addEventListener("message", ({ data }) => this.#receive(JSON.parse(data) as ServerEvent));
    this.#channel.addEventListener("close", () => this.#lose());
  }

  async open(): Promise<void> {
    const { key, session, signal } = this.#options;
    await this.#peer.setLocalDescription();
    const body = new FormData();
    body.set("sdp", this.#peer.localDescription?.sdp ?? "");
    body.set("session", JSON.stringify(session));
    const request = { method: "POST", body, headers: authorization(key), signal };
    const response = await fetch(apiUrl("v1/realtime/calls"), request).catch((error) => {
      throw unreachable(error);
    });
    if (!response.ok) throw await readRefusal(response);
    this.#callPath = response.headers.get("Location");
    await this.#peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
    await this.#opened();
  }

  send(event: ClientEvent): void {
    if (this.#channel.readyState !== "open") return;
    this.#options.listener.sent(event);
    this.#channel.send(JSON.stringify(event));
  }
  setMicrophone(isOn: boolean): void {
    for (const track of this.#options.microphone?.getAudioTracks() ?? []) track.enabled = isOn;
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

  #opened(): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new TalkFailure(mediaBlocked)), CONNECT_MS_MAX);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#channel.addEventListener("open", () => {
        clearTimeout(timer);
        this.#isOpen = true;
        resolve();
      });
    });
  }

  #hear(stream: MediaStream): void {
    const { audio } = this.#options;
    this.#player.srcObject = stream;
    void this.#player.play().catch(() => {});
    this.#output = new Meter(audio.createMediaStreamSource(stream));
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
