/** From the configuration to a loaded engine: the checkpoint that `--model` names, or the cascade. */
import type { Config } from "../config.ts";
import { DUPLEX_LIMITS } from "../conversation/duplex-session.ts";
import { Cascade } from "../engines/cascade/cascade.ts";
import type { Engine } from "../engines/engine.ts";
import { findCheckpoint, requireCheckpoint } from "../engines/voicechat/checkpoint-place.ts";
import { VoiceChatEngine } from "../engines/voicechat/engine.ts";
import type { ModelProgress } from "../models/progress.ts";
import { ModelStore } from "../models/store.ts";
import type { Log } from "../util/log.ts";
import type { LoadEngine } from "./server.ts";

export interface LoadEngineOptions {
  readonly config: Config;
  readonly log: Log;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: ModelProgress) => void;
  /** Told once what serves as the language model, and why. */
  readonly onChoice?: (choice: { readonly name: string; readonly reason: string }) => void;
  /** Told the names of the stages when all have warmed. */
  readonly onLoaded?: (stages: Readonly<Record<string, string>>) => void;
}

/** The id under which the cascade is served; `--model-aliases` adds others. */
const CASCADE_MODEL = "antiphon-cascade";

/** Sessions of the cascade, whose every session is small. */
const CASCADE_SESSIONS_MAX = 16;

/** @throws {CheckpointError} for a `--model` that cannot be served, before anything is begun. */
export const engineLoader = (options: LoadEngineOptions): LoadEngine =>
  options.config.model === null ? cascadeLoader(options) : voiceChatLoader(options, options.config.model);

function voiceChatLoader(options: LoadEngineOptions, model: string): LoadEngine {
  requireCheckpoint(model);
  return async (report): Promise<Engine> => {
    const { config, log, signal, onProgress } = options;
    report([`checkpoint ${model}`]);
    const { directory, name } = await findCheckpoint(model, storeOf(options), { signal, onProgress });
    const { alias, precision, provider, threads, maxSessions } = config;
    const engine = await VoiceChatEngine.load({
      directory,
      alias: alias ?? name,
      precision,
      provider,
      threads,
      sessionSeconds: DUPLEX_LIMITS.streamingSecondsMax,
      log,
      signal,
      ...(maxSessions === null ? {} : { sessionsMax: maxSessions }),
    });
    options.onLoaded?.({ voicechat: engine.capabilities.models[0] ?? model });
    return engine;
  };
}

function storeOf({ config, log }: LoadEngineOptions): ModelStore {
  const { cacheDir, offline, hfToken, hfEndpoint } = config;
  return new ModelStore({ cacheDir, offline, hfToken, hfEndpoint, log });
}

function cascadeLoader(options: LoadEngineOptions): LoadEngine {
  return async (report): Promise<Engine> => {
    const { config, log, signal, onProgress, onChoice } = options;
    report([`vad ${config.vad}`, `stt ${config.stt}`, `llm ${config.llm}`, `tts ${config.tts}`]);
    const cascade = await Cascade.load({
      ...config,
      sessionsMax: config.maxSessions ?? CASCADE_SESSIONS_MAX,
      models: [CASCADE_MODEL],
      store: storeOf(options),
      log,
      ...(signal === undefined ? {} : { signal }),
      ...(onChoice === undefined ? {} : { onChoice }),
      onProgress: (progress) => {
        if (progress.kind === "started") report([`download of ${progress.item}`]);
        onProgress?.(progress);
      },
    });
    options.onLoaded?.(cascade.stageNames);
    return cascade;
  };
}
