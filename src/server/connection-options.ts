/** What a connection is made of, how far it may go, and whom it tells. */
import type { Dialect, DialectContext } from "../dialects/dialect.ts";
import type { Engine } from "../engines/engine.ts";
import type { ErrorCode } from "../errors.ts";
import type { WireSession } from "../protocol/openai/client-types.ts";
import type { Clock } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import type { TurnLatency } from "./latency.ts";
import type { Transport } from "./transport.ts";

/** What a connection tells about itself: counts and times, never content. */
export interface ConnectionObserver {
  /** From the end of the user's speech; a stage that was not reached is absent. */
  turn(latencyMs: TurnLatency): void;
  response(
    status: "completed" | "cancelled" | "failed" | "incomplete",
    tokens: { readonly input: number; readonly output: number },
  ): void;
  audio(direction: "input" | "output", seconds: number): void;
  error(code: ErrorCode): void;
}

export interface ConnectionLimits {
  /** Unsent bytes after which a client counts as not reading. */
  readonly bufferedBytesMax: number;
  /** Silence of the client, of any kind, that ends the session. Null for none. */
  readonly idleMsMax: number | null;
  /** The greatest length of a session. Null for none. */
  readonly sessionMsMax: number | null;
  /** Audio that the engine may be behind before reading waits for it. */
  readonly backlogMsMax: number;
}

export const DEFAULT_LIMITS: ConnectionLimits = {
  bufferedBytesMax: 16 * 1024 * 1024,
  idleMsMax: 15 * 60_000,
  sessionMsMax: null,
  backlogMsMax: 10_000,
};

/** How the session begins, before the client's first update. */
export interface SessionStart {
  readonly type: "realtime" | "transcription";
  /** The id that the client asked for, checked by the server; null for the engine's first. */
  readonly model: string | null;
  readonly instructions?: string;
  /** A configuration that came with the request for the session, such as that of a client secret. */
  readonly configuration?: WireSession | null;
}

export interface ConnectionOptions {
  readonly transport: Transport;
  readonly engine: Engine;
  readonly session: SessionStart;
  /** Default: OpenAI's. */
  readonly dialect?: (context: DialectContext) => Dialect;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  readonly limits?: Partial<ConnectionLimits>;
  readonly observer?: ConnectionObserver;
}

/** A second channel beside the connection: it sees every event and may send all but audio. */
export type ControlChannel = Pick<Transport, "incoming" | "send" | "bufferedBytes" | "close">;

export const NOBODY: ConnectionObserver = { turn: () => {}, response: () => {}, audio: () => {}, error: () => {} };
