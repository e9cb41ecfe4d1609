/** What a client may send, as types; `session-schema.ts` and `client-events.ts` check values against them. */

export type WireAudioFormat =
  /** 24,000 Hz is the default. 16,000 Hz is ours; OpenAI's own server knows one rate. */
  | { type: "audio/pcm"; rate?: 16000 | 24000 | undefined }
  | { type: "audio/pcmu" | "audio/pcma"; rate?: 8000 | undefined };

export type WireTurnDetection =
  | {
      type: "server_vad";
      threshold?: number | undefined;
      prefix_padding_ms?: number | undefined;
      silence_duration_ms?: number | undefined;
      create_response?: boolean | undefined;
      interrupt_response?: boolean | undefined;
      idle_timeout_ms?: number | null | undefined;
    }
  | {
      type: "semantic_vad";
      eagerness?: "low" | "medium" | "high" | "auto" | undefined;
      create_response?: boolean | undefined;
      interrupt_response?: boolean | undefined;
    };

export interface WireTranscription {
  model?: string | undefined;
  language?: string | null | undefined;
  prompt?: string | null | undefined;
  delay?: null | undefined;
}

export interface WireAudioInput {
  format?: WireAudioFormat | undefined;
  noise_reduction?: null | undefined;
  transcription?: WireTranscription | null | undefined;
  turn_detection?: WireTurnDetection | null | undefined;
}

export interface WireAudioOutput {
  format?: WireAudioFormat | undefined;
  voice?: string | { id: string } | null | undefined;
  speed?: number | undefined;
}

export interface WireTool {
  type: "function";
  name: string;
  description?: string | undefined;
  parameters?: Record<string, unknown> | null | undefined;
  strict?: false | null | undefined;
}

export type WireToolChoice = "auto" | "none" | "required" | { type: "function"; name: string };

export type WireTruncation =
  | "auto"
  | "disabled"
  | {
      type: "retention_ratio";
      retention_ratio: number;
      token_limits?: { post_instructions?: number | undefined } | undefined;
    };

export type WireModality = "audio" | "text";

export interface WireRealtimeSession {
  type: "realtime";
  model?: string | undefined;
  instructions?: string | undefined;
  output_modalities?: WireModality[] | undefined;
  audio?: { input?: WireAudioInput | undefined; output?: WireAudioOutput | undefined } | undefined;
  tools?: WireTool[] | undefined;
  tool_choice?: WireToolChoice | undefined;
  parallel_tool_calls?: boolean | undefined;
  max_output_tokens?: number | "inf" | undefined;
  truncation?: WireTruncation | undefined;
  tracing?: unknown;
  include?: never[] | null | undefined;
  prompt?: null | undefined;
  reasoning?: null | undefined;
}

export interface WireTranscriptionSession {
  type: "transcription";
  audio?: { input?: WireAudioInput | undefined } | undefined;
  include?: never[] | null | undefined;
}

export type WireSession = WireRealtimeSession | WireTranscriptionSession;

interface ItemBase {
  id?: string | undefined;
  object?: "realtime.item" | undefined;
  status?: "completed" | "incomplete" | "in_progress" | undefined;
}

export type WireInputContent =
  | { type: "input_text" | "output_text" | "text"; text: string }
  | { type: "input_audio" | "output_audio"; audio?: string | null | undefined; transcript?: string | null | undefined }
  | { type: "input_image"; image_url: string; detail?: "auto" | "low" | "high" | undefined };

export type WireInputItem =
  | (ItemBase & { type: "message"; role: "user" | "system" | "assistant"; content: WireInputContent[] })
  | (ItemBase & { type: "function_call"; name: string; arguments: string; call_id?: string | undefined })
  | (ItemBase & { type: "function_call_output"; call_id: string; output: string });

export interface WireItemReference {
  type: "item_reference";
  id: string;
}

export interface WireResponseParams {
  conversation?: "auto" | "none" | undefined;
  input?: (WireInputItem | WireItemReference)[] | undefined;
  instructions?: string | undefined;
  output_modalities?: WireModality[] | undefined;
  audio?: { output?: WireAudioOutput | undefined } | undefined;
  tools?: WireTool[] | undefined;
  tool_choice?: WireToolChoice | undefined;
  parallel_tool_calls?: boolean | undefined;
  max_output_tokens?: number | "inf" | undefined;
  metadata?: Record<string, string> | null | undefined;
  prompt?: null | undefined;
  reasoning?: null | undefined;
}

interface Envelope {
  event_id?: string | null | undefined;
}

export type ClientEvent = Envelope &
  (
    | { type: "session.update"; session: WireSession }
    | { type: "input_audio_buffer.append"; audio: string }
    | { type: "input_audio_buffer.commit" }
    | { type: "input_audio_buffer.clear" }
    | { type: "output_audio_buffer.clear" }
    | { type: "conversation.item.create"; item: WireInputItem; previous_item_id?: string | null | undefined }
    | { type: "conversation.item.retrieve"; item_id: string }
    | { type: "conversation.item.truncate"; item_id: string; content_index: number; audio_end_ms: number }
    | { type: "conversation.item.delete"; item_id: string }
    | { type: "response.create"; response?: WireResponseParams | null | undefined }
    | { type: "response.cancel"; response_id?: string | null | undefined }
  );

export type ClientEventType = ClientEvent["type"];
