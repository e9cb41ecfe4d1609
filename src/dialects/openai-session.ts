/** A session's configuration, between OpenAI's words and ours. */
import type {
  AudioFormat,
  ResponseOverrides,
  SessionSettings,
  SettingsPatch,
  TurnDetectionSettings,
} from "../conversation/settings.ts";
import type { EngineCapabilities, ToolDefinition, Truncation } from "../engines/engine.ts";
import { ClientError } from "../errors.ts";
import type {
  WireAudioFormat,
  WireAudioInput,
  WireAudioOutput,
  WireRealtimeSession,
  WireResponseParams,
  WireSession,
  WireTool,
  WireToolChoice,
  WireTruncation,
  WireTurnDetection,
} from "../protocol/openai/client-types.ts";
import { isServed } from "../protocol/openai/model-name.ts";
import type {
  WireEffectiveAudioInput,
  WireEffectiveSession,
  WireEffectiveTurnDetection,
  WireFormat,
} from "../protocol/openai/server-events.ts";

/** OpenAI's own voices: clients name them without thought, so each stands for the engine's default voice here. */
const OPENAI_VOICES = ["alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse", "marin", "cedar"];

/** OpenAI's own transcription models; each stands for the engine's speech recognition here. */
const OPENAI_TRANSCRIBERS =
  /^(whisper-1|gpt-(4o-|4o-mini-|live-)?transcribe(-\d{4}-\d{2}-\d{2})?|gpt-realtime-whisper)$/;

/** The voice where none has a name. */
const UNNAMED_VOICE = "default";

// ---------------------------------------------------------------------------------------------------- from the wire

/** A partial update, or why it cannot be: a model or a voice that is not served. */
export function readSession(
  session: WireSession,
  current: SessionSettings,
  capabilities: EngineCapabilities,
): SettingsPatch | ClientError {
  const input = readInput(session.audio?.input, current, capabilities);
  if (input instanceof ClientError) return input;
  if (session.type === "transcription") return { type: "transcription", ...input };
  const rest = readRealtime(session, current, capabilities);
  return rest instanceof ClientError ? rest : { type: "realtime", ...input, ...rest };
}

function readRealtime(
  session: WireRealtimeSession,
  current: SessionSettings,
  capabilities: EngineCapabilities,
): SettingsPatch | ClientError {
  const { model } = session;
  if (model !== undefined && model !== current.model && !isServed(model, capabilities.models)) {
    const served = [...new Set([current.model, ...capabilities.models])].join(", ");
    const message = `The model '${model}' is not served here; the models are: ${served}.`;
    return new ClientError("model_not_found", message, "session.model");
  }
  const overrides = readOverrides(session, "session", capabilities);
  if (overrides instanceof ClientError) return overrides;
  return given({ model, truncation: readTruncation(session.truncation), ...overrides });
}

/** The fields that a session and a single response share. */
export function readOverrides(
  params: Pick<
    WireResponseParams,
    | "instructions"
    | "output_modalities"
    | "audio"
    | "tools"
    | "tool_choice"
    | "parallel_tool_calls"
    | "max_output_tokens"
  >,
  at: "session" | "response",
  capabilities: EngineCapabilities,
): ResponseOverrides | ClientError {
  const output = params.audio?.output;
  const voice = readVoice(output?.voice, at, capabilities);
  if (voice instanceof ClientError) return voice;
  const limit = params.max_output_tokens;
  return given({
    instructions: params.instructions,
    modality: params.output_modalities?.[0],
    voice,
    speed: output?.speed,
    outputFormat: readFormat(output?.format),
    tools: params.tools?.map(readTool),
    toolChoice: readToolChoice(params.tool_choice),
    parallelToolCalls: params.parallel_tool_calls,
    outputTokensMax: limit === "inf" ? null : limit,
  });
}

function readInput(
  input: WireAudioInput | undefined,
  current: SessionSettings,
  capabilities: EngineCapabilities,
): SettingsPatch | ClientError {
  if (input === undefined) return {};
  const transcription = readTranscription(input.transcription, current, capabilities);
  if (transcription instanceof ClientError) return transcription;
  const turnDetection = readTurnDetection(input.turn_detection);
  return given({ inputFormat: readFormat(input.format), transcription, turnDetection });
}

function readTranscription(
  wire: WireAudioInput["transcription"],
  current: SessionSettings,
  capabilities: EngineCapabilities,
): SettingsPatch["transcription"] | ClientError {
  if (wire === undefined || wire === null) return wire;
  const { model, language, prompt } = wire;
  const own = [...new Set([current.transcription?.model ?? current.model, ...capabilities.models])];
  if (model !== undefined && !own.includes(model) && !OPENAI_TRANSCRIBERS.test(model)) {
    const message = `The transcription model '${model}' is not served here; leave it out, or use: ${own.join(", ")}.`;
    return new ClientError("model_not_found", message, "session.audio.input.transcription.model");
  }
  return given({ model: model !== undefined && own.includes(model) ? model : undefined, language, prompt });
}

function readTurnDetection(wire: WireTurnDetection | null | undefined): SettingsPatch["turnDetection"] {
  if (wire === undefined) return undefined;
  if (wire === null) return { type: "none" };
  const { create_response: createResponse, interrupt_response: interruptResponse } = wire;
  if (wire.type === "semantic_vad") {
    return { type: wire.type, ...given({ eagerness: wire.eagerness, createResponse, interruptResponse }) };
  }
  return {
    type: wire.type,
    ...given({
      threshold: wire.threshold,
      prefixPaddingMs: wire.prefix_padding_ms,
      silenceMs: wire.silence_duration_ms,
      createResponse,
      interruptResponse,
      idleTimeoutMs: wire.idle_timeout_ms,
    }),
  };
}

