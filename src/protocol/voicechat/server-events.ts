/** What a VoiceChat server says. Source: spec "Realtime WebSocket", table "Server events". */

export interface AudioFormat {
  readonly type: "pcm16";
  readonly sample_rate: number;
}

interface SessionDescription {
  readonly id: string;
  readonly input_audio_format: AudioFormat;
  readonly output_audio_format: AudioFormat;
}

export type VoiceChatEventBody =
  | { readonly type: "session.created"; readonly session: SessionDescription & { readonly state: "configuring" } }
  | {
      readonly type: "session.updated";
      readonly session: SessionDescription & {
        readonly state: "ready";
        readonly model: string;
        readonly frame_samples: number;
      };
    }
  | {
      readonly type: "conversation.item.input_audio_transcription.delta";
      readonly frame_index: number;
      readonly delta: string;
      /** Cumulative. */
      readonly transcript: string;
    }
  | {
      readonly type: "response.text.delta" | "response.function.delta";
      readonly frame_index: number;
      readonly token_id: number;
      readonly delta: string;
      /** Cumulative. */
      readonly text: string;
    }
  | {
      readonly type: "response.audio.delta";
      readonly frame_index: number;
      /** Base64 of little-endian PCM16, 1,764 samples: round(32767 clip(x, -1, 1)). */
      readonly delta: string;
      readonly format: "pcm16";
      readonly sample_rate: number;
      readonly channels: 1;
      readonly audio_codes: readonly number[];
    }
  | { readonly type: "input_audio_buffer.committed" }
  | { readonly type: "response.done" | "response.cancelled"; readonly frame_index: number }
  | { readonly type: "session.pong" }
  | { readonly type: "error"; readonly error: { readonly code: VoiceChatErrorCode; readonly message: string } };

/** Whether the `session` of a `session.created` is this dialect's: OpenAI's has a `type`, and no state. */
export function isVoiceChatSession(session: unknown): boolean {
  return typeof session === "object" && session !== null && "state" in session && session.state === "configuring";
}

export type VoiceChatErrorCode =
  | "invalid_request"
  | "server_busy"
  | "session_initialization_failed"
  | "inference_error";

/** Every event carries an id: `event_` and 16 hex digits. */
export type VoiceChatEvent = VoiceChatEventBody & { readonly event_id: string };
