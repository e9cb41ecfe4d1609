/**
 * One peer of a full-duplex model: a transport, the VoiceChat dialect and a duplex session. One message is worked on to its
 * end before the next is read, so a peer that sends faster than the model runs is held back by its own socket.
 */
import { type DuplexEvent, type DuplexLimits, DuplexSession } from "../conversation/duplex-session.ts";
import { VoiceChatDialect } from "../dialects/voicechat.ts";
import type { Engine } from "../engines/engine.ts";
import { type ErrorCode, toAppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import { Pace } from "./pace.ts";
import type { Transport, TransportMessage } from "./transport.ts";

/** What a connection tells about itself: counts and times, never content. */
export interface DuplexObserver {
  /** One frame of 80 ms was answered; `lagMs`: how far behind a person's clock the session is after it. */
  frame(timing: {
    readonly totalMs: number;
    readonly stageMs: Readonly<Record<string, number>>;
    readonly lagMs: number;
  }): void;
  /** A session has fallen a second behind. */
  fellBehind(): void;
  audio(direction: "input" | "output", seconds: number): void;
  error(code: ErrorCode): void;
}

export interface DuplexConnectionOptions {
  readonly transport: Transport;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  readonly limits?: Partial<DuplexLimits>;
  /** Unsent bytes after which a peer counts as not reading. Default 16 MiB. */
  readonly unsentBytesMax?: number;
  readonly observer?: DuplexObserver;
}

interface Farewell {
  readonly code: number;
  readonly reason: string;
}

/** How a session ends, as its peer sees it. docs/voicechat-protocol.md lists them. */
export const FAREWELLS: Readonly<Record<"ended" | "expired" | "failed" | "deaf", Farewell>> = {
  ended: { code: 1000, reason: "" },
  expired: { code: 1008, reason: "no message came for too long" },
  failed: { code: 1011, reason: "the model failed" },
  deaf: { code: 1008, reason: "client_too_slow" },
};

const FRAME_MS = 80;
const UNSENT_BYTES_MAX = 16 * 1024 * 1024;

export class DuplexConnection {
  readonly id: string;
  readonly #options: DuplexConnectionOptions;
  readonly #dialect: VoiceChatDialect;
  readonly #session: DuplexSession;
  readonly #log: Log;
  readonly #pace = new Pace(FRAME_MS);
  /** Since when audio is worked on, without what was counted already; null while the peer is waited for. */
  #workingSinceMs: number | null = null;
  /** Worked on the frame that is not answered yet. */
  #workedMs = 0;
  #farewell: Farewell = FAREWELLS.ended;
  #isStopped = false;
  #onStop: () => void = () => {};

  constructor(options: DuplexConnectionOptions) {
    const { engine, clock, ids, log, limits = {} } = options;
    this.#options = options;
    this.id = ids("sess");
    this.#log = log.with({ session: this.id });
    this.#dialect = new VoiceChatDialect({ capabilities: engine.capabilities, sessionId: this.id, ids });
    this.#session = new DuplexSession({ engine, clock, limits, emit: (event) => this.#emit(event) });
  }
  /** Serves the peer until it goes or is done. The model is free when this resolves, the transport still open. Never rejects. */
  async run(): Promise<void> {
    try {
      this.#options.transport.send(this.#dialect.greeting());
      this.#session.start();
      await this.#read();
    } catch (error) {
      this.#log.error({ code: toAppError(error).code, stack: (error as Error).stack }, "connection failed");
      this.#farewell = FAREWELLS.failed;
    }
    await this.#session.close().catch((error: unknown) => {
      this.#log.error({ code: toAppError(error).code }, "the engine stream did not close");
    });
  }
  /** After `run`: closes the transport, with the code that the session's end calls for. */
  async leave(): Promise<void> {
    await this.#options.transport.close(this.#farewell.code, this.#farewell.reason);
  }
  /** Ends the session now. */
  close(code: number, reason: string): void {
    this.#farewell = { code, reason };
    this.#stop();
  }

  async #read(): Promise<void> {
    const { incoming, gone } = this.#options.transport;
    // A peer that goes while the model works for it, with more to read behind that, is noticed at once.
    void gone?.then(() => this.#stop());
    const messages = incoming[Symbol.asyncIterator]();
    for (;;) {
      const message = await this.#unlessStopped(messages.next());
      if (message === null || message.done === true) return;
      if ((await this.#unlessStopped(this.#receive(message.value))) === null) return;
    }
  }
  /** Null as soon as the session is to end. Not a race of promises: a long session would pile up its losers. */
  #unlessStopped<T>(work: Promise<T>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      this.#onStop = () => resolve(null);
      if (this.#isStopped) resolve(null);
      work.then(resolve, reject);
    });
  }
  #stop(): void {
    this.#isStopped = true;
    this.#onStop();
  }
  async #receive(message: TransportMessage): Promise<void> {
    if (message.type === "audio") return;
    const decoded = this.#dialect.decode(message.text, this.#session.isConfigured);
    if ("refusal" in decoded) {
      const { code, message: text } = decoded.refusal;
      this.#options.observer?.error(code);
      this.#session.touch();
      this.#send(this.#dialect.encodeError(code, text));
      return;
    }
    const { command } = decoded;
    const { engine, observer, clock } = this.#options;
    const { inputHz } = engine.capabilities;
    // Audio at another rate is refused, and what a peer calls a rate may be no divisor at all.
    if (command.type === "append" && command.sampleHz === inputHz) {
      observer?.audio("input", command.pcm.length / inputHz);
    }
    if (command.type === "append" || command.type === "finish") this.#workingSinceMs = clock.nowMs();
    await this.#session.dispatch(command);
    this.#countWork();
    this.#workingSinceMs = null;
  }
  #countWork(): void {
    if (this.#workingSinceMs === null) return;
    const nowMs = this.#options.clock.nowMs();
    this.#workedMs += nowMs - this.#workingSinceMs;
    this.#workingSinceMs = nowMs;
  }
  #emit(event: DuplexEvent): void {
    this.#observe(event);
    const text = this.#dialect.encode(event);
    if (text !== null) this.#send(text);
    if (event.type !== "closed") return;
    if (this.#farewell === FAREWELLS.ended) this.#farewell = FAREWELLS[event.reason];
    this.#stop();
  }
  #send(text: string): void {
    const { transport, observer, unsentBytesMax = UNSENT_BYTES_MAX } = this.#options;
    transport.send(text);
    const { bufferedBytes } = transport;
    if (bufferedBytes <= unsentBytesMax || this.#farewell === FAREWELLS.deaf) return;
    observer?.error("client_too_slow");
    this.#log.warn({ code: "client_too_slow", bufferedBytes }, "the client does not read what it is sent");
    this.#farewell = FAREWELLS.deaf;
    this.#stop();
  }
  #observe(event: DuplexEvent): void {
    const { observer } = this.#options;
    if (event.type === "frame.timing") this.#measure(event.totalMs, event.stageMs);
    else if (event.type === "frame.audio") observer?.audio("output", event.pcm.length / event.hz);
    else if ("error" in event) {
      observer?.error(event.error.code);
      this.#log.warn({ code: event.error.code }, event.error.message);
    }
  }
  #measure(totalMs: number, stageMs: Readonly<Record<string, number>>): void {
    const { observer } = this.#options;
    this.#countWork();
    // Whoever waits for the answer waits for its networks, and for all that holds them up.
    const tookMs = Math.max(totalMs, this.#workedMs);
    this.#workedMs = 0;
    const change = this.#pace.frame(tookMs);
    const { lagMs } = this.#pace;
    observer?.frame({ totalMs, stageMs, lagMs });
    const facts = { lagMs: Math.round(lagMs), frameMs: Math.round(tookMs) };
    if (change === "behind") {
      observer?.fellBehind();
      this.#log.warn(facts, "the model falls behind the clock: a frame of 80 ms takes longer than that");
    } else if (change === "caught-up") this.#log.info(facts, "the model has caught up with the clock");
  }
}