function readFormat(wire: WireAudioFormat | undefined): AudioFormat | undefined {
  if (wire === undefined) return undefined;
  if (wire.type === "audio/pcm") return { encoding: "pcm16", hz: wire.rate ?? 24_000 };
  return { encoding: wire.type === "audio/pcmu" ? "mulaw" : "alaw", hz: 8000 };
}

function readVoice(
  wire: WireAudioOutput["voice"],
  at: "session" | "response",
  { voices }: EngineCapabilities,
): string | null | undefined | ClientError {
  if (wire === undefined || wire === null) return undefined;
  const name = typeof wire === "string" ? wire : wire.id;
  if (voices.includes(name)) return name;
  if (OPENAI_VOICES.includes(name) || (voices.length === 0 && name === UNNAMED_VOICE)) return voices[0] ?? null;
  const known = voices.length === 0 ? [UNNAMED_VOICE] : voices;
  const message = `No voice is named '${name}'; the voices are: ${known.join(", ")}.`;
  return new ClientError("invalid_value", message, `${at}.audio.output.voice`);
}

function readTool(wire: WireTool): ToolDefinition {
  return { name: wire.name, description: wire.description ?? "", parameters: wire.parameters ?? NO_PARAMETERS };
}

const NO_PARAMETERS: Readonly<Record<string, unknown>> = { type: "object", properties: {} };

function readToolChoice(wire: WireToolChoice | undefined): SessionSettings["toolChoice"] | undefined {
  return typeof wire === "object" ? { name: wire.name } : wire;
}

function readTruncation(wire: WireTruncation | undefined): Truncation | undefined {
  if (typeof wire !== "object") return wire;
  return { retentionRatio: wire.retention_ratio, tokensMax: wire.token_limits?.post_instructions ?? null };
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Leaves out what is undefined: an absent field changes nothing. */
function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}

// ------------------------------------------------------------------------------------------------------ to the wire

export function writeSession(
  settings: SessionSettings,
  facts: { readonly id: string; readonly expiresAtSeconds: number | null },
): WireEffectiveSession {
  const { id } = facts;
  const input = writeInput(settings);
  const expiry = facts.expiresAtSeconds === null ? {} : { expires_at: facts.expiresAtSeconds };
  if (settings.type === "transcription") {
    return {
      type: "transcription",
      object: "realtime.transcription_session",
      id,
      ...expiry,
      audio: { input },
      include: [],
    };
  }
  const { model, instructions, speed, truncation } = settings;
  const output = { format: writeFormat(settings.outputFormat), voice: writeVoice(settings.voice), speed };
  return {
    type: "realtime",
    object: "realtime.session",
    id,
    ...expiry,
    model,
    instructions,
    output_modalities: [settings.modality],
    audio: { input, output },
    tools: settings.tools.map((tool) => ({ type: "function", ...tool })),
    tool_choice: writeToolChoice(settings.toolChoice),
    parallel_tool_calls: settings.parallelToolCalls,
    max_output_tokens: settings.outputTokensMax ?? "inf",
    truncation: writeTruncation(truncation),
    tracing: null,
    include: [],
  };
}

function writeInput(settings: SessionSettings): WireEffectiveAudioInput {
  const { transcription } = settings;
  const turn_detection = writeTurnDetection(settings.turnDetection);
  const format = writeFormat(settings.inputFormat);
  if (transcription === null) return { format, turn_detection };
  const { model, language, prompt } = transcription;
  const details = { ...(language === null ? {} : { language }), ...(prompt === null ? {} : { prompt }) };
  return { format, transcription: { model, ...details }, turn_detection };
}

function writeTurnDetection(turn: TurnDetectionSettings): WireEffectiveTurnDetection | null {
  if (turn.type === "none") return null;
  const answers = { create_response: turn.createResponse, interrupt_response: turn.interruptResponse };
  if (turn.type === "semantic_vad") return { type: turn.type, eagerness: turn.eagerness, ...answers };
  return {
    type: turn.type,
    threshold: turn.threshold,
    prefix_padding_ms: turn.prefixPaddingMs,
    silence_duration_ms: turn.silenceMs,
    ...answers,
    idle_timeout_ms: turn.idleTimeoutMs,
  };
}

export function writeFormat({ encoding, hz }: AudioFormat): WireFormat {
  if (encoding === "mulaw") return { type: "audio/pcmu" };
  if (encoding === "alaw") return { type: "audio/pcma" };
  // OpenAI's type has no other rate than 24000; 16000 is said where the client asked for it.
  return { type: "audio/pcm", rate: hz as 24000 };
}

export const writeVoice = (voice: string | null): string => voice ?? UNNAMED_VOICE;

function writeToolChoice(
  choice: SessionSettings["toolChoice"],
): "auto" | "none" | "required" | { type: "function"; name: string } {
  return typeof choice === "object" ? { type: "function", name: choice.name } : choice;
}

function writeTruncation(truncation: Truncation): Extract<WireEffectiveSession, { type: "realtime" }>["truncation"] {
  if (typeof truncation === "string") return truncation;
  const { retentionRatio, tokensMax } = truncation;
  const limits = tokensMax === null ? {} : { token_limits: { post_instructions: tokensMax } };
  return { type: "retention_ratio", retention_ratio: retentionRatio, ...limits };
}
