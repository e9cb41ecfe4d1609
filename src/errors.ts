/** Every error that antiphon raises on purpose, and the one table that says what each code means to a peer. */

/** What a code means outside the process. `docs/errors.md` has a line for each, and a test keeps the two equal. */
export interface ErrorEntry {
  readonly httpStatus: number;
  /** WebSocket close code, or null where the connection stays open. */
  readonly wsClose: number | null;
  /** `error.type` on the OpenAI wire. */
  readonly wireType: "invalid_request_error" | "authentication_error" | "rate_limit_error" | "server_error";
  readonly message: string;
}

/** code, HTTP status, WebSocket close code, wire type, message. */
const ROWS = [
  // What a client may get wrong; the session stays open.
  ["invalid_json", 400, null, "invalid_request_error", "The message is not valid JSON."],
  ["invalid_event", 400, null, "invalid_request_error", "The message is not an event object."],
  [
    "unknown_or_invalid_event",
    400,
    null,
    "invalid_request_error",
    "The event type is not one that this server accepts.",
  ],
  ["invalid_value", 400, null, "invalid_request_error", "A field has a value that this server does not accept."],
  ["missing_required_parameter", 400, null, "invalid_request_error", "A required field is missing."],
  ["unknown_parameter", 400, null, "invalid_request_error", "The event has a field that this server does not know."],
  [
    "unsupported_parameter",
    400,
    null,
    "invalid_request_error",
    "The field is known, and this server does not honour it.",
  ],
  ["invalid_audio", 400, null, "invalid_request_error", "The audio payload cannot be decoded."],
  ["invalid_session_type", 400, null, "invalid_request_error", "The session type cannot be changed or is unknown."],
  ["invalid_event_for_transport", 400, null, "invalid_request_error", "The event is not accepted on this transport."],
  [
    "input_audio_buffer_commit_empty",
    400,
    null,
    "invalid_request_error",
    "The input audio buffer is too short to commit.",
  ],
  ["item_not_found", 400, null, "invalid_request_error", "No conversation item has this id."],
  ["item_already_exists", 400, null, "invalid_request_error", "A conversation item with this id exists already."],
  ["invalid_truncation", 400, null, "invalid_request_error", "The item cannot be truncated there."],
  ["response_not_found", 400, null, "invalid_request_error", "No running response has this id."],
  ["response_cancel_not_active", 400, null, "invalid_request_error", "There is no response to cancel."],
  [
    "conversation_already_has_active_response",
    400,
    null,
    "invalid_request_error",
    "A response is already in progress in this conversation.",
  ],
  ["voice_locked", 400, null, "invalid_request_error", "The voice cannot change after the session has spoken."],
  ["capability_missing", 400, null, "invalid_request_error", "The engine behind this server cannot do this."],
  ["model_not_found", 404, null, "invalid_request_error", "No model of this name is served here."],
  ["not_found", 404, null, "invalid_request_error", "There is nothing at this address."],
  ["method_not_allowed", 405, null, "invalid_request_error", "This address takes other methods."],
  ["invalid_sdp", 400, null, "invalid_request_error", "The SDP offer cannot be used."],
  ["unsupported_media_type", 415, null, "invalid_request_error", "The content type is not accepted."],
  ["not_implemented", 501, null, "invalid_request_error", "This server does not offer that API."],
  // Access and capacity.
  ["invalid_api_key", 401, 1008, "authentication_error", "The API key is missing or wrong."],
  ["origin_not_allowed", 403, 1008, "authentication_error", "Pages of this origin may not use this server."],
  ["session_limit_reached", 503, 1008, "rate_limit_error", "All sessions of this server are in use."],
  ["server_draining", 503, 1012, "server_error", "The server is shutting down and takes no new sessions."],
  ["server_loading", 503, 1013, "server_error", "The models are still loading."],
  ["message_too_large", 413, 1009, "invalid_request_error", "The message is larger than this server reads."],
  ["client_too_slow", 400, 1008, "invalid_request_error", "The client does not read what it is sent."],
  ["idle_timeout", 408, 1008, "invalid_request_error", "Nothing was heard from the client for too long."],
  ["session_expired", 400, 1000, "invalid_request_error", "The session has reached its greatest length."],
  // What goes wrong inside; the response fails, the session goes on.
  ["stt_failed", 500, null, "server_error", "The speech could not be transcribed."],
  ["llm_failed", 500, null, "server_error", "The language model failed."],
  ["tts_failed", 500, null, "server_error", "The speech could not be synthesized."],
  ["vad_failed", 500, null, "server_error", "The voice activity detector failed."],
  ["turn_failed", 500, null, "server_error", "The turn-end model failed."],
  ["engine_failed", 500, null, "server_error", "The engine failed."],
  ["worker_died", 500, null, "server_error", "A model process ended and is being restarted."],
  ["upstream_failed", 502, null, "server_error", "A remote service answered with an error."],
  ["upstream_unreachable", 502, null, "server_error", "A remote service cannot be reached."],
  ["upstream_timeout", 504, null, "server_error", "A remote service did not answer in time."],
  ["internal_error", 500, 1011, "server_error", "A fault in the server."],
  // What keeps the process from starting, or a command from running.
  ["config_invalid", 500, null, "server_error", "The configuration is not usable."],
  ["usage", 500, null, "server_error", "The command line is not usable."],
  ["address_in_use", 500, null, "server_error", "The address is in use."],
  ["audio_device", 500, null, "server_error", "The audio device cannot be used."],
  ["audio_unreadable", 500, null, "server_error", "The audio file cannot be read."],
  ["output_unwritable", 500, null, "server_error", "The output file cannot be written."],
  ["download_offline", 500, null, "server_error", "The model is not in the cache and downloads are off."],
  ["download_unreachable", 500, null, "server_error", "The source cannot be reached."],
  ["download_refused", 500, null, "server_error", "The source refuses access."],
  ["download_not_found", 500, null, "server_error", "The source does not have the file."],
  ["download_rate_limited", 500, null, "server_error", "The source asks to come back later."],
  ["download_truncated", 500, null, "server_error", "The download ended early."],
  ["download_checksum", 500, null, "server_error", "The file is not the one that was expected."],
  ["download_disk_full", 500, null, "server_error", "The disk is full."],
  ["download_failed", 500, null, "server_error", "The download failed."],
  ["model_unknown", 500, null, "server_error", "No model of this name is in the catalog."],
  ["checkpoint_unreadable", 500, null, "server_error", "The checkpoint cannot be read."],
  ["checkpoint_corrupt", 500, null, "server_error", "The checkpoint file is corrupt."],
  ["checkpoint_unsupported", 500, null, "server_error", "The checkpoint is of a kind that this version does not run."],
  [
    "checkpoint_tensor",
    500,
    null,
    "server_error",
    "A tensor of the checkpoint is missing, unused or of the wrong shape.",
  ],
  ["graph_invalid", 500, null, "server_error", "A graph is ill-typed."],
  // The VoiceChat dialect's own codes.
  ["invalid_request", 400, null, "invalid_request_error", "The message cannot be answered in this state."],
  ["server_busy", 503, 1013, "rate_limit_error", "Another connection holds the session."],
  ["session_initialization_failed", 500, null, "server_error", "The session could not be configured."],
  ["context_limit", 400, null, "invalid_request_error", "The stream has reached its greatest length."],
  ["inference_error", 500, null, "server_error", "The audio could not be processed."],
] as const;

