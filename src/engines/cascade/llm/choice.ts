/**
 * Which language model, without being asked: what the user named; a key or an address; a server on this machine that
 * answers, with its first chat model; the small model that comes along. The choice and its reason are announced.
 */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { ConfigError } from "../../../errors.ts";
import { VOICE_LEAD } from "../history.ts";

import { OPENAI_BASE_URL } from "../remote.ts";
import type { CascadeStageOptions } from "../stage-options.ts";
import { ChatCompletions } from "./chat-completions.ts";
import type { Llm } from "./llm.ts";
import { LocalLlm } from "./local-llm.ts";
import { findLocalServer, firstChatModel } from "./local-servers.ts";
import { ResponsesApi } from "./responses-api.ts";
import { ToolFallback } from "./tool-fallback.ts";

interface Choice {
  readonly kind: "local" | "chat-completions" | "responses-api";
  readonly model: string;
  readonly baseUrl: string | null;
  readonly reason: string;
}

/** The model of the embedded default: quick, and weak at more than small talk. */
const LOCAL_MODEL = "smollm2-135m";
const OPENAI_MODEL = "gpt-4o-mini";
const LOCAL_CONTEXT_TOKENS = 4_096;
const LOCAL_SEQUENCES = 4;
/** Of services that do not tell: what common ones have at least. */
const OPENAI_CONTEXT_TOKENS = 100_000;
const REMOTE_CONTEXT_TOKENS = 24_000;

export async function loadLlm(options: CascadeStageOptions): Promise<Llm> {
  const choice = await choose(options);
  const { kind, model, baseUrl, reason } = choice;
  options.onChoice?.({ stage: "llm", name: model, reason });
  options.log.info({ llm: kind, model, reason }, "language model chosen");
  if (kind === "local") return loadLocal(options, model);
  const openai = baseUrl === null;
  const contextTokens = openai ? OPENAI_CONTEXT_TOKENS : REMOTE_CONTEXT_TOKENS;
  const { llmApiKey: apiKey, fetch } = options;
  const service = fetch === undefined ? {} : { fetch };
  const remote = { model, baseUrl, apiKey, images: true, tools: toolsOf(options), contextTokens, ...service };
  const llm = kind === "responses-api" ? new ResponsesApi(remote) : new ChatCompletions(remote);
  return options.llmTools === "auto" ? new ToolFallback(llm, options.log) : llm;
}

const toolsOf = ({ llmTools }: CascadeStageOptions): Llm["tools"] => (llmTools === "prompted" ? "prompted" : "native");

async function choose(options: CascadeStageOptions): Promise<Choice> {
  const { llm, llmModel, llmBaseUrl, llmApiKey } = options;
  if (llm === "local") {
    const model = llmModel ?? LOCAL_MODEL;
    return { kind: "local", model, baseUrl: null, reason: "the local model was asked for" };
  }
  if (llm !== "auto") return chooseService(options, llm, `${llm} was asked for`);
  if (llmModel !== null && isLocal(options, llmModel)) {
    return { kind: "local", model: llmModel, baseUrl: null, reason: "the model was named, and is a local one" };
  }
  if (llmBaseUrl !== null) return chooseService(options, "chat-completions", "a service's address was given");
  if (llmApiKey !== null) return chooseService(options, "chat-completions", "an API key is set");
  const server = await findLocalServer(options.fetch ?? fetch);
  if (server !== null) {
    const model = llmModel ?? server.model;
    return { kind: "chat-completions", model, baseUrl: server.baseUrl, reason: `${server.name} runs on this machine` };
  }
  const reason =
    "no key, no address and no local server were found: a small model, quick and weak at more than small talk";
  return { kind: "local", model: LOCAL_MODEL, baseUrl: null, reason };
}

async function chooseService(
  options: CascadeStageOptions,
  kind: "chat-completions" | "responses-api",
  reason: string,
): Promise<Choice> {
  const { llmModel, llmBaseUrl: baseUrl, llmApiKey, fetch: get } = options;
  if (llmModel !== null) return { kind, model: llmModel, baseUrl, reason };
  if (baseUrl === null || baseUrl === OPENAI_BASE_URL) return { kind, model: OPENAI_MODEL, baseUrl, reason };
  const model = await firstChatModel(get ?? fetch, baseUrl, llmApiKey);
  if (model !== null) return { kind, model, baseUrl, reason };
  throw new ConfigError("config_invalid", `${baseUrl} names no model; set --llm-model.`);
}

function isLocal({ store }: CascadeStageOptions, model: string): boolean {
  if (model.endsWith(".gguf")) return true;
  try {
    return store.model(model).part === "llm";
  } catch {
    return false;
  }
}

async function loadLocal(options: CascadeStageOptions, model: string): Promise<Llm> {
  const { store, threads, log } = options;
  const file = model.endsWith(".gguf");
  if (file && !existsSync(model))
    throw new ConfigError("config_invalid", `There is no file ${model}; set --llm-model.`);
  const path = file ? model : (await store.ensure(model, options)).file("model");
  const settings = {
    path,
    // One core stays free for the voice; see `shared` in the registry.
    threads: Math.max(1, threads - 1),
    sequences: LOCAL_SEQUENCES,
    contextTokens: LOCAL_CONTEXT_TOKENS,
    // The embedded model is fast enough that looking for a GPU costs more than it gains.
    gpu: model !== LOCAL_MODEL,
    lead: VOICE_LEAD,
  };
  return LocalLlm.load(file ? basename(model, ".gguf") : model, toolsOf(options), settings, log);
}
