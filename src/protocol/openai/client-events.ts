/** The 11 events that a client may send, each with its schema. */
import { z } from "zod";
import type { ClientEventType } from "./client-types.ts";
import { AudioOutput, Modalities, nothing, OutputTokensMax, Session, ToolChoice, Tools } from "./session-schema.ts";

const id = z.string().min(1).max(512);
const envelope = { event_id: z.string().max(512).nullish() };

const itemBase = {
  id: id.optional(),
  object: z.literal("realtime.item").optional(),
  status: z.enum(["completed", "incomplete", "in_progress"]).optional(),
};

const InputText = z.strictObject({ type: z.literal("input_text"), text: z.string() });

const UserContent = z.discriminatedUnion("type", [
  InputText,
  z.strictObject({
    type: z.literal("input_audio"),
    audio: z.string().nullish(),
    transcript: z.string().nullish(),
  }),
  z.strictObject({
    type: z.literal("input_image"),
    image_url: z
      .string()
      .regex(
        /^(data:image\/(png|jpeg|webp|gif);base64,|https:\/\/)/,
        "expected a data:image/… URI or an https address",
      ),
    detail: z.enum(["auto", "low", "high"]).optional(),
  }),
]);

const AssistantContent = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("output_text"), text: z.string() }),
  /** The beta's name for `output_text`. */
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({
    type: z.literal("output_audio"),
    audio: z.string().nullish(),
    transcript: z.string().nullish(),
  }),
]);

const Message = z.discriminatedUnion("role", [
  z.strictObject({
    type: z.literal("message"),
    role: z.literal("user"),
    content: z.array(UserContent).min(1),
    ...itemBase,
  }),
  z.strictObject({
    type: z.literal("message"),
    role: z.literal("system"),
    content: z.array(InputText).min(1),
    ...itemBase,
  }),
  z.strictObject({
    type: z.literal("message"),
    role: z.literal("assistant"),
    content: z.array(AssistantContent).min(1),
    ...itemBase,
  }),
]);

const FunctionCall = z.strictObject({
  type: z.literal("function_call"),
  name: z.string().min(1),
  arguments: z.string(),
  call_id: id.optional(),
  ...itemBase,
});

const FunctionCallOutput = z.strictObject({
  type: z.literal("function_call_output"),
  call_id: id,
  output: z.string(),
  ...itemBase,
});

const Item = z.discriminatedUnion("type", [Message, FunctionCall, FunctionCallOutput]);

const ItemReference = z.strictObject({ type: z.literal("item_reference"), id });

const Metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((value) => Object.keys(value).length <= 16, "expected at most 16 keys");

const ResponseParams = z.strictObject({
  conversation: z.enum(["auto", "none"]).optional(),
  input: z
    .array(z.union([Item, ItemReference]))
    .max(2000)
    .optional(),
  instructions: z.string().optional(),
  output_modalities: Modalities.optional(),
  audio: z.strictObject({ output: AudioOutput.optional() }).optional(),
  tools: Tools.optional(),
  tool_choice: ToolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  max_output_tokens: OutputTokensMax.optional(),
  metadata: Metadata.nullish(),
  prompt: nothing("stored prompts are OpenAI's; send the text as instructions"),
  reasoning: nothing("the effort of reasoning is the model's own"),
});

export const CLIENT_EVENTS: Readonly<Record<ClientEventType, z.ZodType>> = {
  "session.update": z.strictObject({ type: z.literal("session.update"), session: Session, ...envelope }),
  "input_audio_buffer.append": z.strictObject({
    type: z.literal("input_audio_buffer.append"),
    audio: z.string(),
    ...envelope,
  }),
  "input_audio_buffer.commit": z.strictObject({ type: z.literal("input_audio_buffer.commit"), ...envelope }),
  "input_audio_buffer.clear": z.strictObject({ type: z.literal("input_audio_buffer.clear"), ...envelope }),
  "output_audio_buffer.clear": z.strictObject({ type: z.literal("output_audio_buffer.clear"), ...envelope }),
  "conversation.item.create": z.strictObject({
    type: z.literal("conversation.item.create"),
    /** `root` puts the item first. */
    previous_item_id: id.nullish(),
    item: Item,
    ...envelope,
  }),
  "conversation.item.retrieve": z.strictObject({
    type: z.literal("conversation.item.retrieve"),
    item_id: id,
    ...envelope,
  }),
  "conversation.item.truncate": z.strictObject({
    type: z.literal("conversation.item.truncate"),
    item_id: id,
    content_index: z.int().min(0),
    audio_end_ms: z.number().min(0),
    ...envelope,
  }),
  "conversation.item.delete": z.strictObject({
    type: z.literal("conversation.item.delete"),
    item_id: id,
    ...envelope,
  }),
  "response.create": z.strictObject({
    type: z.literal("response.create"),
    response: ResponseParams.nullish(),
    ...envelope,
  }),
  "response.cancel": z.strictObject({
    type: z.literal("response.cancel"),
    response_id: id.nullish(),
    ...envelope,
  }),
};

/** Where the beta's fields have gone: the last name of a field -> its path in this version. */
export const MOVED_FIELDS: Readonly<Record<string, string>> = {
  modalities: "output_modalities",
  voice: "audio.output.voice",
  speed: "audio.output.speed",
  input_audio_format: "audio.input.format",
  output_audio_format: "audio.output.format",
  input_audio_transcription: "audio.input.transcription",
  input_audio_noise_reduction: "audio.input.noise_reduction",
  turn_detection: "audio.input.turn_detection",
  max_response_output_tokens: "max_output_tokens",
};
