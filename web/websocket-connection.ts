/** Everything in one WebSocket: the microphone as base64 events, the assistant's voice played by a worklet. */
import {
  type ClientEvent,
  type ConnectionOptions,
  fatalProblem,
  type RealtimeConnection,
  unreachable,
} from "./connection.ts";
import { Meter } from "./meter.ts";
import { type Problem, serverAway, TalkFailure } from "./problems.ts";
import type { ServerEvent } from "./talk-model.ts";

/** PCM16 mono, both ways. */
export const WIRE_HZ = 24_000;
const CONNECT_MS_MAX = 10_000;

export async function openWebSocket(options: ConnectionOptions): Promise<RealtimeConnection> {
  const connection = new WebSocketConnection(options);
  try {
    await connection.open();
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

class WebSocketConnection implements RealtimeConnection {
  readonly #options: ConnectionOptions;
  readonly #socket: WebSocket;
  #capture: AudioWorkletNode | null = null;
  #captureContext: AudioContext | null = null;
  #player: AudioWorkletNode | null = null;
  #input: Meter | null = null;
  #output: Meter | null = null;
  #isMicrophoneOn = true;
  #isClosed = false;
  #isOpen = false;
  #fatal: Problem | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const url = new URL("/v1/realtime", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const key = options.key === "" ? [] : [`openai-insecure-api-key.${options.key}`];
    this.#socket = new WebSocket(url, ["realtime", ...key]);
  }

  async open(): Promise<void> {
    // The worklets load while the socket connects.
    await Promise.all([this.#created(), this.#startPlayer()]);
    this.send({ type: "session.update", session: this.#options.session });
    if (this.#options.microphone !== null) await this.#startCapture(this.#options.microphone);
  }

  send(event: ClientEvent): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#options.listener.sent(event);
    this.#socket.send(JSON.stringify(event));
  }
  setMicrophone(isOn: boolean): void {
    this.#isMicrophoneOn = isOn;
  }
  silence(): void {
    this.#player?.port.postMessage({ type: "clear" });
  }
  inputLevel(): number {
    return this.#isMicrophoneOn ? (this.#input?.level() ?? 0) : 0;
  }
  outputLevel(): number {
    return this.#output?.level() ?? 0;
  }
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#capture?.disconnect();
    this.#player?.disconnect();
    void this.#captureContext?.close();
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
    if (event.type === "response.output_audio.delta") {
      const samples = fromBase64(String(event["delta"]));
      this.#player?.port.postMessage({ type: "push", itemId: event["item_id"], samples }, [samples.buffer]);
    }
    // Whoever interrupts wants quiet at once; the server's cancellation is on its way.
    if (event.type === "input_audio_buffer.speech_started") this.silence();
    this.#options.listener.received(event);
  }

  async #startPlayer(): Promise<void> {
    const { audio, listener } = this.#options;
    await audio.audioWorklet.addModule(new URL("./playback-worklet.js", import.meta.url)).catch((error) => {
      throw unreachable(error);
    });
    if (this.#isClosed) return;
    const player = new AudioWorkletNode(audio, "playback", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { inputHz: WIRE_HZ },
    });
    player.connect(audio.destination);
    player.port.onmessage = ({ data }: MessageEvent<PlayerMessage>) => {
      if (data.type === "playing") listener.playing(data.isPlaying);
      else this.#truncate(data.itemId, data.playedMs);
    };
    this.#player = player;
    this.#output = new Meter(player);
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
    const context = captureContext(microphone);
    this.#captureContext = context;
    await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    if (this.#isClosed) return;
    const source = context.createMediaStreamSource(microphone);
    const capture = new AudioWorkletNode(context, "capture", {
      numberOfOutputs: 0,
      processorOptions: { outputHz: WIRE_HZ },
    });
    capture.port.onmessage = ({ data }: MessageEvent<Int16Array<ArrayBuffer>>) => {
      if (this.#isMicrophoneOn) this.send({ type: "input_audio_buffer.append", audio: toBase64(data) });
    };
    source.connect(capture);
    this.#capture = capture;
    this.#input = new Meter(source);
  }

  #lose(): void {
    if (this.#isClosed || !this.#isOpen) return;
    this.close();
    this.#options.listener.lost(this.#fatal);
  }
}

type PlayerMessage =
  | { readonly type: "playing"; readonly isPlaying: boolean }
  | { readonly type: "cleared"; readonly itemId: string; readonly playedMs: number };

/** A context at the wire's rate, so that the browser resamples; some take only the microphone's own rate. */
function captureContext(microphone: MediaStream): AudioContext {
  const context = new AudioContext({ sampleRate: WIRE_HZ, latencyHint: "interactive" });
  try {
    context.createMediaStreamSource(microphone).disconnect();
    return context;
  } catch {
    void context.close();
    return new AudioContext({ latencyHint: "interactive" });
  }
}

function toBase64(samples: Int16Array<ArrayBuffer>): string {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  return btoa(String.fromCharCode(...bytes));
}

function fromBase64(text: string): Float32Array<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length >> 1 }, (_, i) => view.getInt16(2 * i, true) / 32_768);
}
