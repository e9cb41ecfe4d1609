/** What a session tells, in OpenAI's events. Audio is not here: it is encoded where the voices' resamplers are. */
import type { ItemPlace, SessionEvent } from "../conversation/events.ts";
import type { AppError } from "../errors.ts";
import type { ServerEventBody } from "../protocol/openai/server-events.ts";
import type { DialectContext } from "./dialect.ts";
import { INPUT_TOKEN_MS, writeItem, writeResponse } from "./openai-items.ts";
import { writeSession } from "./openai-session.ts";

type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { readonly type: T }>;

export function writeEvent(
  event: Exclude<SessionEvent, { readonly type: "speech.audio" }>,
  context: DialectContext,
): ServerEventBody[] {
  switch (event.type) {
    case "session.created":
    case "session.updated":
      return writeSessionEvent(event, context);
    case "item.added":
    case "item.done":
    case "item.retrieved":
    case "item.deleted":
    case "item.truncated":
      return writeItemEvent(event);
    case "speech.started":
    case "speech.stopped":
    case "input.committed":
    case "input.cleared":
    case "input.timed_out":
    case "transcript.delta":
    case "transcript.completed":
    case "transcript.failed":
      return [writeInputEvent(event)];
    case "playback.started":
    case "playback.stopped":
    case "playback.cleared":
      return writePlayback(event, context);
    case "error":
      return [{ type: "error", error: writeError(event.error) }];
    default:
      return writeResponseEvent(event);
  }
}

function writeSessionEvent(
  event: EventOf<"session.created" | "session.updated">,
  context: DialectContext,
): ServerEventBody[] {
  const { sessionId: id, expiresAtSeconds } = context;
  const session = writeSession(event.settings, { id, expiresAtSeconds });
  if (event.type === "session.updated") return [{ type: event.type, session }];
  const conversation = { id: context.conversationId(), object: "realtime.conversation" } as const;
  return [
    { type: event.type, session },
    { type: "conversation.created", conversation },
  ];
}

function writeItemEvent(
  event: EventOf<"item.added" | "item.done" | "item.retrieved" | "item.deleted" | "item.truncated">,
): ServerEventBody[] {
  switch (event.type) {
    case "item.added":
    case "item.done": {
      const place = { previous_item_id: event.previousId, item: writeItem(event.item) };
      if (event.type === "item.done") return [{ type: "conversation.item.done", ...place }];
      const added: ServerEventBody = { type: "conversation.item.added", ...place };
      // Older clients wait for this name before they go on. Inside a response nothing waits for it.
      return event.ofResponse ? [added] : [added, { type: "conversation.item.created", ...place }];
    }
    case "item.retrieved":
      return [{ type: "conversation.item.retrieved", item: writeItem(event.item) }];
    case "item.deleted":
      return [{ type: "conversation.item.deleted", item_id: event.itemId }];
    case "item.truncated": {
      const { itemId: item_id, contentIndex: content_index, audioEndMs: audio_end_ms } = event;
      return [{ type: "conversation.item.truncated", item_id, content_index, audio_end_ms }];
    }
  }
}

function writeInputEvent(
  event: EventOf<
    | "speech.started"
    | "speech.stopped"
    | "input.committed"
    | "input.cleared"
    | "input.timed_out"
    | "transcript.delta"
    | "transcript.completed"
    | "transcript.failed"
  >,
): ServerEventBody {
  if (event.type === "input.cleared") return { type: "input_audio_buffer.cleared" };
  const { itemId: item_id } = event;
  switch (event.type) {
    case "speech.started":
      return { type: "input_audio_buffer.speech_started", item_id, audio_start_ms: event.atMs };
    case "speech.stopped":
      return { type: "input_audio_buffer.speech_stopped", item_id, audio_end_ms: event.atMs };
    case "input.committed":
      return { type: "input_audio_buffer.committed", item_id, previous_item_id: event.previousId };
    case "input.timed_out": {
      const { startMs: audio_start_ms, endMs: audio_end_ms } = event;
      return { type: "input_audio_buffer.timeout_triggered", item_id, audio_start_ms, audio_end_ms };
    }
    case "transcript.delta": {
      const type = "conversation.item.input_audio_transcription.delta";
      return { type, item_id, content_index: event.contentIndex, delta: event.delta };
    }
    case "transcript.completed": {
      const type = "conversation.item.input_audio_transcription.completed";
      const usage = transcriptionUsage(event.audioSeconds, event.text);
      return { type, item_id, content_index: event.contentIndex, transcript: event.text, usage };
    }
    case "transcript.failed": {
      const type = "conversation.item.input_audio_transcription.failed";
      return { type, item_id, content_index: event.contentIndex, error: writeError(event.error) };
    }
  }
}

