/** The configuration of a session as a client writes it: every field optional, unknown fields refused. */
import { z } from "zod";
import type { WireAudioOutput, WireModality, WireSession, WireTool, WireToolChoice } from "./client-types.ts";

const AudioFormat = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("audio/pcm"),
    rate: z.union([z.literal(24000), z.literal(16000)]).optional(),
  }),
  z.strictObject({ type: z.literal("audio/pcmu"), rate: z.literal(8000).optional() }),
  z.strictObject({ type: z.literal("audio/pcma"), rate: z.literal(8000).optional() }),
]);

/** `null` leaves it off; anything else is known and not done here. */
export const nothing = (why: string): z.ZodType<null | undefined> =>
  z.null({ error: () => `not supported: ${why}` }).optional();

const Transcription = z.strictObject({
  model: z.string().max(200).optional(),
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, "expected a language code such as 'en'")
    .nullish(),
  prompt: z.string().max(10_000).nullish(),
  delay: nothing("the delay of a transcription is chosen by the server; leave it out"),
});

const TurnDetection = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("server_vad"),
    threshold: z.number().min(0).max(1).optional(),
    prefix_padding_ms: z.int().min(0).max(5000).optional(),
    silence_duration_ms: z.int().min(50).max(10_000).optional(),
    create_response: z.boolean().optional(),
    interrupt_response: z.boolean().optional(),
    idle_timeout_ms: z.int().min(500).max(600_000).nullish(),
  }),
  z.strictObject({
    type: z.literal("semantic_vad"),
    eagerness: z.enum(["low", "medium", "high", "auto"]).optional(),
    create_response: z.boolean().optional(),
    interrupt_response: z.boolean().optional(),
  }),
]);

const AudioInput = z.strictObject({
  format: AudioFormat.optional(),
  noise_reduction: nothing("this server does not filter noise; set it to null or leave it out"),
  transcription: Transcription.nullish(),
  turn_detection: TurnDetection.nullish(),
});

const Voice = z.union([z.string().min(1).max(200), z.strictObject({ id: z.string().min(1).max(200) })]);

const FunctionTool = z.strictObject({
  type: z.literal("function", {
    error: () => "not supported: tools of type 'function' only; this server calls no MCP servers",
  }),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "expected 1 to 64 letters, digits, '_' or '-'"),
  description: z.string().optional(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  /** The Responses API's flag: schemas are guidance here, and `false` says so. */
  strict: z.literal(false, { error: () => "not supported: arguments are not held to the schema" }).nullish(),
});

export const Tools: z.ZodType<WireTool[]> = z.array(FunctionTool).max(128);

export const ToolChoice: z.ZodType<WireToolChoice> = z.union([
  z.enum(["auto", "none", "required"]),
  z.strictObject({ type: z.literal("function"), name: z.string() }),
]);

export const Modalities: z.ZodType<WireModality[]> = z
  .array(z.enum(["audio", "text"]))
  .length(1, "expected exactly one of 'audio' and 'text'; audio always comes with its transcript");

export const OutputTokensMax: z.ZodType<number | "inf"> = z.union([z.int().min(1).max(4096), z.literal("inf")]);

export const AudioOutput: z.ZodType<WireAudioOutput> = z.strictObject({
  format: AudioFormat.optional(),
  voice: Voice.nullish(),
  speed: z.number().min(0.25).max(1.5).optional(),
});

const Truncation = z.union([
  z.enum(["auto", "disabled"]),
  z.strictObject({
    type: z.literal("retention_ratio"),
    retention_ratio: z.number().min(0).max(1),
    token_limits: z.strictObject({ post_instructions: z.int().min(1).optional() }).optional(),
  }),
]);

const include = z
  .array(z.never({ error: () => "not supported: this server's speech recognition gives no log probabilities" }))
  .nullish();

const RealtimeSession = z.strictObject({
  type: z.literal("realtime"),
  model: z.string().max(200).optional(),
  instructions: z.string().optional(),
  output_modalities: Modalities.optional(),
  audio: z.strictObject({ input: AudioInput.optional(), output: AudioOutput.optional() }).optional(),
  tools: Tools.optional(),
  tool_choice: ToolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  max_output_tokens: OutputTokensMax.optional(),
  truncation: Truncation.optional(),
  /** Taken and left off: there is no dashboard to trace to, and the effective configuration says null. */
  tracing: z
    .union([
      z.literal("auto"),
      z.strictObject({
        workflow_name: z.string().optional(),
        group_id: z.string().optional(),
        metadata: z.unknown().optional(),
      }),
    ])
    .nullish(),
  include,
  prompt: nothing("stored prompts are OpenAI's; send the text as instructions"),
  reasoning: nothing("the effort of reasoning is the model's own"),
});

const TranscriptionSession = z.strictObject({
  type: z.literal("transcription"),
  audio: z.strictObject({ input: AudioInput.optional() }).optional(),
  include,
});

export const Session: z.ZodType<WireSession> = z.discriminatedUnion("type", [RealtimeSession, TranscriptionSession]);
