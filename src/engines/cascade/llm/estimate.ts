/** Tokens of a conversation as a service will count them, roughly: its tokenizer is not here. */
import { fitHistory } from "./fit-history.ts";
import type { ChatMessage, LlmRequest } from "./llm.ts";

const CHARACTERS_PER_TOKEN = 3.5;
const TOKENS_PER_MESSAGE = 6;
const TOKENS_PER_IMAGE = 800;

/**
 * The conversation as a service of `contextTokens` is to get it. Where nothing may be dropped it gets all: it knows its
 * own limit, and refuses what is beyond it.
 */
export function fitService({ messages, truncation }: LlmRequest, contextTokens: number): readonly ChatMessage[] {
  if (truncation === "disabled") return messages;
  return fitHistory(messages, { tokensMax: contextTokens, truncation, count: estimatedTokens });
}

function estimatedTokens(messages: readonly ChatMessage[]): number {
  let tokens = 0;
  for (const message of messages) {
    tokens += TOKENS_PER_MESSAGE + Math.ceil(textOf(message).length / CHARACTERS_PER_TOKEN);
    if (message.role === "user") tokens += message.images.length * TOKENS_PER_IMAGE;
  }
  return tokens;
}

function textOf(message: ChatMessage): string {
  if (message.role === "tool") return message.output;
  if (message.role !== "assistant") return message.text;
  return message.text + message.toolCalls.map(({ name, argumentsJson }) => name + argumentsJson).join("");
}
