/** Any server with OpenAI's `/v1/chat/completions`, streamed. */
import type { TokenUsage, ToolChoice } from "../../engine.ts";
import type { ChatMessage, LlmEndReason, LlmPart, LlmRequest } from "./llm.ts";
import { LlmService } from "./llm-service.ts";

interface Chunk {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly tool_calls?: readonly CallDelta[] };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens?: number;
    readonly completion_tokens?: number;
    readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  } | null;
  readonly error?: unknown;
}
interface CallDelta {
  readonly index?: number;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null };
}

export class ChatCompletions extends LlmService {
  async *generate(request: LlmRequest): AsyncIterable<LlmPart> {
    const body = (messages: readonly ChatMessage[]): object => this.#body(request, messages);
    const reader = new ChunkReader(request.sessionKey);
    for await (const chunk of this.events<Chunk>("/chat/completions", request, body)) {
      if (chunk.error !== undefined) throw this.failure("failed in the middle of its answer");
      yield* reader.take(chunk);
    }
    yield* reader.finish();
  }

  #body(request: LlmRequest, messages: readonly ChatMessage[]): object {
    const { tools, toolChoice, parallelToolCalls, temperature, outputTokensMax } = request;
    return {
      model: this.name,
      messages: messages.map(wireMessage),
      stream: true,
      stream_options: { include_usage: true },
      ...(temperature === null ? {} : { temperature }),
      ...(outputTokensMax === null ? {} : { max_tokens: outputTokensMax }),
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map(({ name, description, parameters }) => ({
              type: "function",
              function: { name, description, parameters },
            })),
            tool_choice: wireToolChoice(toolChoice),
            ...(parallelToolCalls ? {} : { parallel_tool_calls: false }),
          }),
    };
  }
}

/** Puts streamed pieces together: calls by their index, the end with the usage that comes after it. */
class ChunkReader {
  readonly #calls = new Map<number, { callId: string; name: string; argumentsJson: string }>();
  readonly #key: string;
  #reason: LlmEndReason = "stop";
  #usage: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };

  constructor(key: string) {
    this.#key = key;
  }
  *take({ choices, usage }: Chunk): Iterable<LlmPart> {
    if (usage) {
      this.#usage = {
        inputTokens: usage.prompt_tokens ?? 0,
        cachedInputTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
        outputTokens: usage.completion_tokens ?? 0,
      };
    }
    const [choice] = choices ?? [];
    if (choice?.finish_reason === "length") this.#reason = "max_output_tokens";
    if (choice?.finish_reason === "content_filter") this.#reason = "content_filter";
    const { content, tool_calls } = choice?.delta ?? {};
    if (typeof content === "string" && content !== "") yield { type: "text", delta: content };
    for (const call of tool_calls ?? []) yield* this.#call(call);
  }
  *finish(): Iterable<LlmPart> {
    // A call that the limit cut off is no call.
    if (this.#reason === "stop") for (const call of this.#calls.values()) yield { type: "tool.completed", ...call };
    yield { type: "end", reason: this.#reason, usage: this.#usage };
  }
  *#call({ index, id, function: part }: CallDelta): Iterable<LlmPart> {
    // Without an index, a new id or a name begins a new call.
    const fresh = index === undefined && (id || part?.name) ? this.#calls.size : Math.max(0, this.#calls.size - 1);
    const key = index ?? fresh;
    let call = this.#calls.get(key);
    if (call === undefined) {
      call = {
        callId: id || `call_${this.#key}_${Date.now().toString(36)}_${key}`,
        name: part?.name ?? "",
        argumentsJson: "",
      };
      this.#calls.set(key, call);
      yield { type: "tool.started", callId: call.callId, name: call.name };
    }
    const delta = part?.arguments ?? "";
    if (delta === "") return;
    call.argumentsJson += delta;
    yield { type: "tool.delta", callId: call.callId, delta };
  }
}

function wireToolChoice(choice: ToolChoice): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function wireMessage(message: ChatMessage): object {
  if (message.role === "system") return { role: "system", content: message.text };
  if (message.role === "tool") return { role: "tool", tool_call_id: message.callId, content: message.output };
  if (message.role === "assistant") {
    const calls = message.toolCalls.map(({ callId, name, argumentsJson }) => ({
      id: callId,
      type: "function",
      function: { name, arguments: argumentsJson },
    }));
    return { role: "assistant", content: message.text || null, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
  }
  if (message.images.length === 0) return { role: "user", content: message.text };
  const images = message.images.map(({ url, detail }) => ({ type: "image_url", image_url: { url, detail } }));
  return { role: "user", content: [...(message.text === "" ? [] : [{ type: "text", text: message.text }]), ...images] };
}
