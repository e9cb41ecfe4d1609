/**
 * What a VoiceChat client may say. Reading goes in two steps, as the dialect needs it: the envelope (an object with a
 * `type`), whose refusal is always `invalid_request`; then the body, whose refusal has the code that the spec gives to
 * its type. Source: spec "Realtime WebSocket", tables "Client messages" and "Error codes".
 */
import { z } from "zod";
import type { ErrorCode } from "../../errors.ts";
import { nearest } from "../../util/nearest.ts";

export const CLIENT_MESSAGE_TYPES: readonly string[] = [
  "session.update",
  "input_audio_buffer.append",
  "input_audio_buffer.commit",
  "session.cancel",
  "response.cancel",
  "session.ping",
];

export type ClientMessage =
  | { readonly type: "session.update"; readonly session: SessionFields }
  | { readonly type: "append" /** Base64. */; readonly audio: string; readonly sampleHz: number }
  | { readonly type: "commit"; readonly padPartial: boolean }
  | { readonly type: "cancel" }
  | { readonly type: "ping" };

export interface SessionFields {
  /** Null: the checkpoint's own. */
  readonly systemPrompt: string | null;
  readonly seed: number;
  /** Null: the server's limit. */
  readonly maxStreamingSeconds: number | null;
}

export interface VoiceChatRefusal {
  readonly code: Extract<ErrorCode, "invalid_request" | "session_initialization_failed" | "inference_error">;
  readonly message: string;
}

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: VoiceChatRefusal };

export interface Envelope {
  readonly type: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An object with a `type`; anything else is refused and the loop goes on. */
export function readEnvelope(text: string): Read<Envelope> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse("invalid_request", `message must be a JSON object; got ${text.length} characters that are not JSON`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse("invalid_request", `message must be a JSON object, got ${kindOf(value)}`);
  }
  const body = value as Record<string, unknown>;
  return { ok: true, value: { type: typeof body["type"] === "string" ? body["type"] : "", body } };
}

/** The message that an envelope holds. */
export function readMessage({ type, body }: Envelope): Read<ClientMessage> {
  switch (type) {
    case "session.update":
      return readUpdate(body);
    case "input_audio_buffer.append":
      return readAppend(body);
    case "input_audio_buffer.commit":
      return readCommit(body);
    case "session.cancel":
    case "response.cancel":
      return { ok: true, value: { type: "cancel" } };
    case "session.ping":
      return { ok: true, value: { type: "ping" } };
    default:
      return refuse("invalid_request", unknownType(type));
  }
}

function unknownType(type: string): string {
  const near = type.length > 64 ? null : nearest(type, CLIENT_MESSAGE_TYPES);
  const hint = near === null ? "" : `, did you mean '${near}'`;
  const name = type.length > 64 ? `${type.slice(0, 64)}…` : type;
  return `unsupported event type '${name}'${hint}; expected one of ${CLIENT_MESSAGE_TYPES.join(", ")}`;
}

/** The widest integer that the generator's key holds exactly in a JSON number. */
const SEED_MAX = Number.MAX_SAFE_INTEGER;

const sessionSchema = z.strictObject({
  system_prompt: z.string().nullish(),
  seed: z.int().min(0).max(SEED_MAX).nullish(),
  max_streaming_seconds: z.number().positive().nullish(),
  model: z.string().nullish(),
});

function readUpdate(body: Envelope["body"]): Read<ClientMessage> {
  const result = sessionSchema.safeParse(body["session"] ?? {});
  if (!result.success) {
    const issue = result.error.issues[0];
    const message =
      issue?.code === "unrecognized_keys"
        ? `unknown field 'session.${issue.keys[0]}'; expected one of ${Object.keys(sessionSchema.shape).join(", ")}`
        : `session${issue?.path.map((key) => `.${String(key)}`).join("") ?? ""}: ${issue?.message ?? "is not usable"}`;
    return refuse("session_initialization_failed", message);
  }
  const { system_prompt, seed, max_streaming_seconds } = result.data;
  const session: SessionFields = {
    systemPrompt: system_prompt ?? null,
    seed: seed ?? 0,
    maxStreamingSeconds: max_streaming_seconds ?? null,
  };
  return { ok: true, value: { type: "session.update", session } };
}

const INPUT_HZ = 16_000;

function readAppend(body: Envelope["body"]): Read<ClientMessage> {
  const { audio, sample_rate: sampleHz = INPUT_HZ } = body;
  if (typeof audio !== "string") {
    return refuse("inference_error", `audio must be base64 PCM16, got ${kindOf(audio)}`);
  }
  if (typeof sampleHz !== "number" || !Number.isInteger(sampleHz)) {
    const got = typeof sampleHz === "number" ? sampleHz : kindOf(sampleHz);
    return refuse("inference_error", `sample_rate must be an integer, got ${got}`);
  }
  return { ok: true, value: { type: "append", audio, sampleHz } };
}

function readCommit(body: Envelope["body"]): Read<ClientMessage> {
  const { pad_partial: padPartial = true } = body;
  if (typeof padPartial !== "boolean") {
    return refuse("invalid_request", `pad_partial must be a boolean, got ${kindOf(padPartial)}`);
  }
  return { ok: true, value: { type: "commit", padPartial } };
}

/** For messages that must not quote a value. */
function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value !== "object") return `a ${typeof value}`;
  return Array.isArray(value) ? "an array" : "an object";
}

const refuse = (code: VoiceChatRefusal["code"], message: string): { ok: false; refusal: VoiceChatRefusal } => ({
  ok: false,
  refusal: { code, message },
});
