/** The conversation as the model is to see it: a lead for the voice, the instructions, and what was really heard. */
import type { ContentPart, ConversationItem, ResponseRequest } from "../engine.ts";
import type { ChatImage, ChatMessage } from "./llm/llm.ts";

/** First, and the same for everybody, so that every session shares its beginning in the model's memory. */
export const VOICE_LEAD: string =
  "You are talking aloud with a person. Answer in one to three short, plain sentences, as people speak. " +
  "No markdown, no lists, no emoji, no links.";
/** Marks an answer that the user cut off. */
export const INTERRUPTED_MARK: string = "[interrupted]";
const INTERRUPTED_LEAD = `${INTERRUPTED_MARK} marks where the user cut you off and heard no more; never say it yourself.`;

/** Messages for `request`: the system message first, then the items in their order. */
export function chatMessages(request: ResponseRequest): ChatMessage[] {
  const messages: ChatMessage[] = [{ role: "system", text: systemText(request) }];
  for (const item of request.items) {
    const message = item.type === "tool_result" ? null : chatMessage(item);
    if (message !== null) append(messages, message);
  }
  return messages.flatMap((message) => [message, ...resultsOf(message, request.items)]);
}

const NO_RESULT = "There is no result yet.";

/**
 * Each call's result follows its message, however late it came or however much was said in between: models and services
 * take no other order, nor a call without a result, nor a result whose call is gone.
 */
function resultsOf(message: ChatMessage, items: readonly ConversationItem[]): ChatMessage[] {
  if (message.role !== "assistant") return [];
  return message.toolCalls.map(({ callId, name }) => {
    const result = items.find((item) => item.type === "tool_result" && item.callId === callId);
    return { role: "tool", callId, name, output: result?.type === "tool_result" ? result.output : NO_RESULT };
  });
}

function systemText(request: ResponseRequest): string {
  const spoken = request.modalities.includes("audio");
  const interrupted = request.items.some((item) => item.type === "message" && item.interrupted);
  const parts = [spoken ? VOICE_LEAD : "", request.instructions.trim(), interrupted ? INTERRUPTED_LEAD : ""];
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Null for an item that says nothing: an answer of which nothing was heard, speech without words. */
function chatMessage(item: Exclude<ConversationItem, { type: "tool_result" }>): ChatMessage | null {
  if (item.type === "tool_call") {
    const { callId, name, argumentsJson } = item;
    return { role: "assistant", text: "", toolCalls: [{ callId, name, argumentsJson }] };
  }
  const text = item.content
    .map(partText)
    .filter((part) => part !== "")
    .join("\n");
  if (item.role === "system") return text === "" ? null : { role: "system", text };
  if (item.role === "user") {
    const images = item.content.flatMap((part): ChatImage[] =>
      part.type === "image" ? [{ url: part.url, detail: part.detail }] : [],
    );
    return text === "" && images.length === 0 ? null : { role: "user", text, images };
  }
  if (text === "") return null;
  return { role: "assistant", text: item.interrupted ? `${text} ${INTERRUPTED_MARK}` : text, toolCalls: [] };
}

function partText(part: ContentPart): string {
  if (part.type === "text") return part.text;
  return part.type === "audio" ? (part.transcript ?? "") : "";
}

/** Calls of one answer belong to one message, with the words before them. */
function append(messages: ChatMessage[], message: ChatMessage): void {
  const last = messages.at(-1);
  if (last?.role === "assistant" && message.role === "assistant" && message.toolCalls.length > 0) {
    messages[messages.length - 1] = { ...last, toolCalls: [...last.toolCalls, ...message.toolCalls] };
  } else {
    messages.push(message);
  }
}
