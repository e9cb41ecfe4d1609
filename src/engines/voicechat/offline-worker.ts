/** The model process of `antiphon generate`: one checkpoint, one recording after another. */

import type { Precision } from "../../onnx/quantized.ts";
import type { Provider } from "../../onnx/runtime.ts";
import type { Method, Runtime } from "../../workers/runtime.ts";
import { VoiceChatModel } from "./model.ts";
import { generateOffline, type OfflineOptions, type OfflineProgress, type OfflineResult } from "./offline.ts";

export interface OfflineWorkerOptions {
  readonly directory: string;
  readonly precision: Precision;
  readonly provider: Provider;
}

export type OfflineRequest = Omit<OfflineOptions, "signal" | "onProgress">;

export type OfflineMethods = {
  readonly generate: Method<OfflineRequest, OfflineResult, OfflineProgress>;
};

export async function load(options: OfflineWorkerOptions): Promise<Runtime<OfflineMethods>> {
  const model = await VoiceChatModel.load(options.directory, options);
  return {
    generate: (request, { signal, emit }) => generateOffline(model, { ...request, signal, onProgress: emit }),
  };
}
