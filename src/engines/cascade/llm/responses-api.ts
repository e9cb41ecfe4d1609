/** Any server with OpenAI's `/v1/responses`, streamed. */
import type { TokenUsage, ToolChoice } from "../../engine.ts";
import type { ChatMessage, LlmEndReason, LlmPart, LlmRequest } from "./llm.ts";
import { LlmService } from "./llm-service.ts";

/** The fields of the events that are read here. */
interface WireEvent {
  readonly type?: string;
  readonly delta?: string;
  readonly item_id?: string;
  readonly item?: {
    readonly id?: string;
    readonly type?: string;
    readonly call_id?: string;
    readonly name?: string;
    readonly arguments?: string;
  };
  readonly response?: {
    readonly incomplete_details?: { readonly reason?: string } | null;
    readonly usage?: {
      readonly input_tokens?: number;
      readonly output_tokens?: number;
      readonly input_tokens_details?: { readonly cached_tokens?: number } | null;
    } | null;
  };
}

export class ResponsesApi extends LlmService {
  async *generate(request: LlmRequest): AsyncIterable<LlmPart> {
    const body = (messages: readonly ChatMessage[]): object => this.#body(request, messages);
    const calls = new Map<string, { callId: string; name: string }>();
    for await (const event of this.events<WireEvent>("/responses", request, body)) {
      if (event.type === "response.completed" || event.type === "response.incomplete") {
        yield { type: "end", reason: endReason(event), usage: usageOf(event) };
        return;
      }
      yield* this.#parts(event, calls);
    }
    throw this.failure("broke off its answer", { retryable: true });
  }

  *#parts(event: WireEvent, calls: Map<string, { callId: string; name: string }>): Iterable<LlmPart> {
    const { type, delta = "", item } = event;
    if (type === "response.output_text.delta" || type === "response.refusal.delta") {
      if (delta !== "") yield { type: "text", delta };
    } else if (type === "response.output_item.added" && item?.type === "function_call") {
      const call = { callId: item.call_id ?? item.id ?? "", name: item.name ?? "" };
      calls.set(item.id ?? "", call);
      yield { type: "tool.started", ...call };
    } else if (type === "response.function_call_arguments.delta") {
      const call = calls.get(event.item_id ?? "");
      if (call !== undefined && delta !== "") yield { type: "tool.delta", callId: call.callId, delta };
    } else if (type === "response.output_item.done" && item?.type === "function_call") {
      const call = calls.get(item.id ?? "") ?? { callId: item.call_id ?? "", name: item.name ?? "" };
      yield { type: "tool.completed", ...call, argumentsJson: item.arguments ?? "{}" };
    } else if (type === "response.failed" || type === "error") {
      throw this.failure("failed in the middle of its answer");
    }
  }
  #body(request: LlmRequest, messages: readonly ChatMessage[]): object {
    const { tools, toolChoice, parallelToolCalls, temperature, outputTokensMax } = request;
    const [first, ...rest] = messages;
    const lead = first?.role === "system" ? first.text : null;
    return {
      model: this.name,
      ...(lead === null ? {} : { instructions: lead }),
      input: (lead === null ? messages : rest).flatMap(wireItems),
      stream: true,
      store: false,
      ...(temperature === null ? {} : { temperature }),
      ...(outputTokensMax === null ? {} : { max_output_tokens: outputTokensMax }),
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map(({ name, description, parameters }) => ({
              type: "function",
              name,
              description,
              parameters,
              strict: false,
            })),
            tool_choice: wireToolChoice(toolChoice),
            parallel_tool_calls: parallelToolCalls,
          }),
    };
  }
}

function endReason({ type, response }: WireEvent): LlmEndReason {
  if (type === "response.completed") return "stop";
  return response?.incomplete_details?.reason === "content_filter" ? "content_filter" : "max_output_tokens";
}

function usageOf({ response }: WireEvent): TokenUsage {
  const usage = response?.usage;
  return {
    inputTokens: usage?.input_tokens ?? 0,
    cachedInputTokens: usage?.input_tokens_details?.cached_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
  };
}

function wireToolChoice(choice: ToolChoice): unknown {
  return typeof choice === "string" ? choice : { type: "function", name: choice.name };
}

function wireItems(message: ChatMessage): object[] {
  if (message.role === "system") return [{ role: "system", content: message.text }];
  if (message.role === "tool")
    return [{ type: "function_call_output", call_id: message.callId, output: message.output }];
  if (message.role === "assistant") {
    const calls = message.toolCalls.map(({ callId, name, argumentsJson }) => ({
      type: "function_call",
      call_id: callId,
      name,
      arguments: argumentsJson,
    }));
    return [...(message.text === "" ? [] : [{ role: "assistant", content: message.text }]), ...calls];
  }
  if (message.images.length === 0) return [{ role: "user", content: message.text }];
  const images = message.images.map(({ url, detail }) => ({ type: "input_image", image_url: url, detail }));
  return [
    {
      role: "user",
      content: [...(message.text === "" ? [] : [{ type: "input_text", text: message.text }]), ...images],
    },
  ];
}
