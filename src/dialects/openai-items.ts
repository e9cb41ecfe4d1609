/** Items and responses, between OpenAI's words and ours. */
import type { InputEntry, ResponseOptions } from "../conversation/commands.ts";
import type { ResponseUsage, ResponseView } from "../conversation/events.ts";
import type { Item, ItemContent, MessageItem } from "../conversation/items.ts";
import type { EngineCapabilities } from "../engines/engine.ts";
import { ClientError } from "../errors.ts";
import type { WireInputContent, WireInputItem, WireResponseParams } from "../protocol/openai/client-types.ts";
import type {
  WireAssistantContent,
  WireItem,
  WireResponse,
  WireStatusDetails,
  WireUsage,
  WireUserContent,
} from "../protocol/openai/server-events.ts";
import type { IdSource } from "../util/ids.ts";
import { readOverrides, writeFormat, writeVoice } from "./openai-session.ts";

// ---------------------------------------------------------------------------------------------------- from the wire

/**
 * An item that a client made. It is complete, whatever it says of its status. With `recordings`, speech of the user's
 * may come without its transcript.
 */
export function readItem(wire: WireInputItem, ids: IdSource, at: string, recordings = false): Item | ClientError {
  const base = { id: wire.id ?? ids("item"), status: "completed" } as const;
  if (wire.type === "function_call") {
    const { name, arguments: argumentsJson, call_id: callId = ids("call") } = wire;
    return { type: "call", ...base, callId, name, argumentsJson };
  }
  if (wire.type === "function_call_output")
    return { type: "result", ...base, callId: wire.call_id, output: wire.output };
  const { role } = wire;
  const content: ItemContent[] = [];
  for (const [index, part] of wire.content.entries()) {
    const read = readContent(part, `${at}.content[${index}]`, recordings);
    if (read instanceof ClientError) return read;
    content.push(read);
  }
  // An answer that was cut off elsewhere stays one here.
  const interrupted = role === "assistant" && wire.status === "incomplete";
  return { type: "message", ...base, status: interrupted ? "incomplete" : "completed", role, content, interrupted };
}

function readContent(part: WireInputContent, at: string, recordings: boolean): ItemContent | ClientError {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: part.text };
    case "input_image":
      return { type: "image", url: part.image_url, detail: part.detail ?? "auto" };
    case "input_audio":
    case "output_audio": {
      const transcript = part.transcript ?? null;
      if (transcript !== null || (part.audio ?? null) === null) return { type: "speech", transcript: transcript ?? "" };
      if (part.type === "input_audio" && recordings) return { type: "speech", transcript: null };
      const message = `'${at}.audio' comes without a transcript, and the model reads what was said; add 'transcript'.`;
      return new ClientError("unsupported_parameter", message, `${at}.audio`);
    }
  }
}

/** The base64 of the user's speech in the item whose transcript is missing; null where there is none. */
export function recordingOf(wire: WireInputItem): string | null | ClientError {
  if (wire.type !== "message") return null;
  const unread = wire.content.flatMap((part) =>
    part.type === "input_audio" && (part.transcript ?? null) === null && (part.audio ?? null) !== null
      ? [part.audio]
      : [],
  );
  if (unread.length <= 1) return unread[0] ?? null;
  const message = "An item takes one recording without a transcript; make an item of each, or add the transcripts.";
  return new ClientError("invalid_value", message, "item.content");
}

export function readResponse(
  params: WireResponseParams,
  capabilities: EngineCapabilities,
  ids: IdSource,
): ResponseOptions | ClientError {
  const overrides = readOverrides(params, "response", capabilities);
  if (overrides instanceof ClientError) return overrides;
  let input: InputEntry[] | null = null;
  for (const [index, entry] of (params.input ?? []).entries()) {
    input ??= [];
    if (entry.type === "item_reference") {
      input.push({ type: "reference", id: entry.id });
      continue;
    }
    const item = readItem(entry, ids, `response.input[${index}]`);
    if (item instanceof ClientError) return item;
    input.push({ type: "item", item });
  }
  if (params.input !== undefined) input ??= [];
  const conversation = params.conversation === "none" ? "none" : "default";
  return { conversation, input, overrides, metadata: params.metadata ?? null };
}

// ------------------------------------------------------------------------------------------------------ to the wire

export function writeItem(item: Item): WireItem {
  const base = { id: item.id, object: "realtime.item", status: item.status } as const;
  if (item.type === "call") {
    const { name, argumentsJson, callId } = item;
    return { ...base, type: "function_call", name, arguments: argumentsJson, call_id: callId };
  }
  if (item.type === "result")
    return { ...base, type: "function_call_output", call_id: item.callId, output: item.output };
  return writeMessage(item, base);
}

function writeMessage(item: MessageItem, base: Pick<WireItem, "id" | "object" | "status">): WireItem {
  const { role, content } = item;
  if (role === "user") return { ...base, type: "message", role, content: content.map(writeUserContent) };
  if (role === "assistant") return { ...base, type: "message", role, content: content.map(writeAssistantContent) };
  const texts = content.map((part) => ({ type: "input_text" as const, text: part.type === "text" ? part.text : "" }));
  return { ...base, type: "message", role, content: texts };
}

function writeUserContent(part: ItemContent): WireUserContent {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image") return { type: "input_image", image_url: part.url, detail: part.detail };
  return { type: "input_audio", transcript: part.transcript ?? "" };
}

function writeAssistantContent(part: ItemContent): WireAssistantContent {
  if (part.type === "speech") return { type: "output_audio", transcript: part.transcript ?? "" };
  return { type: "output_text", text: part.type === "text" ? part.text : "" };
}

export function writeResponse(view: ResponseView): WireResponse {
  return {
    object: "realtime.response",
    id: view.id,
    status: view.status,
    ...(view.status === "in_progress" ? {} : { status_details: writeStatus(view) }),
    output: view.output.map(writeItem),
    output_modalities: [view.modality],
    audio: { output: { format: writeFormat(view.outputFormat), voice: writeVoice(view.voice) } },
    max_output_tokens: view.outputTokensMax ?? "inf",
    ...(view.conversationId === null ? {} : { conversation_id: view.conversationId }),
    ...(view.metadata === null ? {} : { metadata: { ...view.metadata } }),
    ...(view.usage === null ? {} : { usage: writeUsage(view.usage) }),
  };
}

function writeStatus({ status, reason, error }: ResponseView): WireStatusDetails {
  return {
    type: status === "in_progress" ? "completed" : status,
    ...(reason === null ? {} : { reason }),
    ...(error === null ? {} : { error: { type: error.entry.wireType, code: error.code } }),
  };
}

/** Milliseconds of speech per audio token, as OpenAI counts: out, and in. */
const OUTPUT_TOKEN_MS = 50;
export const INPUT_TOKEN_MS = 100;

function writeUsage(usage: ResponseUsage): WireUsage {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  const audioTokens = Math.ceil(usage.audioMs / OUTPUT_TOKEN_MS);
  return {
    total_tokens: inputTokens + outputTokens + audioTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens + audioTokens,
    input_token_details: {
      text_tokens: inputTokens,
      audio_tokens: 0,
      image_tokens: 0,
      cached_tokens: cachedInputTokens,
      cached_tokens_details: { text_tokens: cachedInputTokens, audio_tokens: 0, image_tokens: 0 },
    },
    output_token_details: { text_tokens: outputTokens, audio_tokens: audioTokens },
  };
}
