/** A transport without a network: two ends in one process, for tests and for embedding. */
import type { Clock } from "../util/clock.ts";
import { Queue } from "../util/queue.ts";
import type { AudioPath, Transport, TransportMessage } from "./transport.ts";

export interface MemoryOptions {
  readonly audioPath: AudioPath;
  /** Plays the track: what is sent is heard in the clock's time. */
  readonly clock: Clock;
  readonly messagesMax?: number;
}

export interface HeardAudio {
  readonly pcm: Float32Array;
  readonly hz: number;
}

const MESSAGES_MAX = 1_000_000;

export class MemoryTransport implements Transport {
  readonly kind = "memory";
  readonly audioPath: AudioPath;
  readonly client: MemoryClient;
  readonly incoming: Queue<TransportMessage>;
  readonly gone: Promise<void>;
  leave: () => void = () => {};
  /** What counts as unread; a test may raise it. */
  bufferedBytes = 0;
  closed: { readonly code: number; readonly reason: string } | null = null;
  readonly #clock: Clock;
  #lineEndMs = 0;

  constructor(options: MemoryOptions) {
    this.audioPath = options.audioPath;
    this.#clock = options.clock;
    this.incoming = new Queue(options.messagesMax ?? MESSAGES_MAX);
    this.gone = new Promise((resolve) => {
      this.leave = resolve;
    });
    this.client = new MemoryClient(this);
  }
  get unplayedMs(): number {
    return Math.max(0, this.#lineEndMs - this.#clock.nowMs());
  }
  send(text: string): void {
    if (this.closed === null) this.client.received(text);
  }
  sendAudio(pcm: Float32Array, hz: number): void {
    this.#lineEndMs = Math.max(this.#lineEndMs, this.#clock.nowMs()) + (pcm.length * 1000) / hz;
    this.client.audio.push({ pcm, hz });
  }
  clearAudio(): number {
    const droppedMs = this.unplayedMs;
    this.#lineEndMs = this.#clock.nowMs();
    return droppedMs;
  }
  close(code: number, reason: string): Promise<void> {
    this.closed ??= { code, reason };
    this.incoming.close();
    this.leave();
    this.client.ended();
    return Promise.resolve();
  }
}

/** The other end. */
export class MemoryClient {
  /** Every text that came, in order. */
  readonly texts: string[] = [];
  /** What the track played. */
  readonly audio: HeardAudio[] = [];
  readonly #transport: MemoryTransport;
  #wake: (() => void)[] = [];

  constructor(transport: MemoryTransport) {
    this.#transport = transport;
  }
  send(text: string): void {
    this.#transport.incoming.push({ type: "text", text });
  }
  sendAudio(pcm: Float32Array, hz: number): void {
    this.#transport.incoming.push({ type: "audio", pcm, hz });
  }
  close(): void {
    this.#transport.incoming.close();
    this.#transport.leave();
  }
  /** Resolves when `test` holds for what has come so far, or the transport has ended. */
  async until(test: (texts: readonly string[]) => boolean): Promise<void> {
    while (!test(this.texts) && this.#transport.closed === null) {
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
  received(text: string): void {
    this.texts.push(text);
    this.ended();
  }
  ended(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}
