/** A GGUF model on llama.cpp: the only file that imports node-llama-cpp. Several conversations share the weights. */
import {
  type ChatHistoryItem,
  type ChatModelFunctions,
  type ChatModelResponse,
  type ChatWrapper,
  getLlama,
  type Llama,
  LlamaChat,
  type LlamaContextSequence,
  type LlamaGrammar,
  type LlamaModel,
  resolveChatWrapper,
} from "node-llama-cpp";
import { EngineError } from "../../../errors.ts";
import { fitHistory, type HistoryLimits } from "./fit-history.ts";
import type { ChatMessage, LlmPart, LlmRequest } from "./llm.ts";
import { SlotPool } from "./slot-pool.ts";

export interface LlamaOptions {
  readonly path: string;
  /** More than the cores make it many times slower. */
  readonly threads: number;
  /** Conversations whose state is kept, and that generate at the same time. */
  readonly sequences: number;
  /** Tokens of one conversation, its answer included. */
  readonly contextTokens: number;
  readonly gpu: boolean;
}

export type LlamaRequest = Omit<LlmRequest, "signal">;

/** Kept free for the answer, and its end where no other was asked for: three minutes aloud; small models go on for ever. */
const ANSWER_TOKENS = 512;
/** Room between the greatest prompt and the context's end, for the template's own tokens. */
const SPARE_TOKENS = 32;

interface Slot {
  readonly sequence: LlamaContextSequence;
  readonly chat: LlamaChat;
}

export class LocalLlama {
  readonly #llama: Llama;
  readonly #model: LlamaModel;
  readonly #wrapper: ChatWrapper;
  readonly #contextTokens: number;
  readonly #slots: SlotPool<Slot>;

  private constructor(llama: Llama, model: LlamaModel, wrapper: ChatWrapper, contextTokens: number, slots: Slot[]) {
    this.#llama = llama;
    this.#model = model;
    this.#wrapper = wrapper;
    this.#contextTokens = contextTokens;
    this.#slots = new SlotPool(slots);
  }
  static async load(options: LlamaOptions): Promise<LocalLlama> {
    const { path, threads, sequences, gpu } = options;
    const llama = await getLlama({
      gpu: gpu ? "auto" : false,
      maxThreads: threads,
      build: "never",
      progressLogs: false,
      logLevel: "error" as never,
    });
    const model = await llama.loadModel({ modelPath: path });
    const contextSize = Math.min(options.contextTokens, model.trainContextSize);
    const context = await model.createContext({
      sequences,
      contextSize,
      threads,
      // Each of its tokens may want its logits: 0.2 MB for 49,000 words.
      batchSize: 128,
      flashAttention: true,
      experimentalKvCacheKeyType: "Q8_0",
      experimentalKvCacheValueType: "Q8_0",
    });
    const chatWrapper = resolveChatWrapper(model);
    const slots = Array.from({ length: sequences }, () => {
      const sequence = context.getSequence();
      return { sequence, chat: new LlamaChat({ contextSequence: sequence, chatWrapper }) };
    });
    return new LocalLlama(llama, model, chatWrapper, contextSize, slots);
  }
  /** Puts the beginning that all conversations share into every slot. */
  async warm(lead: string): Promise<void> {
    const request = { role: "user", text: "Hello.", images: [] } as const;
    const signal = new AbortController().signal;
    for (let i = 0; i < this.#slots.size; i++) {
      const messages: ChatMessage[] = [{ role: "system", text: lead }, request];
      await this.generate({ ...WARM_REQUEST, sessionKey: `warm-${i}`, messages }, () => {}, signal);
    }
    for (let i = 0; i < this.#slots.size; i++) this.forget(`warm-${i}`);
  }
  /** Streams an answer; waits while all slots are taken. */
  async generate(request: LlamaRequest, emit: (part: LlmPart) => void, signal: AbortSignal): Promise<void> {
    const slot = await this.#slots.take(request.sessionKey, signal);
    const leave = (): void => this.#slots.leave(slot);
    signal.addEventListener("abort", leave, { once: true });
    try {
      await this.#run(slot, request, emit, signal);
    } finally {
      signal.removeEventListener("abort", leave);
      this.#slots.give(slot);
    }
  }
  forget(sessionKey: string): void {
    this.#slots.forget(sessionKey);
  }

  async #run(slot: Slot, request: LlamaRequest, emit: (part: LlmPart) => void, signal: AbortSignal): Promise<void> {
    const functions = toolFunctions(request);
    const messages = this.#fit(request, functions);
    const history = toHistory(messages);
    const inputTokens = this.#count(history, functions);
    const meter = slot.sequence.tokenMeter.getState();
    let outputTokens = 0;
    const options = {
      signal,
      stopOnAbortSignal: true,
      trimWhitespaceSuffix: false,
      maxTokens: Math.min(
        request.outputTokensMax ?? ANSWER_TOKENS,
        this.#contextTokens - inputTokens - SPARE_TOKENS / 2,
      ),
      temperature: request.temperature ?? 0,
      budgets: { thoughtTokens: 0 },
      onToken: (tokens: readonly unknown[]) => {
        outputTokens += tokens.length;
      },
    };
    const forced = await this.#forcedGrammar(request);
    const reason =
      forced === null
        ? await this.#free(slot, history, functions, request, options, emit)
        : await this.#forced(slot, history, forced, options, emit);
    const evaluated = slot.sequence.tokenMeter.diff(meter).usedInputTokens;
    const cachedInputTokens = Math.max(0, inputTokens - evaluated);
    emit({ type: "end", reason, usage: { inputTokens, cachedInputTokens, outputTokens } });
  }
  async #free(
    slot: Slot,
    history: ChatHistoryItem[],
    functions: ChatModelFunctions | undefined,
    request: LlamaRequest,
    options: object,
    emit: (part: LlmPart) => void,
  ): Promise<"stop" | "max_output_tokens"> {
    const callIds: string[] = [];
    const result = await slot.chat.generateResponse(history, {
      ...options,
      onTextChunk: (delta) => emit({ type: "text", delta }),
      ...(functions === undefined
        ? {}
        : {
            functions,
            documentFunctionParams: true,
            maxParallelFunctionCalls: request.parallelToolCalls ? 8 : 1,
            onFunctionCallParamsChunk: ({ callIndex, functionName, paramsChunk }) => {
              callIds[callIndex] ??= startCall(functionName, emit);
              emit({ type: "tool.delta", callId: callIds[callIndex], delta: paramsChunk });
            },
          }),
    });
    for (const [i, { functionName: name, params }] of (result.functionCalls ?? []).entries()) {
      const callId = callIds[i] ?? startCall(name, emit);
      emit({ type: "tool.completed", callId, name, argumentsJson: JSON.stringify(params ?? {}) });
    }
    return result.metadata.stopReason === "maxTokens" ? "max_output_tokens" : "stop";
  }
  /** `required` or one named function: the grammar leaves the model no other way. */
  async #forced(
    slot: Slot,
    history: ChatHistoryItem[],
    grammar: LlamaGrammar,
    options: object,
    emit: (part: LlmPart) => void,
  ): Promise<"stop" | "max_output_tokens"> {
    const result = await slot.chat.generateResponse(history, { ...options, grammar });
    if (result.metadata.stopReason === "maxTokens") return "max_output_tokens";
    const call = JSON.parse(result.response) as { name: string; arguments: unknown };
    const callId = startCall(call.name, emit);
    const argumentsJson = JSON.stringify(call.arguments ?? {});
    emit({ type: "tool.delta", callId, delta: argumentsJson });
    emit({ type: "tool.completed", callId, name: call.name, argumentsJson });
    return "stop";
  }
  async #forcedGrammar({ tools, toolChoice }: LlamaRequest): Promise<LlamaGrammar | null> {
    if (tools.length === 0 || toolChoice === "auto" || toolChoice === "none") return null;
    const allowed = typeof toolChoice === "string" ? tools : tools.filter(({ name }) => name === toolChoice.name);
    if (allowed.length === 0) return null;
    const oneOf = allowed.map(({ name, parameters }) => ({
      type: "object",
      properties: { name: { const: name }, arguments: parameters },
    }));
    return this.#llama.createGrammarForJsonSchema({ oneOf } as never);
  }
  #fit(request: LlamaRequest, functions: ChatModelFunctions | undefined): readonly ChatMessage[] {
    const answer = Math.min(request.outputTokensMax ?? ANSWER_TOKENS, ANSWER_TOKENS, this.#contextTokens >> 1);
    const limits: HistoryLimits = {
      tokensMax: this.#contextTokens - answer - SPARE_TOKENS,
      truncation: request.truncation,
      count: (messages) => this.#count(toHistory(messages), functions),
    };
    return fitHistory(request.messages, limits);
  }
  #count(chatHistory: ChatHistoryItem[], availableFunctions: ChatModelFunctions | undefined): number {
    const { contextText } = this.#wrapper.generateContextState({
      chatHistory,
      ...(availableFunctions === undefined ? {} : { availableFunctions, documentFunctionParams: true }),
    });
    return contextText.tokenize(this.#model.tokenizer).length;
  }
}

