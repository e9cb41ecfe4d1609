/** What happened since the start, for Prometheus and for `/v1/usage`. Counts and times only, never content. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { ErrorCode } from "../errors.ts";

/** The stages of one turn, each measured from the end of the user's speech. */
const TURN_STAGES = ["transcript", "first_token", "first_audio", "done"] as const;
export type TurnStage = (typeof TURN_STAGES)[number];

/** Seconds. People notice from 0.2 on, wait uneasily from 0.7 and give up after some seconds: that is where they lie dense. */
const LATENCY_BUCKETS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.5, 2, 3, 5, 10, 30];

/** One frame of the full-duplex model. */
const FRAME_MS = 80;
/** The realtime factor is a mean that forgets: this is the share of the newest frame, so it looks back about 2 s. */
const NEWEST_SHARE = 1 / 25;

const FRAME_BUCKETS = [0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2, 5];

export interface UsageTotals {
  readonly sessions: number;
  readonly turns: number;
  readonly responses: { completed: number; cancelled: number; failed: number; incomplete: number };
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly input_audio_seconds: number;
  readonly output_audio_seconds: number;
}

export type ResponseStatus = "completed" | "cancelled" | "failed" | "incomplete";

export class Metrics {
  readonly #registry = new Registry();
  readonly #sessionsOpen: Gauge;
  readonly #sessions: Counter<"transport">;
  readonly #sessionSeconds: Histogram;
  readonly #turns: Counter;
  readonly #responses: Counter<"status">;
  readonly #latency: Histogram<"stage">;
  readonly #tokens: Counter<"direction">;
  readonly #audio: Counter<"direction">;
  readonly #errors: Counter<"code">;
  readonly #frames: Histogram<"stage">;
  readonly #lateFrames: Counter;
  readonly #sessionsBehind: Counter;
  readonly #realtimeFactor: Gauge;
  readonly #lag: Gauge;
  #meanFrameMs: number | null = null;
  readonly #totals = {
    sessions: 0,
    turns: 0,
    responses: { completed: 0, cancelled: 0, failed: 0, incomplete: 0 },
    input_tokens: 0,
    output_tokens: 0,
    input_audio_seconds: 0,
    output_audio_seconds: 0,
  };

  constructor() {
    const registers = [this.#registry];
    const counter = <L extends string>(name: string, help: string, labelNames: L[] = []): Counter<L> =>
      new Counter({ name: `antiphon_${name}`, help, labelNames, registers });
    this.#sessionsOpen = new Gauge({ name: "antiphon_sessions_open", help: "Sessions that are open now.", registers });
    this.#sessions = counter("sessions_total", "Sessions that were opened.", ["transport"]);
    this.#turns = counter("turns_total", "Turns that people spoke.");
    this.#responses = counter("responses_total", "Responses by how they ended.", ["status"]);
    this.#tokens = counter("tokens_total", "Tokens of the language model.", ["direction"]);
    this.#audio = counter("audio_seconds_total", "Speech, in seconds.", ["direction"]);
    this.#errors = counter("errors_total", "Errors by code (docs/errors.md).", ["code"]);
    this.#sessionSeconds = new Histogram({
      name: "antiphon_session_seconds",
      help: "How long sessions lasted.",
      buckets: [1, 5, 15, 60, 300, 900, 3600, 14_400],
      registers,
    });
    this.#latency = new Histogram({
      name: "antiphon_turn_latency_seconds",
      help: "From the end of the user's speech to each stage of the answer.",
      labelNames: ["stage"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#frames = new Histogram({
      name: "antiphon_frame_seconds",
      help: "Wall time of one 80 ms frame of the full-duplex model, whole and by stage; above 0.08 it falls behind.",
      labelNames: ["stage"],
      buckets: FRAME_BUCKETS,
      registers,
    });
    this.#lateFrames = counter("late_frames_total", "Frames of the full-duplex model that took more than 80 ms.");
    this.#sessionsBehind = counter("sessions_behind_total", "Times that a session fell a second behind the clock.");
    this.#realtimeFactor = new Gauge({
      name: "antiphon_realtime_factor",
      help: "Time of a frame over its 80 ms, about the last two seconds of frames; above 1 is slower than real time.",
      registers,
    });
    this.#lag = new Gauge({
      name: "antiphon_lag_seconds",
      help: "How late the full-duplex model answers whoever speaks without a pause, after the newest frame.",
      registers,
    });
    collectDefaultMetrics({ register: this.#registry, prefix: "antiphon_" });
  }
  sessionOpened(transport: string): void {
    this.#sessionsOpen.inc();
    this.#sessions.inc({ transport });
    this.#totals.sessions += 1;
  }
  sessionClosed(seconds: number): void {
    this.#sessionsOpen.dec();
    this.#lag.set(0);
    this.#sessionSeconds.observe(seconds);
  }
  /** Milliseconds from the end of the user's speech; a stage that was not reached is absent. */
  turn(latencyMs: Readonly<Partial<Record<TurnStage, number>>>): void {
    this.#turns.inc();
    this.#totals.turns += 1;
    for (const stage of TURN_STAGES) {
      const ms = latencyMs[stage];
      if (ms !== undefined) this.#latency.observe({ stage }, ms / 1000);
    }
  }
  response(status: ResponseStatus, tokens: { readonly input: number; readonly output: number }): void {
    this.#responses.inc({ status });
    this.#tokens.inc({ direction: "input" }, tokens.input);
    this.#tokens.inc({ direction: "output" }, tokens.output);
    this.#totals.responses[status] += 1;
    this.#totals.input_tokens += tokens.input;
    this.#totals.output_tokens += tokens.output;
  }
  audio(direction: "input" | "output", seconds: number): void {
    this.#audio.inc({ direction }, seconds);
    this.#totals[`${direction}_audio_seconds`] += seconds;
  }
  /** One frame of the full-duplex model. */
  frame(timing: {
    readonly totalMs: number;
    readonly stageMs: Readonly<Record<string, number>>;
    readonly lagMs: number;
  }): void {
    const { totalMs, stageMs, lagMs } = timing;
    this.#frames.observe({ stage: "total" }, totalMs / 1000);
    for (const [stage, ms] of Object.entries(stageMs)) this.#frames.observe({ stage }, ms / 1000);
    if (totalMs > FRAME_MS) this.#lateFrames.inc();
    const before = this.#meanFrameMs ?? totalMs;
    this.#meanFrameMs = before + NEWEST_SHARE * (totalMs - before);
    this.#realtimeFactor.set(this.#meanFrameMs / FRAME_MS);
    this.#lag.set(lagMs / 1000);
  }
  /** A session fell a second behind. */
  fellBehind(): void {
    this.#sessionsBehind.inc();
  }
  error(code: ErrorCode): void {
    this.#errors.inc({ code });
  }
  /** A copy: later counts do not change it. */
  usage(): UsageTotals {
    return structuredClone(this.#totals);
  }
  get contentType(): string {
    return this.#registry.contentType;
  }
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
