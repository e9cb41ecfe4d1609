/** What this server sends, exact: no field is null where OpenAI's types say optional. */

export type ItemStatus = "completed" | "incomplete" | "in_progress";

/** `type` and the like of an item, as they stand in every event. */
interface ItemBase {
  id: string;
  object: "realtime.item";
  status: ItemStatus;
}

export type WireUserContent =
  | { type: "input_text"; text: string }
  /** The transcript is empty until it is known: clients differ on whether it may be absent or null. */
  | { type: "input_audio"; transcript: string }
  | { type: "input_image"; image_url: string; detail: "auto" | "low" | "high" };

export type WireAssistantContent = { type: "output_text"; text: string } | { type: "output_audio"; transcript: string };

export type WireItem =
  | (ItemBase & { type: "message"; role: "system"; content: { type: "input_text"; text: string }[] })
  | (ItemBase & { type: "message"; role: "user"; content: WireUserContent[] })
  | (ItemBase & { type: "message"; role: "assistant"; content: WireAssistantContent[] })
  | (ItemBase & { type: "function_call"; name: string; arguments: string; call_id: string })
  | (ItemBase & { type: "function_call_output"; call_id: string; output: string });

export type WireFormat =
  /** The official type knows 24000 only; 16000 is sent where the client asked for it. */
  { type: "audio/pcm"; rate: 24000 } | { type: "audio/pcmu" } | { type: "audio/pcma" };

export type WireEffectiveTurnDetection =
  | {
      type: "server_vad";
      threshold: number;
      prefix_padding_ms: number;
      silence_duration_ms: number;
      create_response: boolean;
      interrupt_response: boolean;
      idle_timeout_ms: number | null;
    }
  | {
      type: "semantic_vad";
      eagerness: "low" | "medium" | "high" | "auto";
      create_response: boolean;
      interrupt_response: boolean;
    };

export interface WireEffectiveAudioInput {
  format: WireFormat;
  transcription?: { model: string; language?: string; prompt?: string };
  turn_detection: WireEffectiveTurnDetection | null;
}

/** The whole effective configuration, as `session.created` and `session.updated` carry it. */
export type WireEffectiveSession =
  | {
      type: "realtime";
      object: "realtime.session";
      id: string;
      /** Seconds since 1970; left out where sessions have no greatest length. */
      expires_at?: number;
      model: string;
      instructions: string;
      output_modalities: ("audio" | "text")[];
      audio: { input: WireEffectiveAudioInput; output: { format: WireFormat; voice: string; speed: number } };
      tools: { type: "function"; name: string; description: string; parameters: unknown }[];
      tool_choice: "auto" | "none" | "required" | { type: "function"; name: string };
      parallel_tool_calls: boolean;
      max_output_tokens: number | "inf";
      truncation:
        | "auto"
        | "disabled"
        | { type: "retention_ratio"; retention_ratio: number; token_limits?: { post_instructions: number } };
      tracing: null;
      include: [];
    }
  | {
      type: "transcription";
      object: "realtime.transcription_session";
      id: string;
      expires_at?: number;
      audio: { input: WireEffectiveAudioInput };
      include: [];
    };

export interface WireUsage {
  total_tokens: number;
  input_tokens: number;
  output_tokens: number;
  input_token_details: {
    text_tokens: number;
    audio_tokens: number;
    image_tokens: number;
    cached_tokens: number;
    cached_tokens_details: { text_tokens: number; audio_tokens: number; image_tokens: number };
  };
  output_token_details: { text_tokens: number; audio_tokens: number };
}

export interface WireStatusDetails {
  type: "completed" | "cancelled" | "incomplete" | "failed";
  reason?: "turn_detected" | "client_cancelled" | "max_output_tokens" | "content_filter";
  error?: { type: string; code: string };
}

