/** The language model: a conversation in, text and tool calls out, streamed. */
import type { TokenUsage, ToolChoice, ToolDefinition, Truncation } from "../../engine.ts";

/** The conversation as every chat model knows it. Neighbouring messages may have the same role. */
export type ChatMessage =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string; readonly images: readonly ChatImage[] }
  | { readonly role: "assistant"; readonly text: string; readonly toolCalls: readonly ChatToolCall[] }
  | { readonly role: "tool"; readonly callId: string; readonly name: string; readonly output: string };

export interface ChatImage {
  /** A data: or https: address. */
  readonly url: string;
  readonly detail: "auto" | "low" | "high";
}

export interface ChatToolCall {
  readonly callId: string;
  readonly name: string;
  readonly argumentsJson: string;
}

export interface LlmRequest {
  /** The conversation's state is kept warm under this key. */
  readonly sessionKey: string;
  /** The first is the system message. */
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly parallelToolCalls: boolean;
  readonly temperature: number | null;
  readonly outputTokensMax: number | null;
  readonly truncation: Truncation;
  readonly signal: AbortSignal;
}

/** `tool.*` of one call come together, in order; `end` is last and comes exactly once. */
export type LlmPart =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "tool.started"; readonly callId: string; readonly name: string }
  | { readonly type: "tool.delta"; readonly callId: string; readonly delta: string }
  | { readonly type: "tool.completed"; readonly callId: string; readonly name: string; readonly argumentsJson: string }
  | { readonly type: "end"; readonly reason: LlmEndReason; readonly usage: TokenUsage };

export type LlmEndReason = "stop" | "max_output_tokens" | "content_filter";

/** A loaded model, or a service that answers. One serves every session. */
export interface Llm extends AsyncDisposable {
  readonly name: string;
  readonly images: boolean;
  /** It runs here, and an answer that is thrown away costs nothing but work. */
  readonly local: boolean;
  /** `native`: it takes tools and makes calls. `prompted`: the prompt shows them, and its text holds the calls. */
  readonly tools: "native" | "prompted";
  /** @throws {EngineError | UpstreamError} llm_failed, worker_died, upstream_… */
  generate(request: LlmRequest): AsyncIterable<LlmPart>;
  /** The session is gone; what was kept for it may go. */
  forget(sessionKey: string): void;
}
