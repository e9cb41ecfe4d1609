/** A running session as the page sees it, whatever carries it. */
import { type Problem, refusal, serverAway, TalkFailure } from "./problems.ts";
import type { ServerEvent } from "./talk-model.ts";

export type ClientEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

export interface RealtimeConnection {
  send(event: ClientEvent): void;
  /** False sends silence, or nothing. */
  setMicrophone(isOn: boolean): void;
  /** Silences the assistant now, and tells the server what was not heard. */
  silence(): void;
  /** Loudness of either side, 0 to 1. */
  inputLevel(): number;
  outputLevel(): number;
  /** Idempotent. */
  close(): void;
}

export interface ConnectionListener {
  received(event: ServerEvent): void;
  sent(event: ClientEvent): void;
  /** Only where the page itself plays: on WebRTC the server's events say it. */
  playing(isPlaying: boolean): void;
  /** Something to know that ends nothing. */
  note(text: string): void;
  /** The session ended, and not because the page closed it. Called at most once. */
  lost(problem: Problem | null): void;
}

export interface ConnectionOptions {
  /** Null for a session by text alone. It may come later than the session. */
  readonly microphone: Promise<MediaStream> | null;
  readonly audio: () => AudioContext;
  /** As in `session.update`. */
  readonly session: Readonly<Record<string, unknown>>;
  readonly key: string;
  readonly listener: ConnectionListener;
  readonly signal: AbortSignal;
}

/** What an HTTP refusal says. */
export async function readRefusal(response: Response): Promise<TalkFailure> {
  const body = (await response.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  const retryAfter = Number(response.headers.get("Retry-After"));
  const { code = "", message = `${response.status} ${response.statusText}` } = body?.error ?? {};
  return new TalkFailure(refusal(code, message, retryAfter > 0 ? retryAfter : null));
}

export function unreachable(cause: unknown): TalkFailure {
  return cause instanceof TalkFailure ? cause : new TalkFailure(serverAway);
}

/** Events whose code means that the session is over for good. */
export function fatalProblem(event: ServerEvent): Problem | null {
  if (event.type !== "error") return null;
  const { code, message } = event["error"] as { code: string; message: string };
  const isFatal = [
    "idle_timeout",
    "session_expired",
    "session_limit_reached",
    "server_loading",
    "server_draining",
    "invalid_api_key",
  ];
  return isFatal.includes(code) ? refusal(code, message, null) : null;
}

/** Opens it; one that does not open is closed. */
export async function opened(connection: RealtimeConnection & { open(): Promise<void> }): Promise<RealtimeConnection> {
  try {
    await connection.open();
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}
