/** A full-duplex session: 80 ms up, 80 ms down, silence included, over one WebSocket. See docs/voicechat-protocol.md. */
import { type ClientEvent, type ConnectionOptions, opened, type RealtimeConnection } from "./connection.ts";
import { fromBase64, toBase64 } from "./pcm.ts";
import { duplexProblem, type Problem, serverAway, TalkFailure } from "./problems.ts";
import { realtimeSocket, type ServerFacts } from "./server.ts";
import { SocketSound } from "./socket-sound.ts";
import type { ServerEvent } from "./talk-model.ts";

const FRAME_MS = 80;
const CONNECT_MS_MAX = 10_000;
/** The prompt is taken in before the session is ready. */
const CONFIGURE_MS_MAX = 60_000;
/** Answers that come later than this are no conversation. */
const BEHIND_MS = 2000;

export function openVoiceChat(options: ConnectionOptions, facts: ServerFacts): Promise<RealtimeConnection> {
  return opened(new VoiceChatConnection(options, facts));
}

class VoiceChatConnection implements RealtimeConnection {
  readonly #options: ConnectionOptions;
  readonly #facts: ServerFacts;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, () => void>();
  readonly #sound = new SocketSound();
  #isClosed = false;
  #isOpen = false;
  #fatal: Problem | null = null;
  /** Frames sent and not answered. */
  #pendingFrames = 0;
  #isSlow = false;

  constructor(options: ConnectionOptions, facts: ServerFacts) {
    this.#options = options;
    this.#facts = facts;
    this.#socket = realtimeSocket(options.key);
    this.#socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(data) as ServerEvent));
    this.#socket.addEventListener("close", ({ code }) => this.#lose(code));
  }

  async open(): Promise<void> {
    await Promise.all([this.#until("session.created", CONNECT_MS_MAX), this.#startPlayback()]);
    // The model's time begins with its settings; nobody is to miss its first words.
    const microphone = await this.#options.microphone;
    const ready = this.#until("session.updated", CONFIGURE_MS_MAX);
    this.send({ type: "session.update", session: this.#options.session });
    await ready;
    this.#isOpen = true;
    if (microphone !== null) await this.#startCapture(microphone);
  }

  send(event: ClientEvent): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#options.listener.sent(event);
    this.#socket.send(JSON.stringify(event));
  }
  setMicrophone(isOn: boolean): void {
    this.#sound.isMicrophoneOn = isOn;
  }
  silence(): void {
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
    this.send({ type: "session.cancel" });
    this.#isClosed = true;
    this.#sound.close();
    this.#socket.close(1000);
  }

  /** Resolves with the event of this type. @throws {TalkFailure} when it does not come. */
  #until(type: string, msMax: number): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new TalkFailure(this.#fatal ?? serverAway));
      const timer = setTimeout(fail, msMax);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#socket.addEventListener("close", fail);
      this.#waiting.set(type, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #receive(event: ServerEvent): void {
    if (event.type === "response.audio.delta") this.#play(String(event["delta"]));
    this.#options.listener.received(event);
    this.#waiting.get(event.type)?.();
    if (event.type !== "error") return;
    const { code, message } = event["error"] as { code: string; message: string };
    this.#fatal = duplexProblem(code, message);
    // Audio that was not taken is a hole in the timeline: there is no going on.
    this.#socket.close(1000);
  }

  #play(delta: string): void {
    this.#pendingFrames -= 1;
    this.#sound.play("", fromBase64(delta));
  }

  async #startPlayback(): Promise<void> {
    const { audio, listener } = this.#options;
    await this.#sound.startPlayback(audio(), {
      inputHz: this.#facts.outputHz,
      isLive: true,
      playing: (isPlaying) => listener.playing(isPlaying),
    });
  }

  async #startCapture(microphone: MediaStream): Promise<void> {
    await this.#sound.startCapture(microphone, {
      outputHz: this.#facts.inputHz,
      chunkMs: FRAME_MS,
      heard: (chunk) => this.#append(chunk),
    });
  }

  /** Time goes on while the microphone is off: silence is part of what is sent. */
  #append(chunk: Int16Array<ArrayBuffer>): void {
    if (!this.#sound.isMicrophoneOn) chunk.fill(0);
    this.send({ type: "input_audio_buffer.append", audio: toBase64(chunk), sample_rate: this.#facts.inputHz });
    this.#pendingFrames += 1;
    const behindMs = this.#pendingFrames * FRAME_MS;
    if (behindMs < BEHIND_MS || this.#isSlow) return;
    this.#isSlow = true;
    this.#options.listener.note(
      "The model is slower than speech on this machine: its answers come later and later. A smaller or quantized checkpoint may keep up.",
    );
  }

  #lose(code: number): void {
    const byCode = { 1011: "model_failed", 1012: "server_draining", 1013: "server_busy" }[code];
    if (byCode !== undefined) this.#fatal ??= duplexProblem(byCode, "");
    if (this.#isClosed || !this.#isOpen) return;
    this.close();
    this.#options.listener.lost(this.#fatal);
  }
}
