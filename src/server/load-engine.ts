/** From the configuration to a loaded engine. */
import type { Config } from "../config.ts";
import { Cascade } from "../engines/cascade/cascade.ts";
import type { Engine } from "../engines/engine.ts";
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
export const CASCADE_MODEL = "antiphon-cascade";

export function engineLoader(options: LoadEngineOptions): LoadEngine {
  return async (report): Promise<Engine> => {
    const { config, log, signal, onProgress, onChoice } = options;
    const { cacheDir, offline, hfToken, hfEndpoint } = config;
    report([`vad ${config.vad}`, `stt ${config.stt}`, `llm ${config.llm}`, `tts ${config.tts}`]);
    const cascade = await Cascade.load({
      ...config,
      models: [CASCADE_MODEL],
      store: new ModelStore({ cacheDir, offline, hfToken, hfEndpoint, log }),
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
