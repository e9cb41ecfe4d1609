/** A session's WebSocket: text frames both ways, with limits on everything that could grow. */
import type { RawData, WebSocket } from "ws";
import { AppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import { Queue } from "../util/queue.ts";
import type { Transport, TransportMessage } from "./transport.ts";

export interface WebSocketLimits {
  readonly pingMs: number;
}

export interface WebSocketTransportOptions {
  readonly socket: WebSocket;
  readonly clock: Clock;
  readonly limits: WebSocketLimits;
}

/**
 * What is read ahead of the session. Beyond either the socket is not read, and TCP slows the peer down; nor is a goodbye
 * read, so this is wide enough for a peer that says a minute and a half of audio at once and then leaves.
 */
export const READ_AHEAD_MESSAGES = 4096;
export const READ_AHEAD_CHARACTERS: number = 4 * 1024 * 1024;
/** The queue also takes what was in flight when reading stopped: all frames of one read of the socket. */
const QUEUE_MESSAGES_MAX = 65_536;
const UNANSWERED_PINGS_MAX = 2;
const CLOSE_TIMEOUT_MS = 2000;

export class WebSocketTransport implements Transport {
  readonly kind = "websocket";
  readonly audioPath = "events";
  readonly unplayedMs = 0;
  readonly gone: Promise<void>;
  readonly #socket: WebSocket;
  readonly #closed: Promise<void>;
  #onGone: () => void = () => {};
  readonly #clock: Clock;
  readonly #limits: WebSocketLimits;
  readonly #queue = new Queue<TransportMessage>(QUEUE_MESSAGES_MAX);
  /** In the queue. */
  #waitingCharacters = 0;
  #unansweredPings = 0;
  #cancelPing: () => void = () => {};

  constructor(options: WebSocketTransportOptions) {
    this.#socket = options.socket;
    this.#clock = options.clock;
    this.#limits = options.limits;
    this.#closed = new Promise((resolve) => this.#socket.once("close", () => resolve()));
    this.gone = new Promise((resolve) => {
      this.#onGone = resolve;
    });
    this.#socket.on("message", (data) => this.#receive(data));
    this.#socket.on("pong", () => {
      this.#unansweredPings = 0;
    });
    // The close that follows says all there is to say.
    this.#socket.on("error", () => {});
    this.#socket.once("close", () => this.#end());
    this.#schedulePing();
  }
  get incoming(): AsyncIterable<TransportMessage> {
    return this.#read();
  }
  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }
  send(text: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(text);
    // A peer that said goodbye and does not read keeps its connection open for a while; nobody is there all the same.
    else this.#onGone();
  }
  sendAudio(): void {
    throw new AppError("internal_error", "a WebSocket has no audio track; audio travels in events");
  }
  clearAudio(): number {
    return 0;
  }
  async close(code: number, reason: string): Promise<void> {
    // A reason takes at most 123 bytes on the wire.
    this.#socket.close(
      code,
      Buffer.from(reason)
        .subarray(0, 123)
        .toString()
        .replace(/\uFFFD$/, ""),
    );
    const cancel = this.#clock.schedule(CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
    await this.#closed;
    cancel();
  }
  #receive(data: RawData): void {
    const text = toText(data);
    if (!this.#queue.push({ type: "text", text })) return;
    this.#waitingCharacters += text.length;
    if (this.#isAhead(1)) this.#socket.pause();
  }
  async *#read(): AsyncGenerator<TransportMessage> {
    for await (const message of this.#queue) {
      if (message.type === "text") this.#waitingCharacters -= message.text.length;
      if (this.#socket.isPaused && !this.#isAhead(0.5)) this.#socket.resume();
      yield message;
    }
  }
  #isAhead(share: number): boolean {
    return this.#queue.size >= share * READ_AHEAD_MESSAGES || this.#waitingCharacters >= share * READ_AHEAD_CHARACTERS;
  }
  #schedulePing(): void {
    this.#cancelPing = this.#clock.schedule(this.#limits.pingMs, () => {
      if (this.#unansweredPings >= UNANSWERED_PINGS_MAX) return this.#socket.terminate();
      // Paused, the peer's pongs are not read either.
      if (!this.#socket.isPaused) {
        this.#unansweredPings += 1;
        this.#socket.ping();
      }
      this.#schedulePing();
    });
  }
  #end(): void {
    this.#onGone();
    this.#cancelPing();
    this.#queue.close();
  }
}

/** Clients that send their JSON as binary frames mean the same. */
function toText(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}
