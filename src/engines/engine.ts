/**
 * The contract between what decides who speaks (conversation) and what hears and speaks (engines). Nothing here knows
 * sockets, JSON or wire names. An engine is loaded once and serves every session; a stream is one session's state.
 */
import type { AppError } from "../errors.ts";

/** What differs between engines, as data. Nobody asks which engine it is. */
export interface EngineCapabilities {
  /** `server`: the session decides when to respond. `model`: the model does, on its own timeline. */
  readonly turnTaking: "server" | "model";
  readonly acceptsText: boolean;
  readonly acceptsImages: boolean;
  readonly tools: boolean;
  /** The rate of the samples that `push` takes. */
  readonly inputHz: number;
  /** The rate of most of the audio that comes out; each audio event carries its own. */
  readonly outputHz: number;
  readonly sessionsMax: number;
  /** The ids under which the engine is served, the default first. */
  readonly models: readonly string[];
  /** Voices by name, the default first. Empty where there is just one, without a name. */
  readonly voices: readonly string[];
}

export interface Engine extends AsyncDisposable {
  readonly capabilities: EngineCapabilities;
  /** What has died and is being restarted, in words; absent or empty where all is well. */
  readonly recovering?: readonly string[];
  /** Opens one session's state. @throws {CapacityError} when `sessionsMax` are open. */
  open(settings: EngineSettings, signal: AbortSignal): Promise<EngineStream>;
}

export interface EngineStream extends AsyncDisposable {
  /** Mono f32 at `capabilities.inputHz`. Never waits. */
  push(pcm: Float32Array): void;
  /** @throws {ClientError} capability_missing for a command that the engine cannot carry out. */
  send(command: EngineCommand): void;
  /** No more audio will come; what is pending is still answered, then `events` ends. */
  finish(): void;
  /**
   * A recording of the user's, apart from what is pushed: mono f32 at `capabilities.inputHz`. Its transcript follows as
   * that of any segment. Absent where the engine cannot.
   */
  transcribe?(segmentId: string, pcm: Float32Array): void;
  /** How much pushed audio has not been worked on yet, for backpressure. */
  readonly backlogSamples: number;
  readonly events: AsyncIterable<EngineEvent>;
}

// ---------------------------------------------------------------------------------------------------------- settings

/** How the end of the user's turn is found. `none` is push to talk: the peer commits. */
export type TurnDetection =
  | { readonly type: "none" }
  | {
      readonly type: "server_vad";
      /** Speech probability, 0 to 1. */
      readonly threshold: number;
      readonly prefixPaddingMs: number;
      readonly silenceMs: number;
    }
  | {
      readonly type: "semantic_vad";
      /** `auto` is `medium`. Wait at most 8 / 4 / 2 s. */
      readonly eagerness: "low" | "medium" | "high" | "auto";
    };

export interface EngineSettings {
  readonly turnDetection: TurnDetection;
  /** Null where no transcript events are wanted. The engine may still transcribe for its own use. */
  readonly transcription: {
    readonly model: string | null;
    readonly language: string | null;
    readonly prompt: string | null;
  } | null;
  /** What a duplex model needs at the start, and the cascade ignores. Null: the checkpoint's own prompt. */
  readonly systemPrompt: string | null;
  /** What responses will ask for that override nothing: with it the first one can have a head start too. */
  readonly responses?: ResponseWishes;
  readonly seed: number;
  readonly maxStreamingSeconds: number | null;
}

// ------------------------------------------------------------------------------------------------------------- items

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  /** The user's speech. `transcript` is null while unknown or failed. */
  | { readonly type: "audio"; readonly transcript: string | null }
  /** A data: or https: address. */
  | { readonly type: "image"; readonly url: string; readonly detail: "auto" | "low" | "high" };

/** The conversation as the model is to see it: plain values, a snapshot that nobody changes later. */
export type ConversationItem =
  | {
      readonly type: "message";
      readonly id: string;
      readonly role: "system" | "user" | "assistant";
      readonly content: readonly ContentPart[];
      /** The user cut this answer off; `content` is what was heard. */
      readonly interrupted: boolean;
    }
  | {
      readonly type: "tool_call";
      readonly id: string;
      readonly callId: string;
      readonly name: string;
      readonly argumentsJson: string;
    }
  | { readonly type: "tool_result"; readonly id: string; readonly callId: string; readonly output: string };

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** How a history too long for the model is cut: `auto` drops the oldest, `disabled` is an error. */
export type Truncation = "auto" | "disabled" | { readonly retentionRatio: number; readonly tokensMax: number | null };

/** What a response asks for, besides the conversation. */
export interface ResponseWishes {
  readonly instructions: string;
  readonly modalities: readonly ("audio" | "text")[];
  readonly voice: string | null;
  /** 0.25 to 1.5. */
  readonly speed: number;
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly parallelToolCalls: boolean;
  readonly temperature: number | null;
  /** Null for no limit. */
  readonly outputTokensMax: number | null;
  readonly truncation: Truncation;
}

export interface ResponseRequest extends ResponseWishes {
  readonly responseId: string;
  readonly items: readonly ConversationItem[];
}

// ---------------------------------------------------------------------------------------------------------- commands

