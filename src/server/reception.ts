/**
 * Where every peer comes in, whatever its transport: is it welcome, what did it ask for, is there room. A refusal is
 * thrown as an AppError; the caller says it in its own way (an HTTP status, an event and a close code).
 */
import { ClientError } from "../errors.ts";
import { isServed } from "../protocol/openai/model-name.ts";
import type { Clock } from "../util/clock.ts";
import type { Log } from "../util/log.ts";
import type { Admission, Guest } from "./admission.ts";
import type { Access, Credentials, Gate } from "./auth.ts";
import type { Metrics } from "./metrics.ts";
import type { OriginPolicy } from "./origins.ts";
import type { Readiness } from "./readiness.ts";
import type { Transport } from "./transport.ts";

export type SessionType = "realtime" | "transcription";

/** What a peer asked for when it came. */
export interface SessionRequest {
  readonly type: SessionType;
  /** A served model. */
  readonly model: string;
  /** What a client secret binds the session to, as `session.update` has it; null where the peer is free. */
  readonly session: Readonly<Record<string, unknown>> | null;
}

export interface RunningSession extends Guest {
  /** Until the session has ended; never rejects. */
  run(): Promise<void>;
  /** After `run`, once the place was given back: closes a transport that `run` left open. */
  leave?(): Promise<void>;
  /** A second control channel: its commands and all events, without the audio path. */
  attach(control: Transport): Promise<void> | void;
}

/** Makes the session of `transport`; it begins with `run`. */
export type ConnectSession = (transport: Transport, request: SessionRequest) => RunningSession;

export interface ReceptionOptions {
  readonly gate: Gate;
  readonly origins: OriginPolicy;
  readonly admission: Admission;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly connect: ConnectSession;
}

export class Reception {
  readonly #options: ReceptionOptions;
  constructor(options: ReceptionOptions) {
    this.#options = options;
  }
  /** @throws {AuthError} origin_not_allowed or invalid_api_key. */
  identify(credentials: Credentials, origin: string | undefined, host: string | undefined): Access {
    this.#options.origins.check(origin, host);
    return this.#options.gate.admit(credentials);
  }
  /** Every id that `?model=` may name, the default first. @throws {AppError} server_loading. */
  servedModels(): readonly string[] {
    return this.#options.readiness.engine().capabilities.models;
  }
  /**
   * Reads `?model=` and `?intent=`, and what the access is bound to.
   * @throws {AppError} server_loading, model_not_found, invalid_session_type, session_limit_reached, server_draining.
   */
  request(query: URLSearchParams, access: Access): SessionRequest {
    this.#options.admission.check();
    return this.grant(query.get("model"), access.kind === "secret" ? access.session : null, query.get("intent"));
  }
  /** What to open, of what was asked for and what a client secret fixes. @throws as `request`, but for the places. */
  grant(model: string | null, session: SessionRequest["session"], intent: string | null = null): SessionRequest {
    return { type: sessionType(intent, session), model: this.checkModel(model ?? session?.["model"]), session };
  }
  /** The served model that `name` means; the default where it is undefined. @throws {ClientError} model_not_found. */
  checkModel(name: unknown): string {
    const { models: served, turnTaking } = this.#options.readiness.engine().capabilities;
    // A full-duplex model is the only one of its server, and any name means it. Source: VoiceChat's `session.model`.
    if (name === undefined || turnTaking === "model") return served[0] as string;
    if (typeof name === "string" && isServed(name, served)) return name;
    const message = `The model "${String(name).slice(0, 100)}" is not served here; served are: ${served.join(", ")}.`;
    throw new ClientError("model_not_found", message, "model");
  }
  /** Makes a session that counts from `run` on. The caller sees to its place. */
  connect(transport: Transport, request: SessionRequest): RunningSession {
    const session = this.#options.connect(transport, request);
    return {
      run: () => this.#measure(transport.kind, () => session.run()),
      leave: async () => session.leave?.(),
      attach: (control) => session.attach(control),
      drain: () => session.drain(),
      close: (code, reason) => session.close(code, reason),
    };
  }
  /** Begins a session whose `request` was granted just now, and holds a place for it until it ends. */
  begin(transport: Transport, request: SessionRequest): void {
    const session = this.connect(transport, request);
    const leave = this.#options.admission.enter(session);
    void session
      .run()
      .finally(leave)
      .then(() => session.leave?.());
  }
  async #measure(transport: string, run: () => Promise<void>): Promise<void> {
    const { metrics, clock, log } = this.#options;
    const startedMs = clock.nowMs();
    metrics.sessionOpened(transport);
    try {
      await run();
    } finally {
      const seconds = (clock.nowMs() - startedMs) / 1000;
      metrics.sessionClosed(seconds);
      log.info({ transport, seconds: Math.round(seconds) }, "session ended");
    }
  }
}

function sessionType(intent: string | null, session: SessionRequest["session"]): SessionType {
  if (intent === null) return session?.["type"] === "transcription" ? "transcription" : "realtime";
  if (intent === "transcription") return "transcription";
  if (intent === "conversation" || intent === "realtime") return "realtime";
  throw new ClientError(
    "invalid_session_type",
    `intent=${intent.slice(0, 100)} is unknown; leave it out, or use intent=transcription.`,
    "intent",
  );
}