export interface WireResponse {
  object: "realtime.response";
  id: string;
  status: "completed" | "cancelled" | "failed" | "incomplete" | "in_progress";
  status_details?: WireStatusDetails;
  output: WireItem[];
  output_modalities: ("audio" | "text")[];
  audio: { output: { format: WireFormat; voice: string } };
  max_output_tokens: number | "inf";
  /** Left out for an out-of-band response. */
  conversation_id?: string;
  metadata?: Record<string, string>;
  usage?: WireUsage;
}

export interface WireError {
  type: string;
  code: string;
  message: string;
  param?: string;
  event_id?: string;
}

/** Where in a response a delta belongs. */
interface PartPlace {
  response_id: string;
  item_id: string;
  output_index: number;
  content_index: number;
}
interface CallPlace {
  response_id: string;
  item_id: string;
  output_index: number;
  call_id: string;
}
interface ItemPlace {
  response_id: string;
  output_index: number;
  item: WireItem;
}

type ContentPartWire = { type: "text"; text: string } | { type: "audio"; transcript: string };

/** Every event, without its `event_id`, which is given when it is sent. */
export type ServerEventBody =
  | { type: "session.created" | "session.updated"; session: WireEffectiveSession }
  | { type: "conversation.created"; conversation: { id: string; object: "realtime.conversation" } }
  | { type: "error"; error: WireError }
  | {
      type: "conversation.item.added" | "conversation.item.created" | "conversation.item.done";
      previous_item_id: string | null;
      item: WireItem;
    }
  | { type: "conversation.item.retrieved"; item: WireItem }
  | { type: "conversation.item.deleted"; item_id: string }
  | { type: "conversation.item.truncated"; item_id: string; content_index: number; audio_end_ms: number }
  | {
      type: "conversation.item.input_audio_transcription.delta";
      item_id: string;
      content_index: number;
      delta: string;
    }
  | {
      type: "conversation.item.input_audio_transcription.completed";
      item_id: string;
      content_index: number;
      transcript: string;
      usage: {
        type: "tokens";
        total_tokens: number;
        input_tokens: number;
        input_token_details: { text_tokens: number; audio_tokens: number };
        output_tokens: number;
      };
    }
  | {
      type: "conversation.item.input_audio_transcription.failed";
      item_id: string;
      content_index: number;
      error: { type: string; code: string; message: string };
    }
  | { type: "input_audio_buffer.committed"; item_id: string; previous_item_id: string | null }
  | { type: "input_audio_buffer.cleared" }
  | { type: "input_audio_buffer.speech_started"; item_id: string; audio_start_ms: number }
  | { type: "input_audio_buffer.speech_stopped"; item_id: string; audio_end_ms: number }
  | {
      type: "input_audio_buffer.timeout_triggered";
      item_id: string;
      audio_start_ms: number;
      audio_end_ms: number;
    }
  | {
      type: "output_audio_buffer.started" | "output_audio_buffer.stopped" | "output_audio_buffer.cleared";
      response_id: string;
    }
  | { type: "response.created" | "response.done"; response: WireResponse }
  | ({ type: "response.output_item.added" | "response.output_item.done" } & ItemPlace)
  | ({ type: "response.content_part.added" | "response.content_part.done"; part: ContentPartWire } & PartPlace)
  | ({
      type: "response.output_text.delta" | "response.output_audio.delta" | "response.output_audio_transcript.delta";
      delta: string;
    } & PartPlace)
  | ({ type: "response.output_text.done"; text: string } & PartPlace)
  | ({ type: "response.output_audio.done" } & PartPlace)
  | ({ type: "response.output_audio_transcript.done"; transcript: string } & PartPlace)
  | ({ type: "response.function_call_arguments.delta"; delta: string } & CallPlace)
  | ({ type: "response.function_call_arguments.done"; arguments: string; name: string } & CallPlace)
  | { type: "rate_limits.updated"; rate_limits: [] };

export type ServerEventType = ServerEventBody["type"];
export type ServerEvent = ServerEventBody & { event_id: string };