export type EngineCommand =
  /** Switching detection off ends an open segment as silence would. */
  | { readonly type: "settings.set"; readonly settings: EngineSettings }
  /** Begins a response. Several may run; each ends with exactly one `response.ended`, unless it is cancelled. */
  | { readonly type: "respond"; readonly request: ResponseRequest }
  /** After this, nothing with the id comes out any more. No `response.ended` follows. */
  | { readonly type: "cancel"; readonly responseId: string }
  /** Push to talk: what was heard since the last commit or clear is one segment. */
  | { readonly type: "input.commit"; readonly segmentId: string }
  | { readonly type: "input.clear" }
  /** The duplex model: run what is pending, with a partial frame filled up or dropped; `frame.done` follows. */
  | { readonly type: "input.finish"; readonly padPartial: boolean }
  /** The duplex model: drop what is pending; `frame.cancelled` follows. */
  | { readonly type: "input.abort" }
  /** The assistant is audible to the user or no longer is: an ear that knows it hears its own voice less. */
  | { readonly type: "playback"; readonly audible: boolean };

// ------------------------------------------------------------------------------------------------------------ events

export interface TokenUsage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}

/** Samples in `atSample`, `startSample` and `endSample` count what was pushed, from 0, at `inputHz`. */
export type EngineEvent =
  // -- ears. A segment is one stretch of the user's speech; ids are the engine's except for `input.commit`.
  | {
      readonly type: "speech.started";
      readonly segmentId: string;
      readonly startSample: number;
      readonly atSample: number;
    }
  /** The turn has ended. The transcript of the segment follows as `completed` or `failed`, always. */
  | {
      readonly type: "speech.stopped";
      readonly segmentId: string;
      readonly endSample: number;
      readonly atSample: number;
    }
  /** Words that will not be taken back: `delta` appends. */
  | { readonly type: "transcript.delta"; readonly segmentId: string; readonly delta: string }
  /** `text` is the whole segment; empty if nothing was said. It need not equal the deltas joined, but extends them. */
  | {
      readonly type: "transcript.completed";
      readonly segmentId: string;
      readonly text: string;
      readonly audioSeconds: number;
    }
  | { readonly type: "transcript.failed"; readonly segmentId: string; readonly error: AppError }
  // -- voice
  /** Text of a response whose modalities lack audio. */
  | { readonly type: "response.text"; readonly responseId: string; readonly delta: string }
  /**
   * `pcm` says `text`, and nothing else does: text is the transcript's next piece. A long clause may come as several
   * events; all but the first have an empty text. The history keeps what was heard by this. Without both, speech is
   * about to come, and stands before the calls that follow.
   */
  | {
      readonly type: "response.speech";
      readonly responseId: string;
      readonly text: string;
      readonly pcm: Float32Array;
      readonly hz: number;
    }
  | { readonly type: "tool.started"; readonly responseId: string; readonly callId: string; readonly name: string }
  | { readonly type: "tool.delta"; readonly responseId: string; readonly callId: string; readonly delta: string }
  | {
      readonly type: "tool.completed";
      readonly responseId: string;
      readonly callId: string;
      readonly name: string;
      readonly argumentsJson: string;
    }
  | {
      readonly type: "response.ended";
      readonly responseId: string;
      readonly status: "completed" | "incomplete" | "failed";
      /** Why it is incomplete. */
      readonly reason: "max_output_tokens" | "content_filter" | null;
      readonly usage: TokenUsage;
      readonly error: AppError | null;
    }
  /** A stage's mark on the response's time line, for latency logs: milliseconds of wall time since `respond`. */
  | { readonly type: "response.mark"; readonly responseId: string; readonly stage: ResponseStage; readonly ms: number }
  // -- the duplex model's own timeline (turnTaking: "model"); frames count from 0 after the system prompt
  | {
      readonly type: "frame.text" | "frame.function";
      readonly frameIndex: number;
      readonly tokenId: number;
      readonly delta: string;
      /** Cumulative. */
      readonly text: string;
    }
  | { readonly type: "frame.transcript"; readonly frameIndex: number; readonly delta: string; readonly text: string }
  | {
      readonly type: "frame.audio";
      readonly frameIndex: number;
      readonly pcm: Float32Array;
      readonly hz: number;
      readonly audioCodes: readonly number[];
    }
  | { readonly type: "frame.done" | "frame.cancelled"; readonly frameIndex: number }
  /** Wall time of one frame, whole and by stage. */
  | {
      readonly type: "frame.timing";
      readonly frameIndex: number;
      readonly totalMs: number;
      readonly stageMs: Readonly<Record<string, number>>;
    }
  /** Everything pushed up to here has been worked on, and its events are out. */
  | { readonly type: "input.consumed"; readonly endSample: number }
  /** What was pushed up to here could not be worked on, in part or whole, and is dropped; the stream goes on. */
  | { readonly type: "input.refused"; readonly endSample: number; readonly error: AppError }
  // -- the whole stream failed; it ends after this
  | { readonly type: "failed"; readonly error: AppError };

export type ResponseStage = "llm.first_token" | "tts.first_clause" | "tts.first_audio" | "llm.done";
