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
import type { Transport, TransportMessage } from "./transport.ts";

/** What a connection tells about itself: counts and times, never content. */
export interface DuplexObserver {
  /** One frame of 80 ms was answered. */
  frame(timing: { readonly totalMs: number; readonly stageMs: Readonly<Record<string, number>> }): void;
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
  readonly observer?: DuplexObserver;
}

interface Farewell {
  readonly code: number;
  readonly reason: string;
}

const NORMAL: Farewell = { code: 1000, reason: "" };
const QUIET: Farewell = { code: 1008, reason: "no message came for too long" };
const FAULT: Farewell = { code: 1011, reason: "the model failed" };

export class DuplexConnection {
  readonly id: string;
  readonly #options: DuplexConnectionOptions;
  readonly #dialect: VoiceChatDialect;
  readonly #session: DuplexSession;
  readonly #log: Log;
  #farewell: Farewell = NORMAL;
  #stop: () => void = () => {};
  readonly #stopped: Promise<"stopped"> = new Promise((resolve) => {
    this.#stop = () => resolve("stopped");
  });

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
      this.#farewell = FAULT;
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
    const messages = this.#options.transport.incoming[Symbol.asyncIterator]();
    let next = messages.next();
    for (;;) {
      const message = await Promise.race([next, this.#stopped]);
      if (message === "stopped" || message.done === true) return;
      // One message is read ahead: a peer that goes while the model works for it is noticed.
      next = messages.next();
      const gone = next.then((result) => (result.done === true ? ("stopped" as const) : new Promise<never>(() => {})));
      const work = this.#receive(message.value).then(() => "done" as const);
      if ((await Promise.race([work, gone, this.#stopped])) === "stopped") return;
    }
  }
  async #receive(message: TransportMessage): Promise<void> {
    if (message.type === "audio") return;
    const decoded = this.#dialect.decode(message.text, this.#session.isConfigured);
    if ("refusal" in decoded) {
      const { code, message: text } = decoded.refusal;
      this.#options.observer?.error(code);
      this.#session.touch();
      this.#options.transport.send(this.#dialect.encodeError(code, text));
      return;
    }
    const { command } = decoded;
    if (command.type === "append") this.#options.observer?.audio("input", command.pcm.length / command.sampleHz);
    await this.#session.dispatch(command);
  }
  #emit(event: DuplexEvent): void {
    this.#observe(event);
    const text = this.#dialect.encode(event);
    if (text !== null) this.#options.transport.send(text);
    if (event.type !== "closed") return;
    if (event.reason !== "ended") this.#farewell = event.reason === "expired" ? QUIET : FAULT;
    this.#stop();
  }
  #observe(event: DuplexEvent): void {
    const { observer } = this.#options;
    if (event.type === "frame.timing") observer?.frame(event);
    else if (event.type === "frame.audio") observer?.audio("output", event.pcm.length / event.hz);
    else if ("error" in event) {
      observer?.error(event.error.code);
      this.#log.warn({ code: event.error.code }, event.error.message);
    }
  }
}
