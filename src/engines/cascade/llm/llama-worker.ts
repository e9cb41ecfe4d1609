/** The process that holds the local language model. */
import type { Method, Runtime } from "../../../workers/runtime.ts";
import { type LlamaOptions, type LlamaRequest, LocalLlama } from "./llama.ts";
import type { LlmPart } from "./llm.ts";

export type LlamaTable = {
  readonly generate: Method<LlamaRequest, null, LlmPart>;
  readonly forget: Method<string, null>;
};

export interface LlamaWorkerOptions extends LlamaOptions {
  /** The beginning that all conversations share. */
  readonly lead: string;
}

export async function load({ lead, ...options }: LlamaWorkerOptions): Promise<Runtime<LlamaTable>> {
  const llama = await LocalLlama.load(options);
  await llama.warm(lead);
  return {
    generate: async (request, { emit, signal }) => {
      await llama.generate(request, emit, signal);
      return null;
    },
    forget: async (sessionKey) => {
      llama.forget(sessionKey);
      return null;
    },
  };
}
