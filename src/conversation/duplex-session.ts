/**
 * A conversation with a model that decides by itself when to speak: it is configured once, hears a stream, and answers on
 * that stream's own timeline until it is finished or cancelled. Protocol-neutral and transport-free.
 *
 *     configuring --open--> opening --> ready --finish or cancel--> closing --> closed
 *                    ^--------' failed
 */
import type { Engine, EngineEvent, EngineSettings, EngineStream } from "../engines/engine.ts";
import { type AppError, ClientError, toAppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";

export interface DuplexLimits {
  /** A peer must configure the session within this. */
  readonly configureMs: number;
  /** A configured session that hears nothing from its peer ends. */
  readonly quietMs: number;
  /** The greatest length of a session's audio. */
  readonly streamingSecondsMax: number;
}

export const DUPLEX_LIMITS: DuplexLimits = { configureMs: 30_000, quietMs: 120_000, streamingSecondsMax: 600 };

export type DuplexCommand =
  | {
      readonly type: "open";
      /** Null: the model's own. */
      readonly systemPrompt: string | null;
      readonly seed: number;
      readonly maxStreamingSeconds: number | null;
    }
  | { readonly type: "append"; readonly pcm: Float32Array; readonly sampleHz: number }
  | { readonly type: "finish"; readonly padPartial: boolean }
  | { readonly type: "cancel" }
  | { readonly type: "ping" };

export type DuplexEvent =
  | { readonly type: "opened" }
  /** The session is still configuring, and may be opened again. */
  | { readonly type: "open.failed"; readonly error: AppError }
  /** The message came at the wrong time. */
  | { readonly type: "refused"; readonly error: ClientError }
  /** Audio that could not be worked on; the session goes on. */
  | { readonly type: "input.failed"; readonly error: AppError }
  | { readonly type: "finishing" }
  | { readonly type: "ponged" }
  | Extract<EngineEvent, { readonly type: `frame.${string}` }>
  /** Too long without a message. `closed` follows. */
  | { readonly type: "expired"; readonly error: ClientError }
  /** The last event. `ended`: as the peer asked; `expired`; `failed`: the model is gone. */
  | { readonly type: "closed"; readonly reason: "ended" | "expired" | "failed" };

export interface DuplexSessionOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly limits?: Partial<DuplexLimits>;
  readonly emit: (event: DuplexEvent) => void;
}

type State = "configuring" | "opening" | "ready" | "closing" | "closed";

export class DuplexSession {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #limits: DuplexLimits;
  readonly #emit: (event: DuplexEvent) => void;
  readonly #abort = new AbortController();
  #state: State = "configuring";
  /** The model could not even end what it was told to end. */
  #failed = false;
  #stream: EngineStream | null = null;
  #listening: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => {};
  /** Called when audio has been worked on. */
  #onConsumed: () => void = () => {};