export type ErrorCode = (typeof ROWS)[number][0];

export const ERROR_TABLE: Readonly<Record<ErrorCode, ErrorEntry>> = Object.fromEntries(
  ROWS.map(([code, httpStatus, wsClose, wireType, message]) => [code, { httpStatus, wsClose, wireType, message }]),
) as Record<ErrorCode, ErrorEntry>;

/** Facts that are safe to log: no transcript, no prompt, no key. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>;

export interface ErrorOptions {
  readonly cause?: unknown;
  readonly details?: ErrorDetails;
  readonly retryable?: boolean;
}

/** The root of all deliberate failures. The message says what, with which values, and what to do. */
export class AppError extends Error {
  override readonly name: string = "AppError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly retryable: boolean;
  constructor(code: ErrorCode, message?: string, options: ErrorOptions = {}) {
    super(message ?? ERROR_TABLE[code].message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
    this.retryable = options.retryable ?? false;
  }
  get entry(): ErrorEntry {
    return ERROR_TABLE[this.code];
  }
}

/** A peer asked for something that cannot be. `param` names the field. */
export class ClientError extends AppError {
  override readonly name = "ClientError";
  readonly param: string | null;
  constructor(code: ErrorCode, message?: string, param: string | null = null, options: ErrorOptions = {}) {
    super(code, message, options);
    this.param = param;
  }
}

export class AuthError extends AppError {
  override readonly name = "AuthError";
}

export class CapacityError extends AppError {
  override readonly name = "CapacityError";
}

export class ConfigError extends AppError {
  override readonly name = "ConfigError";
}

export type EngineStage = "vad" | "turn" | "stt" | "llm" | "tts" | "engine";

/** A stage failed: the response that it was working on fails, the session goes on. */
export class EngineError extends AppError {
  override readonly name = "EngineError";
  readonly stage: EngineStage;
  constructor(stage: EngineStage, message?: string, options: ErrorOptions & { readonly code?: ErrorCode } = {}) {
    super(options.code ?? `${stage}_failed`, message, options);
    this.stage = stage;
  }
}

/** A remote service answered with an error, or not at all. */
export class UpstreamError extends AppError {
  override readonly name = "UpstreamError";
}

/** A checkpoint file or tensor is not what it should be. */
export class CheckpointError extends AppError {
  override readonly name = "CheckpointError";
}

/** An operator was given types that it does not take. */
export class GraphError extends AppError {
  override readonly name = "GraphError";
  constructor(message: string, options: ErrorOptions = {}) {
    super("graph_invalid", message, options);
  }
}

export class DownloadError extends AppError {
  override readonly name = "DownloadError";
}

/** Any thrown value as an AppError: what is not ours becomes `internal_error`, with the original as its cause. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("internal_error", error instanceof Error ? error.message : String(error), { cause: error });
}
