/** The cascade engine: VAD, turn end, STT, LLM and TTS, each loaded once for all sessions. */
import { CapacityError } from "../../errors.ts";
import { type Clock, systemClock } from "../../util/clock.ts";
import { type IdSource, randomId } from "../../util/ids.ts";
import type { Log } from "../../util/log.ts";
import type { Engine, EngineCapabilities, EngineSettings, EngineStream } from "../engine.ts";
import { loadStages } from "./registry.ts";
import type { CascadeStageOptions } from "./stage-options.ts";
import type { Stages } from "./stages.ts";
import { CascadeStream } from "./stream.ts";
import { VAD_HZ } from "./vad/vad.ts";

export interface CascadeOptions extends CascadeStageOptions {
  readonly sessionsMax: number;
  /** The ids under which it is served, the default first. */
  readonly models: readonly string[];
}

export interface CascadeParts {
  readonly stages: Stages;
  readonly sessionsMax: number;
  readonly models: readonly string[];
  readonly log: Log;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

export class Cascade implements Engine {
  readonly capabilities: EngineCapabilities;
  readonly #parts: CascadeParts;
  readonly #streams = new Set<CascadeStream>();

  constructor(parts: CascadeParts) {
    const { llm, tts } = parts.stages;
    this.#parts = parts;
    this.capabilities = {
      turnTaking: "server",
      acceptsText: true,
      acceptsImages: llm.images,
      tools: true,
      inputHz: VAD_HZ,
      outputHz: tts.hz,
      sessionsMax: parts.sessionsMax,
      models: parts.models,
      voices: tts.voices,
    };
  }
  /** Loads and warms every stage. @throws {AppError} when one does not load; the others are ended then. */
  static async load(options: CascadeOptions): Promise<Cascade> {
    const { sessionsMax, models, log } = options;
    const stages = await loadStages(options);
    return new Cascade({ stages, sessionsMax, models, log });
  }
  /** The names of the loaded stages, for logs and for whoever asks. */
  get stageNames(): Readonly<Record<keyof Stages, string>> {
    const { vad, turn, stt, llm, tts } = this.#parts.stages;
    return { vad: vad.name, turn: turn?.name ?? "silence", stt: stt.name, llm: llm.name, tts: tts.name };
  }
  async open(settings: EngineSettings, signal: AbortSignal): Promise<EngineStream> {
    signal.throwIfAborted();
    const { sessionsMax, stages, log, clock, ids } = this.#parts;
    if (this.#streams.size >= sessionsMax) {
      throw new CapacityError("session_limit_reached", `All ${sessionsMax} sessions are in use.`, { retryable: true });
    }
    const stream: CascadeStream = new CascadeStream({
      stages,
      settings,
      clock: clock ?? systemClock,
      log,
      ids: ids ?? randomId,
      idle: () => [...this.#streams].every((other) => !other.answering),
      onEnd: () => this.#streams.delete(stream),
    });
    this.#streams.add(stream);
    return stream;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#streams].map((stream) => stream[Symbol.asyncDispose]()));
    const { vad, turn, stt, llm, tts } = this.#parts.stages;
    await Promise.all([vad, turn, stt, llm, tts].map((stage) => stage?.[Symbol.asyncDispose]()));
  }
}