  constructor(options: DuplexSessionOptions) {
    this.#engine = options.engine;
    this.#clock = options.clock;
    this.#limits = { ...DUPLEX_LIMITS, ...options.limits };
    this.#emit = options.emit;
  }
  /** Begins to wait for the peer. */
  start(): void {
    const { configureMs } = this.#limits;
    this.#watch(configureMs, `the session was not configured within ${configureMs / 1000} s`);
  }
  get isConfigured(): boolean {
    return this.#state !== "configuring";
  }
  get state(): State {
    return this.#state;
  }
  /**
   * Carries out one command; the promise resolves when the next may come: after `open`, once the model is ready; after
   * `append`, once its audio has been worked on. Never rejects: what goes wrong is an event.
   */
  async dispatch(command: DuplexCommand): Promise<void> {
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#hear();
    if (command.type === "ping") return this.#emit({ type: "ponged" });
    if (command.type === "open") return this.#open(command);
    if (this.#state !== "ready" || this.#stream === null) {
      return this.#refuse("send session.update before audio");
    }
    switch (command.type) {
      case "append":
        return this.#append(this.#stream, command.pcm, command.sampleHz);
      case "finish":
        this.#emit({ type: "finishing" });
        return this.#end(this.#stream, () =>
          this.#stream?.send({ type: "input.finish", padPartial: command.padPartial }),
        );
      case "cancel":
        return this.#end(this.#stream, () => this.#stream?.send({ type: "input.abort" }));
    }
  }
  /** The peer said something that no command came of; it is not quiet. */
  touch(): void {
    this.#hear();
  }
  /** The peer is gone, or is sent away: drops everything and frees the model. Idempotent. */
  async close(): Promise<void> {
    this.#abort.abort(new ClientError("invalid_request", "the session has ended"));
    await this.#release();
  }

  async #open(command: Extract<DuplexCommand, { type: "open" }>): Promise<void> {
    if (this.#state !== "configuring") return this.#refuse("the active session cannot be reconfigured; open another");
    this.#state = "opening";
    this.#cancelTimer();
    try {
      const stream = await this.#engine.open(this.#settings(command), this.#abort.signal);
      if (this.#abort.signal.aborted) return await stream[Symbol.asyncDispose]();
      this.#stream = stream;
      this.#state = "ready";
      this.#emit({ type: "opened" });
      this.#listening = this.#listen(stream);
      this.#hear();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.#state = "configuring";
      this.#emit({ type: "open.failed", error: toAppError(error) });
      this.start();
    }
  }
  #settings({ systemPrompt, seed, maxStreamingSeconds }: Extract<DuplexCommand, { type: "open" }>): EngineSettings {
    const { streamingSecondsMax } = this.#limits;
    return {
      turnDetection: { type: "none" },
      transcription: null,
      systemPrompt,
      seed,
      maxStreamingSeconds: Math.min(maxStreamingSeconds ?? streamingSecondsMax, streamingSecondsMax),
    };
  }
  async #append(stream: EngineStream, pcm: Float32Array, sampleHz: number): Promise<void> {
    const { inputHz } = this.#engine.capabilities;
    if (sampleHz !== inputHz) {
      const message = `expected ${inputHz} Hz PCM, received ${sampleHz} Hz; resample first`;
      this.#emit({ type: "input.failed", error: new ClientError("invalid_audio", message, "sample_rate") });
      return;
    }
    if (pcm.length === 0) return;
    stream.push(pcm);
    this.#cancelTimer();
    await this.#consumed(stream);
    this.#hear();
  }
  /** The model works, and the peer waits: that is no silence of the peer's. */
  async #consumed(stream: EngineStream): Promise<void> {
    while (stream.backlogSamples > 0 && this.#state === "ready" && !this.#abort.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#onConsumed = resolve;
      });
    }
  }
  async #end(stream: EngineStream, send: () => void): Promise<void> {
    this.#state = "closing";
    this.#cancelTimer();
    if (stream === this.#stream) send();
    await this.#listening;
  }
  async #listen(stream: EngineStream): Promise<void> {
    try {
      for await (const event of stream.events) {
        if (this.#abort.signal.aborted) return;
        this.#handle(event);
      }
      await this.#finish(this.#state === "closing" && !this.#failed ? "ended" : "failed");
    } catch (error) {
      this.#emit({ type: "input.failed", error: toAppError(error) });
      await this.#finish("failed");
    }
  }
  #handle(event: EngineEvent): void {
    switch (event.type) {
      case "input.consumed":
        this.#wake();
        break;
      case "input.refused":
        this.#emit({ type: "input.failed", error: event.error });
        this.#wake();
        break;
      case "failed":
        this.#failed = true;
        this.#emit({ type: "input.failed", error: event.error });
        break;
      case "frame.text":
      case "frame.function":
      case "frame.transcript":
      case "frame.audio":
      case "frame.done":
      case "frame.cancelled":
      case "frame.timing":
        this.#emit(event);
    }
  }
  #wake(): void {
    const wake = this.#onConsumed;
    this.#onConsumed = () => {};
    wake();
  }
  #refuse(message: string): void {
    this.#emit({ type: "refused", error: new ClientError("invalid_request", message) });
  }
  /** A message of the peer's: the wait for the next begins. */
  #hear(): void {
    if (this.#state !== "ready") return;
    const { quietMs } = this.#limits;
    this.#watch(quietMs, `no message came for ${quietMs / 1000} s`);
  }
  #watch(delayMs: number, message: string): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(delayMs, () => {
      this.#emit({ type: "expired", error: new ClientError("invalid_request", message) });
      this.#abort.abort(new ClientError("invalid_request", message));
      void this.#finish("expired");
    });
  }
  /** Frees the model first, so that whoever sees the end finds room. */
  async #finish(reason: "ended" | "expired" | "failed"): Promise<void> {
    if (this.#state === "closed") return;
    await this.#release();
    this.#emit({ type: "closed", reason });
  }
  async #release(): Promise<void> {
    this.#state = "closed";
    this.#cancelTimer();
    this.#wake();
    const stream = this.#stream;
    this.#stream = null;
    await stream?.[Symbol.asyncDispose]();
  }
}