/** Tokens rather than seconds: the Agents SDK (0.13) takes no other usage. Text counts four characters a token. */
function transcriptionUsage(
  audioSeconds: number,
  text: string,
): Extract<ServerEventBody, { type: "conversation.item.input_audio_transcription.completed" }>["usage"] {
  const audio_tokens = Math.ceil((audioSeconds * 1000) / INPUT_TOKEN_MS);
  const output_tokens = Math.ceil(text.length / 4);
  return {
    type: "tokens",
    total_tokens: audio_tokens + output_tokens,
    input_tokens: audio_tokens,
    input_token_details: { text_tokens: 0, audio_tokens },
    output_tokens,
  };
}

function writePlayback(
  event: EventOf<"playback.started" | "playback.stopped" | "playback.cleared">,
  context: DialectContext,
): ServerEventBody[] {
  if (context.audioPath === "events") return [];
  const response_id = event.responseId;
  switch (event.type) {
    case "playback.started":
      return [{ type: "output_audio_buffer.started", response_id }];
    case "playback.stopped":
      return [{ type: "output_audio_buffer.stopped", response_id }];
    case "playback.cleared":
      return [{ type: "output_audio_buffer.cleared", response_id }];
  }
}

function writeResponseEvent(
  event: EventOf<
    | "response.created"
    | "response.done"
    | "output.added"
    | "output.done"
    | "part.added"
    | "part.done"
    | "text.delta"
    | "speech.delta"
    | "call.delta"
    | "call.done"
  >,
): ServerEventBody[] {
  if ("response" in event) {
    const body: ServerEventBody = { type: event.type, response: writeResponse(event.response) };
    // A server of one's own has no rate limits to tell of; clients that wait for the event get it.
    return event.type === "response.done" ? [body] : [body, { type: "rate_limits.updated", rate_limits: [] }];
  }
  const { responseId: response_id, itemId: item_id, outputIndex: output_index } = event;
  const place = { response_id, item_id, output_index };
  switch (event.type) {
    case "output.added":
      return [{ type: "response.output_item.added", response_id, output_index, item: writeItem(event.item) }];
    case "output.done":
      return [{ type: "response.output_item.done", response_id, output_index, item: writeItem(event.item) }];
    case "part.added": {
      const part =
        event.modality === "audio"
          ? ({ type: "audio", transcript: "" } as const)
          : ({ type: "text", text: "" } as const);
      return [{ type: "response.content_part.added", ...place, content_index: 0, part }];
    }
    case "part.done":
      return writePartDone(event);
    case "text.delta":
      return [{ type: "response.output_text.delta", ...place, content_index: 0, delta: event.delta }];
    case "speech.delta":
      return [{ type: "response.output_audio_transcript.delta", ...place, content_index: 0, delta: event.delta }];
    case "call.delta": {
      const { callId: call_id, delta } = event;
      return [{ type: "response.function_call_arguments.delta", ...place, call_id, delta }];
    }
    case "call.done": {
      const { callId: call_id, name, argumentsJson } = event;
      return [{ type: "response.function_call_arguments.done", ...place, call_id, name, arguments: argumentsJson }];
    }
  }
}

function writePartDone(event: EventOf<"part.done"> & ItemPlace): ServerEventBody[] {
  const { responseId: response_id, itemId: item_id, outputIndex: output_index, text } = event;
  const place = { response_id, item_id, output_index, content_index: 0 };
  if (event.modality === "text") {
    return [
      { type: "response.output_text.done", ...place, text },
      { type: "response.content_part.done", ...place, part: { type: "text", text } },
    ];
  }
  return [
    { type: "response.output_audio.done", ...place },
    { type: "response.output_audio_transcript.done", ...place, transcript: text },
    { type: "response.content_part.done", ...place, part: { type: "audio", transcript: text } },
  ];
}

const writeError = (error: AppError): { type: string; code: string; message: string } => ({
  type: error.entry.wireType,
  code: error.code,
  message: error.message,
});