const WARM_REQUEST: Omit<LlamaRequest, "sessionKey" | "messages"> = {
  tools: [],
  toolChoice: "none",
  parallelToolCalls: false,
  temperature: null,
  outputTokensMax: 2,
  truncation: "auto",
};

let calls = 0;

function startCall(name: string, emit: (part: LlmPart) => void): string {
  calls += 1;
  const callId = `call_${process.pid.toString(36)}${Date.now().toString(36)}${calls.toString(36)}`;
  emit({ type: "tool.started", callId, name });
  return callId;
}

function toolFunctions({ tools, toolChoice }: LlamaRequest): ChatModelFunctions | undefined {
  if (tools.length === 0 || toolChoice === "none") return undefined;
  return Object.fromEntries(
    tools.map(({ name, description, parameters }) => [name, { description, params: parameters as never }]),
  );
}

/** A client may write a call into the history whose arguments are no JSON. */
function paramsOf(argumentsJson: string): unknown {
  try {
    return JSON.parse(argumentsJson) as unknown;
  } catch {
    return argumentsJson;
  }
}

/** Messages as node-llama-cpp's history: a tool's result lies inside the answer that called it. */
function toHistory(messages: readonly ChatMessage[]): ChatHistoryItem[] {
  const results = new Map(messages.flatMap((m) => (m.role === "tool" ? [[m.callId, m.output] as const] : [])));
  const history: ChatHistoryItem[] = [];
  for (const message of messages) {
    if (message.role === "system") history.push({ type: "system", text: message.text });
    else if (message.role === "user") {
      if (message.images.length > 0) throw new EngineError("llm", "The local model does not see images.");
      history.push({ type: "user", text: message.text });
    } else if (message.role === "assistant") {
      const response: ChatModelResponse["response"] = message.text === "" ? [] : [message.text];
      for (const { callId, name, argumentsJson } of message.toolCalls) {
        response.push({ type: "functionCall", name, params: paramsOf(argumentsJson), result: results.get(callId) });
      }
      history.push({ type: "model", response });
    }
  }
  if (history.at(-1)?.type !== "model") history.push({ type: "model", response: [] });
  return history;
}
