/**
 * One peer, from its first byte to its last: a transport, a dialect, a session and an engine stream. Everything that
 * arrives is worked on to its end before the next; what leaves, leaves in order. A fault here ends this connection and
 * no other.
 */
import type { SessionCommand } from "../conversation/commands.ts";
import type { SessionEvent } from "../conversation/events.ts";
import { EstimatedLine, type Line } from "../conversation/playback.ts";
import { Session } from "../conversation/session.ts";
import {
  defaultSettings,
  engineSettings,
  mergeSettings,
  refuseChange,
  type SessionSettings,
} from "../conversation/settings.ts";
import type { Dialect, DialectContext, Origin, Output } from "../dialects/dialect.ts";
import { OpenAIDialect } from "../dialects/openai.ts";
import { readSession } from "../dialects/openai-session.ts";
import type { EngineEvent, EngineStream } from "../engines/engine.ts";
import { AppError, CapacityError, type ClientError, toAppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { Log } from "../util/log.ts";
import {
  type ConnectionLimits,
  type ConnectionObserver,
  type ConnectionOptions,
  type ControlChannel,
  DEFAULT_LIMITS,
  NOBODY,
} from "./connection-options.ts";
import { LatencyWatch } from "./latency.ts";
import type { Transport, TransportMessage } from "./transport.ts";

const BACKLOG_LOOK_MS = 10;
const DRAIN_LOOK_MS = 50;
const CLOSE_GOING_AWAY = 1012;
const CLOSE_POLICY = 1008;
const CLOSE_FAULT = 1011;
const CLOSE_NORMAL = 1000;

export class Connection {
  readonly id: string;
  readonly #options: ConnectionOptions;
  readonly #limits: ConnectionLimits;
  readonly #observer: ConnectionObserver;
  readonly #log: Log;
  readonly #latency: LatencyWatch;
  readonly #controls = new Set<ControlChannel>();
  readonly #abort = new AbortController();
  #live: { readonly session: Session; readonly dialect: Dialect; readonly stream: EngineStream } | null = null;
  #closing: Promise<void> | null = null;
  #draining = false;
  #heardMs = 0;
  readonly #stopTimers: (() => void)[] = [];
  #stopIdleWatch: () => void = () => {};
  #stopDrainWatch: () => void = () => {};
  #onLive: () => void = () => {};
  readonly #whenLive: Promise<void> = new Promise((resolve) => {
    this.#onLive = resolve;
  });

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#observer = options.observer ?? NOBODY;
    this.id = options.ids("sess");
    this.#log = options.log.with({ session: this.id, transport: options.transport.kind });
    this.#latency = new LatencyWatch(options.clock);
  }

  /** Serves the peer until it goes or is sent away. Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#open();
      const reading = this.#read(this.#options.transport, "peer").catch((error: unknown) => this.#fault(error));
      const listening = this.#listen().catch((error: unknown) => this.#fault(error));
      await Promise.race([reading, listening, this.#whenClosed()]);
      const { failure } = this.#options.transport;
      if (failure) this.#dismiss(failure, CLOSE_FAULT);
      await this.close(CLOSE_NORMAL, "");
      await this.#release();
      await Promise.all([reading, listening]);
    } catch (error) {
      this.#fault(error);
    } finally {
      await this.close(CLOSE_NORMAL, "").catch(() => {});
      await this.#release();
    }
  }
  /** Serves a second control channel until it or the connection ends. Never rejects. */
  async attach(control: ControlChannel): Promise<void> {
    await Promise.race([this.#whenLive, this.#whenClosed()]);
    const live = this.#live;
    if (live === null || this.#closing !== null) return control.close(CLOSE_NORMAL, "the session has ended");
    const greeting = live.dialect.encode({ type: "session.created", settings: live.session.settings });
    for (const output of greeting) if (output.type === "text") control.send(output.text);
    this.#controls.add(control);
    try {
      await this.#read(control, "sideband");
    } catch (error) {
      this.#log.warn({ code: toAppError(error).code }, "sideband failed");
    } finally {
      this.#controls.delete(control);
    }
  }
  /** Takes no new turns; what is being answered is finished, then the connection ends. */
  drain(): void {
    this.#draining = true;
    const look = (): void => {
      if (this.#closing !== null) return;
      if (this.#live === null || !this.#live.session.busy)
        void this.close(CLOSE_GOING_AWAY, "the server is shutting down");
      else this.#stopDrainWatch = this.#options.clock.schedule(DRAIN_LOOK_MS, look);
    };
    look();
  }
  /** Idempotent: the first reason stands. */
  close(code: number, reason: string): Promise<void> {
    this.#closing ??= this.#end(code, reason);
    return this.#closing;
  }

  // ------------------------------------------------------------------------------------------------------ beginning

  async #open(): Promise<void> {
    const { engine, clock, ids, transport } = this.#options;
    let settings = this.#defaultSettings();
    let stream: EngineStream;
    try {
      settings = this.#configured(settings);
      stream = await engine.open(engineSettings(settings), this.#abort.signal);
    } catch (error) {
      await this.#refuse(toAppError(error), settings);
      return;
    }
    if (this.#closing !== null) {
      await stream[Symbol.asyncDispose]();
      return;
    }
    const { capabilities } = engine;
    const line = lineOf(transport, clock);
    const emit = (event: SessionEvent): void => this.#emit(event);
    const session = new Session({ capabilities, engine: stream, settings, line, clock, ids, emit });
    const dialect = this.#makeDialect(
      () => session.settings,
      () => session.conversationId,
    );
    this.#live = { session, dialect, stream };
    this.#startTimers();
    session.start();
    this.#onLive();
    this.#log.info({ model: settings.model, type: settings.type }, "session opened");
  }
  #defaultSettings(): SessionSettings {
    const { engine, session } = this.#options;
    const { type, model, instructions } = session;
    return defaultSettings(type, engine.capabilities, {
      ...(model === null ? {} : { model }),
      ...(instructions === undefined ? {} : { instructions }),
    });
  }
  /** @throws {ClientError} for a configuration that a `session.update` would refuse. */
  #configured(settings: SessionSettings): SessionSettings {
    const { capabilities } = this.#options.engine;
    const { configuration } = this.#options.session;
    if (configuration === undefined || configuration === null) return settings;
    const patch = readSession(configuration, settings, capabilities);
    if (patch instanceof AppError) throw patch;
    const configured = mergeSettings(settings, patch);
    const refusal = refuseChange(settings, configured, { capabilities, hasSpoken: false, hasItems: false });
    if (refusal !== null) throw refusal;
    return configured;
  }
  /** The session cannot begin: the peer hears why, and goes. */
  async #refuse(refusal: AppError, settings: SessionSettings): Promise<void> {
    this.#observer.error(refusal.code);
    this.#log.warn({ code: refusal.code }, refusal.message);
    const dialect = this.#makeDialect(
      () => settings,
      () => "",
    );
    this.#options.transport.send(dialect.encodeError(refusal, null));
    await this.close(refusal.entry.wsClose ?? CLOSE_POLICY, refusal.code);
  }
  #makeDialect(settings: () => SessionSettings, conversationId: () => string): Dialect {
    const { engine, transport, ids, clock, dialect } = this.#options;
    const lengthMs = this.#limits.sessionMsMax;
    const context: DialectContext = {
      capabilities: engine.capabilities,
      audioPath: transport.audioPath,
      ids,
      settings,
      sessionId: this.id,
      conversationId,
      expiresAtSeconds: lengthMs === null ? null : clock.unixSeconds() + Math.ceil(lengthMs / 1000),
    };
    return dialect === undefined ? new OpenAIDialect(context) : dialect(context);
  }
  #startTimers(): void {
    const { clock } = this.#options;
    const { sessionMsMax, idleMsMax } = this.#limits;
    this.#heardMs = clock.nowMs();
    if (sessionMsMax !== null) {
      const minutes = (sessionMsMax / 60_000).toFixed(1);
      const expire = (): void =>
        this.#dismiss(
          new AppError("session_expired", `The session has lasted ${minutes} minutes, its greatest length.`),
        );
      this.#stopTimers.push(clock.schedule(sessionMsMax, expire));
    }
    if (idleMsMax !== null) this.#watchIdle(idleMsMax);
  }
  #watchIdle(idleMsMax: number): void {
    const { clock } = this.#options;
    const leftMs = this.#heardMs + idleMsMax - clock.nowMs();
    if (leftMs > 0) {
      this.#stopIdleWatch = clock.schedule(leftMs, () => this.#watchIdle(idleMsMax));
      return;
    }
    this.#dismiss(new AppError("idle_timeout", `Nothing came from the client for ${Math.round(idleMsMax / 1000)} s.`));
  }

  // -------------------------------------------------------------------------------------------------------- running

  async #read(channel: Pick<Transport, "incoming">, origin: Origin): Promise<void> {
    for await (const message of channel.incoming) {
      if (this.#closing !== null) return;
      this.#heardMs = this.#options.clock.nowMs();
      this.#receive(message, origin, origin === "sideband" ? (channel as ControlChannel) : this.#options.transport);
      await this.#catchUp();
    }
  }
  /** Reading waits while the engine is far behind, and with it, over TCP, the client. A media track does not wait. */
  async #catchUp(): Promise<void> {
    const { clock, engine, transport } = this.#options;
    if (transport.audioPath === "track") return;
    const backlogSamplesMax = (this.#limits.backlogMsMax * engine.capabilities.inputHz) / 1000;
    while (this.#closing === null && (this.#live?.stream.backlogSamples ?? 0) > backlogSamplesMax) {
      await new Promise<void>((resolve) => {
        clock.schedule(BACKLOG_LOOK_MS, resolve);
      });
    }
  }
  #receive(message: TransportMessage, origin: Origin, sender: Pick<Transport, "send">): void {
    const live = this.#live;
    if (live === null) return;
    const { session, dialect } = live;
    try {
      if (message.type === "audio") {
        if (origin === "peer") this.#dispatch(session, dialect.decodeAudio(message.pcm, message.hz));
        return;
      }
      const decoded = dialect.decode(message.text, origin);
      const refusal = "refusal" in decoded ? decoded.refusal : this.#dispatch(session, decoded.command);
      if (refusal === null) return;
      this.#observer.error(refusal.code);
      sender.send(dialect.encodeError(refusal, decoded.eventId));
      if (sender !== this.#options.transport) return;
      this.#checkPace();
    } catch (error) {
      this.#fault(error);
    }
  }
  #dispatch(session: Session, command: SessionCommand): ClientError | null {
    if (command.type === "input.append") {
      if (this.#draining && !session.busy) return null;
      this.#observer.audio("input", command.ms / 1000);
    }
    return session.dispatch(command);
  }
  async #listen(): Promise<void> {
    const live = this.#live;
    if (live === null) return;
    for await (const event of live.stream.events) {
      if (this.#closing !== null) return;
      this.#hear(event, live.session);
    }
    this.#dismiss(new AppError("engine_failed", "The engine ended the session."), CLOSE_FAULT);
  }
  #hear(event: EngineEvent, session: Session): void {
    try {
      if (event.type === "response.mark" && event.stage === "llm.first_token")
        this.#latency.firstToken(event.responseId);
      session.handle(event);
      if (event.type === "failed") this.#dismiss(event.error, CLOSE_FAULT);
    } catch (error) {
      this.#fault(error);
    }
  }
  #emit(event: SessionEvent): void {
    const live = this.#live;
    if (live === null || this.#closing !== null) return;
    this.#observe(event);
    for (const output of live.dialect.encode(event)) this.#send(output);
    this.#checkPace();
  }
  #send(output: Output): void {
    const { transport } = this.#options;
    if (output.type === "audio") {
      transport.sendAudio(output.pcm, output.hz);
      return;
    }
    transport.send(output.text);
    for (const control of this.#controls) {
      control.send(output.text);
      if (control.bufferedBytes <= this.#limits.bufferedBytesMax) continue;
      this.#controls.delete(control);
      void control.close(CLOSE_POLICY, "client_too_slow");
    }
  }
  #observe(event: SessionEvent): void {
    const turn = this.#latency.see(event);
    if (turn !== null) {
      this.#observer.turn(turn.latencyMs);
      const { transcript, first_token, first_audio, done } = turn.latencyMs;
      const times = { transcriptMs: transcript, firstTokenMs: first_token, firstAudioMs: first_audio, doneMs: done };
      this.#log.info({ response: turn.responseId, status: turn.status, ...times }, "turn");
    }
    if (event.type === "speech.audio") this.#observer.audio("output", event.pcm.length / event.hz);
    if (event.type === "error" || event.type === "transcript.failed") {
      this.#observer.error(event.error.code);
      this.#log.warn({ code: event.error.code, ...event.error.details }, event.error.message);
    }
    if (event.type !== "response.done") return;
    const { status, usage } = event.response;
    if (status === "in_progress") return;
    this.#observer.response(status, { input: usage?.inputTokens ?? 0, output: usage?.outputTokens ?? 0 });
  }

  // ------------------------------------------------------------------------------------------------------------ end

  #checkPace(): void {
    const { bufferedBytes } = this.#options.transport;
    if (bufferedBytes <= this.#limits.bufferedBytesMax || this.#closing !== null) return;
    this.#observer.error("client_too_slow");
    this.#log.warn({ code: "client_too_slow", bufferedBytes }, "the client does not read what it is sent");
    void this.close(CLOSE_POLICY, "client_too_slow");
  }
  /** Tells the peer why, and ends. */
  #dismiss(error: AppError, code: number = error.entry.wsClose ?? CLOSE_FAULT): void {
    if (this.#closing !== null || this.#live === null) return;
    this.#observer.error(error.code);
    this.#log.warn({ code: error.code }, error.message);
    this.#send({ type: "text", text: this.#live.dialect.encodeError(error, null) });
    void this.close(code, error.code);
  }
  /** A fault of ours: this connection ends, the process goes on. */
  #fault(error: unknown): void {
    const fault = toAppError(error);
    const stack = error instanceof Error ? error.stack : undefined;
    this.#log.error({ code: fault.code, stack }, "connection failed");
    if (this.#live === null) void this.close(fault.entry.wsClose ?? CLOSE_FAULT, fault.code);
    else this.#dismiss(new AppError("internal_error"), CLOSE_FAULT);
  }
  async #end(code: number, reason: string): Promise<void> {
    if (code === CLOSE_GOING_AWAY) this.#sayGoingAway();
    this.#abort.abort();
    this.#stopIdleWatch();
    this.#stopDrainWatch();
    for (const stop of this.#stopTimers) stop();
    this.#live?.session.close();
    const controls = [...this.#controls].map((control) => control.close(code, reason));
    await Promise.allSettled([this.#options.transport.close(code, reason), ...controls]);
  }
  /** A data channel carries no close code: an event says it on every path. */
  #sayGoingAway(): void {
    if (this.#live === null) return;
    const text = this.#live.dialect.encodeError(new CapacityError("server_draining"), null);
    this.#send({ type: "text", text });
  }
  async #release(): Promise<void> {
    const live = this.#live;
    this.#live = null;
    if (live === null) return;
    this.#log.info({}, "session closed");
    try {
      await live.stream[Symbol.asyncDispose]();
    } catch (error) {
      this.#log.error({ code: toAppError(error).code }, "the engine stream did not close");
    }
  }
  #whenClosed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#abort.signal.aborted) resolve();
      else this.#abort.signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

function lineOf(transport: Transport, clock: Clock): Line {
  if (transport.audioPath === "events") return new EstimatedLine(clock);
  return {
    canPause: true,
    get unplayedMs() {
      return transport.unplayedMs;
    },
    sent: () => {},
    clear: () => void transport.clearAudio(),
  };
}
