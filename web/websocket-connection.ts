/** Everything in one WebSocket: the microphone as base64 events, the assistant's voice played by a worklet. */
import {
  type ClientEvent,
  type ConnectionOptions,
  fatalProblem,
  opened,
  type RealtimeConnection,
} from "./connection.ts";
import { fromBase64, toBase64 } from "./pcm.ts";
import { type Problem, serverAway, TalkFailure } from "./problems.ts";
import { realtimeSocket } from "./server.ts";
import { SocketSound } from "./socket-sound.ts";
import type { ServerEvent } from "./talk-model.ts";

/** PCM16 mono, both ways. */
export const WIRE_HZ = 24_000;
const CHUNK_MS = 20;
const CONNECT_MS_MAX = 10_000;

export function openWebSocket(options: ConnectionOptions): Promise<RealtimeConnection> {
  return opened(new WebSocketConnection(options));
}

class WebSocketConnection implements RealtimeConnection {
  readonly #options: ConnectionOptions;
  readonly #socket: WebSocket;
  readonly #sound = new SocketSound();
  #isClosed = false;
  #isOpen = false;
  #fatal: Problem | null = null;
  /** The newest response. */
  #responseId = "";
  /** What of this response is still on its way comes too late to be heard. */
  #silencedId = "";

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = realtimeSocket(options.key);
  }

  async open(): Promise<void> {
    // The worklets load while the socket connects.
    await Promise.all([this.#created(), this.#startPlayback()]);
    this.send({ type: "session.update", session: this.#options.session });
    const microphone = await this.#options.microphone;
    if (microphone !== null) await this.#startCapture(microphone);
  }

  send(event: ClientEvent): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (event.type === "response.cancel") this.#silencedId = this.#responseId;
    this.#options.listener.sent(event);
    this.#socket.send(JSON.stringify(event));
  }
  setMicrophone(isOn: boolean): void {
    this.#sound.isMicrophoneOn = isOn;
  }
  silence(): void {
    this.#silencedId = this.#responseId;
    this.#sound.silence();
  }
  inputLevel(): number {
    return this.#sound.inputLevel();
  }
  outputLevel(): number {
    return this.#sound.outputLevel();
  }
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#sound.close();
    this.#socket.close(1000);
  }

  #created(): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new TalkFailure(this.#fatal ?? serverAway));
      const timer = setTimeout(fail, CONNECT_MS_MAX);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#socket.addEventListener("close", () => {
        clearTimeout(timer);
        fail();
        this.#lose();
      });
      this.#socket.addEventListener("message", ({ data }) => {
        const event = JSON.parse(data) as ServerEvent;
        this.#receive(event);
        if (event.type !== "session.created") return;
        clearTimeout(timer);
        this.#isOpen = true;
        resolve();
      });
    });
  }

  #receive(event: ServerEvent): void {
    this.#fatal = fatalProblem(event) ?? this.#fatal;
    if (event.type === "response.created") this.#responseId = (event["response"] as { id: string }).id;
    if (event.type === "response.output_audio.delta" && event["response_id"] !== this.#silencedId) {
      this.#sound.play(String(event["item_id"]), fromBase64(String(event["delta"])));
    }
    // Whoever interrupts wants quiet at once; the server's cancellation is on its way.
    if (event.type === "input_audio_buffer.speech_started") this.silence();
    this.#options.listener.received(event);
  }

  async #startPlayback(): Promise<void> {
    const { audio, listener } = this.#options;
    await this.#sound.startPlayback(audio(), {
      inputHz: WIRE_HZ,
      isLive: false,
      playing: (isPlaying) => listener.playing(isPlaying),
      cleared: (itemId, playedMs) => this.#truncate(itemId, playedMs),
    });
  }

  #truncate(itemId: string, playedMs: number): void {
    this.send({
      type: "conversation.item.truncate",
      item_id: itemId,
      content_index: 0,
      audio_end_ms: Math.floor(playedMs),
    });
  }

  async #startCapture(microphone: MediaStream): Promise<void> {
    await this.#sound.startCapture(microphone, {
      outputHz: WIRE_HZ,
      chunkMs: CHUNK_MS,
      heard: (chunk) => {
        if (this.#sound.isMicrophoneOn) this.send({ type: "input_audio_buffer.append", audio: toBase64(chunk) });
      },
    });
  }

  #lose(): void {
    if (this.#isClosed || !this.#isOpen) return;
    this.close();
    this.#options.listener.lost(this.#fatal);
  }
}
