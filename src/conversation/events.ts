/** What a session tells. Past tense; a `delta` is incremental, `text` is cumulative; times count the peer's own audio. */

import type { TokenUsage } from "../engines/engine.ts";
import type { AppError } from "../errors.ts";
import type { Item } from "./items.ts";
import type { AudioFormat, Modality, SessionSettings } from "./settings.ts";

export type CancelCause = "turn_detected" | "client_cancelled";

export interface ResponseUsage extends TokenUsage {
  /** Speech that was sent, in milliseconds of audio. */
  readonly audioMs: number;
}

/** A response as it stands. */
export interface ResponseView {
  readonly id: string;
  readonly status: "in_progress" | "completed" | "cancelled" | "incomplete" | "failed";
  readonly reason: CancelCause | "max_output_tokens" | "content_filter" | null;
  readonly error: AppError | null;
  readonly output: readonly Item[];
  /** Null for an out-of-band response. */
  readonly conversationId: string | null;
  readonly modality: Modality;
  readonly voice: string | null;
  readonly outputFormat: AudioFormat;
  readonly outputTokensMax: number | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Null while in progress. */
  readonly usage: ResponseUsage | null;
}

export interface ItemPlace {
  readonly responseId: string;
  readonly itemId: string;
  readonly outputIndex: number;
}

export type SessionEvent =
  | { readonly type: "session.created" | "session.updated"; readonly settings: SessionSettings }
  | {
      readonly type: "item.added" | "item.done";
      readonly item: Item;
      readonly previousId: string | null;
      /** The item is part of a response's output. */
      readonly ofResponse: boolean;
    }
  | { readonly type: "item.retrieved"; readonly item: Item }
  | { readonly type: "item.deleted"; readonly itemId: string }
  | {
      readonly type: "item.truncated";
      readonly itemId: string;
      readonly contentIndex: number;
      readonly audioEndMs: number;
    }
  | { readonly type: "speech.started"; readonly itemId: string; readonly atMs: number }
  | { readonly type: "speech.stopped"; readonly itemId: string; readonly atMs: number }
  | { readonly type: "input.committed"; readonly itemId: string; readonly previousId: string | null }
  | { readonly type: "input.cleared" }
  | { readonly type: "input.timed_out"; readonly itemId: string; readonly startMs: number; readonly endMs: number }
  | {
      readonly type: "transcript.delta";
      readonly itemId: string;
      readonly contentIndex: number;
      readonly delta: string;
    }
  | {
      readonly type: "transcript.completed";
      readonly itemId: string;
      readonly contentIndex: number;
      readonly text: string;
      readonly audioSeconds: number;
    }
  | {
      readonly type: "transcript.failed";
      readonly itemId: string;
      readonly contentIndex: number;
      readonly error: AppError;
    }
  | { readonly type: "response.created" | "response.done"; readonly response: ResponseView }
  | ({ readonly type: "output.added" | "output.done"; readonly item: Item } & ItemPlace)
  | ({ readonly type: "part.added"; readonly modality: Modality } & ItemPlace)
  /** `whole`: the part ended by itself, so the tail of its audio is to be sent too. */
  | ({
      readonly type: "part.done";
      readonly modality: Modality;
      readonly text: string;
      readonly whole: boolean;
    } & ItemPlace)
  | ({ readonly type: "text.delta" | "speech.delta"; readonly delta: string } & ItemPlace)
  /** On its way to the user. After a pause, what was not heard comes once more. */
  | ({ readonly type: "speech.audio"; readonly pcm: Float32Array; readonly hz: number } & ItemPlace)
  | ({ readonly type: "call.delta"; readonly callId: string; readonly delta: string } & ItemPlace)
  | ({
      readonly type: "call.done";
      readonly callId: string;
      readonly name: string;
      readonly argumentsJson: string;
    } & ItemPlace)
  | {
      readonly type: "playback.started" | "playback.stopped" | "playback.cleared";
      readonly responseId: string;
    }
  /** Something failed that no other event tells of. */
  | { readonly type: "error"; readonly error: AppError };

export type Emit = (event: SessionEvent) => void;
