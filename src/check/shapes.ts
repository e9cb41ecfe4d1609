/** What each server event has to carry, after the types of the API. Fields beyond these are a server's own affair. */
import { z } from "zod";
import type { WireEvent } from "./wire.ts";

const text = z.string();
const index = z.int().min(0);
const ms = z.number().min(0);
const event = (fields: z.core.$ZodLooseShape): z.ZodType => z.looseObject({ event_id: text, ...fields });

const item = z.looseObject({ id: text, type: text, object: z.literal("realtime.item").optional() });
const itemPlace = { previous_item_id: text.nullish(), item };
const session = z.looseObject({ type: z.enum(["realtime", "transcription"]) });
const response = z.looseObject({
  id: text,
  object: z.literal("realtime.response"),
  status: z.enum(["completed", "cancelled", "failed", "incomplete", "in_progress"]),
  output: z.array(item),
});
const outputPlace = { response_id: text, output_index: index };
const partPlace = { ...outputPlace, item_id: text, content_index: index };
const callPlace = { ...outputPlace, item_id: text, call_id: text };
const part = z.looseObject({ type: z.enum(["audio", "text"]) });
const transcriptPlace = { item_id: text, content_index: index };
const fault = z.looseObject({ message: text, type: text });

const TRANSCRIPTION = "conversation.item.input_audio_transcription";

/** By type: the 46 server events of the API. */
const SHAPES: Readonly<Record<string, z.ZodType>> = {
  error: event({ error: fault }),
  "session.created": event({ session }),
  "session.updated": event({ session }),
  "conversation.created": event({ conversation: z.looseObject({}) }),
  "conversation.item.created": event(itemPlace),
  "conversation.item.added": event(itemPlace),
  "conversation.item.done": event(itemPlace),
  "conversation.item.retrieved": event({ item }),
  "conversation.item.truncated": event({ item_id: text, content_index: index, audio_end_ms: ms }),
  "conversation.item.deleted": event({ item_id: text }),
  [`${TRANSCRIPTION}.delta`]: event({ item_id: text, content_index: index.optional(), delta: text.optional() }),
  [`${TRANSCRIPTION}.completed`]: event({ ...transcriptPlace, transcript: text, usage: z.looseObject({ type: text }) }),
  [`${TRANSCRIPTION}.failed`]: event({ ...transcriptPlace, error: z.looseObject({}) }),
  [`${TRANSCRIPTION}.segment`]: event({ ...transcriptPlace, text }),
  "input_audio_buffer.committed": event({ item_id: text, previous_item_id: text.nullish() }),
  "input_audio_buffer.cleared": event({}),
  "input_audio_buffer.speech_started": event({ item_id: text, audio_start_ms: ms }),
  "input_audio_buffer.speech_stopped": event({ item_id: text, audio_end_ms: ms }),
  "input_audio_buffer.timeout_triggered": event({ item_id: text, audio_start_ms: ms, audio_end_ms: ms }),
  "input_audio_buffer.dtmf_event_received": event({ event: text }),
  "output_audio_buffer.started": event({ response_id: text }),
  "output_audio_buffer.stopped": event({ response_id: text }),
  "output_audio_buffer.cleared": event({ response_id: text }),
  "response.created": event({ response }),
  "response.done": event({ response }),
  "response.output_item.added": event({ ...outputPlace, item }),
  "response.output_item.done": event({ ...outputPlace, item }),
  "response.content_part.added": event({ ...partPlace, part }),
  "response.content_part.done": event({ ...partPlace, part }),
  "response.output_text.delta": event({ ...partPlace, delta: text }),
  "response.output_text.done": event({ ...partPlace, text }),
  "response.output_audio.delta": event({ ...partPlace, delta: text }),
  "response.output_audio.done": event(partPlace),
  "response.output_audio_transcript.delta": event({ ...partPlace, delta: text }),
  "response.output_audio_transcript.done": event({ ...partPlace, transcript: text }),
  "response.function_call_arguments.delta": event({ ...callPlace, delta: text }),
  "response.function_call_arguments.done": event({ ...callPlace, arguments: text }),
  "rate_limits.updated": event({ rate_limits: z.array(z.unknown()) }),
  "mcp_list_tools.in_progress": event({ item_id: text }),
  "mcp_list_tools.completed": event({ item_id: text }),
  "mcp_list_tools.failed": event({ item_id: text }),
  "response.mcp_call_arguments.delta": event({ ...outputPlace, item_id: text, delta: text }),
  "response.mcp_call_arguments.done": event({ ...outputPlace, item_id: text, arguments: text }),
  "response.mcp_call.in_progress": event({ output_index: index, item_id: text }),
  "response.mcp_call.completed": event({ output_index: index, item_id: text }),
  "response.mcp_call.failed": event({ output_index: index, item_id: text }),
};

/** What is wrong with the event's shape, in a few words; null where nothing is. */
export function shapeFaultOf(value: WireEvent): string | null {
  const schema = Object.hasOwn(SHAPES, value.type) ? SHAPES[value.type] : undefined;
  if (schema === undefined) return `${value.type} is no event of the API`;
  const result = schema.safeParse(value);
  if (result.success) return null;
  const issue = result.error.issues[0];
  return `${value.type}: ${issue?.path.join(".")} ${issue?.message}`;
}

/** Fields that may be null, by their last name, wherever they stand. */
const NULLABLE: ReadonlySet<string> = new Set([
  "code",
  "event_id",
  "idle_timeout_ms",
  "include",
  "logprobs",
  "metadata",
  "noise_reduction",
  "param",
  "previous_item_id",
  "prompt",
  "tracing",
  "transcription",
  "turn_detection",
]);

/** The paths of nulls that the types of the API have no place for. */
export function nullsOf(value: unknown, path = ""): string[] {
  if (value === null) return NULLABLE.has(path.split(".").at(-1) ?? "") ? [] : [path];
  if (typeof value !== "object") return [];
  // A function's parameters are the client's own JSON.
  if (path.endsWith(".parameters")) return [];
  return Object.entries(value ?? {}).flatMap(([key, inner]) => nullsOf(inner, path === "" ? key : `${path}.${key}`));
}
