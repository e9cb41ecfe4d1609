/** What a connection needs of a dialect: its words for what the session hears and tells, and nothing else. */
import type { SessionCommand } from "../conversation/commands.ts";
import type { SessionEvent } from "../conversation/events.ts";
import type { SessionSettings } from "../conversation/settings.ts";
import type { EngineCapabilities } from "../engines/engine.ts";
import type { AppError, ClientError } from "../errors.ts";
import type { IdSource } from "../util/ids.ts";

/** Who sent a message: the peer that talks, or a second control channel beside it. */
export type Origin = "peer" | "sideband";

export type Decoded =
  | { readonly command: SessionCommand; readonly eventId: string | null }
  | { readonly refusal: ClientError; readonly eventId: string | null };

export type Output =
  | { readonly type: "text"; readonly text: string }
  /** For the media track, in the voice's own rate. */
  | { readonly type: "audio"; readonly pcm: Float32Array; readonly hz: number };

export interface DialectContext {
  readonly capabilities: EngineCapabilities;
  /** How the assistant's voice travels, and with it the user's. */
  readonly audioPath: "events" | "track";
  readonly ids: IdSource;
  readonly settings: () => SessionSettings;
  readonly sessionId: string;
  readonly conversationId: () => string;
  /** Seconds since 1970; null where sessions have no greatest length. */
  readonly expiresAtSeconds: number | null;
}

export interface Dialect {
  /** Reads one text frame. What cannot be read or is not accepted is a refusal, never an exception. */
  decode(text: string, origin: Origin): Decoded;
  /** Audio from a media track: mono f32 at any rate. */
  decodeAudio(pcm: Float32Array, hz: number): SessionCommand;
  encode(event: SessionEvent): Output[];
  /** The answer to a message that was refused, or the news of a failure. */
  encodeError(error: AppError, eventId: string | null): string;
}
