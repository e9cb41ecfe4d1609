/** The conversation as the model is to see it: a lead for the voice, the instructions, and what was really heard. */
import type { ContentPart, ConversationItem, ResponseRequest } from "../engine.ts";
import type { ChatImage, ChatMessage } from "./llm/llm.ts";

/** First, and the same for everybody, so that every session shares its beginning in the model's memory. */
export const VOICE_LEAD: string =
  "You are talking aloud with a person. Answer in one to three short, plain sentences, as people speak. " +
  "No markdown, no lists, no emoji, no links.";
/**
 * Before the user's next words where the answer before them was cut off. A mark inside the answer is what small models then
 * end their own answers with.
 */
export const INTERRUPTED_NOTE: string = "(I interrupted you.)";

/** Messages for `request`: the system message first, then the items in their order. */
export function chatMessages(request: ResponseRequest): ChatMessage[] {
  const messages: ChatMessage[] = [{ role: "system", text: systemText(request) }];
  const note: ChatMessage = { role: "user", text: INTERRUPTED_NOTE, images: [] };
  let isCutOff = false;
  for (const item of request.items) {
    const message = item.type === "tool_result" ? null : chatMessage(item);
    if (message === null) continue;
    // Calls of the answer that was cut off still belong to it.
    const isAnswered = item.type === "message" && item.role !== "system";
    if (isCutOff && isAnswered && message.role === "assistant") append(messages, note);
    append(messages, isCutOff && message.role === "user" ? noted(message) : message);
    if (isAnswered) isCutOff = item.interrupted && message.role === "assistant";
  }
  if (isCutOff) append(messages, note);
  return messages.flatMap((message) => [message, ...resultsOf(message, request.items)]);
}

function noted(message: Extract<ChatMessage, { role: "user" }>): ChatMessage {
  return { ...message, text: `${INTERRUPTED_NOTE} ${message.text}`.trimEnd() };
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
  const parts = [spoken ? VOICE_LEAD : "", request.instructions.trim()];
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
  return { role: "assistant", text, toolCalls: [] };
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
