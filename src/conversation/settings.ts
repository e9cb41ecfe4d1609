/** The effective configuration of a session, and how a partial update changes it. */

import type {
  EngineCapabilities,
  EngineSettings,
  ResponseWishes,
  ToolChoice,
  ToolDefinition,
  Truncation,
} from "../engines/engine.ts";
import { ClientError } from "../errors.ts";

export interface AudioFormat {
  readonly encoding: "pcm16" | "mulaw" | "alaw";
  readonly hz: number;
}

export type TurnDetectionSettings =
  /** Push to talk: the peer commits. */
  | { readonly type: "none" }
  | {
      readonly type: "server_vad";
      readonly threshold: number;
      readonly prefixPaddingMs: number;
      readonly silenceMs: number;
      readonly createResponse: boolean;
      readonly interruptResponse: boolean;
      /** Null: silence is never answered. */
      readonly idleTimeoutMs: number | null;
    }
  | {
      readonly type: "semantic_vad";
      readonly eagerness: "low" | "medium" | "high" | "auto";
      readonly createResponse: boolean;
      readonly interruptResponse: boolean;
    };

export type Modality = "audio" | "text";

export interface TranscriptionSettings {
  readonly model: string;
  readonly language: string | null;
  readonly prompt: string | null;
}

export interface SessionSettings {
  readonly type: "realtime" | "transcription";
  readonly model: string;
  readonly instructions: string;
  readonly modality: Modality;
  /** Null where the engine has just one voice, without a name. */
  readonly voice: string | null;
  /** 0.25 to 1.5. */
  readonly speed: number;
  readonly inputFormat: AudioFormat;
  readonly outputFormat: AudioFormat;
  /** Null: no transcript events. What is said is transcribed all the same, for the language model. */
  readonly transcription: TranscriptionSettings | null;
  readonly turnDetection: TurnDetectionSettings;
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly parallelToolCalls: boolean;
  /** Null for no limit. */
  readonly outputTokensMax: number | null;
  readonly truncation: Truncation;
}

type TurnDetectionPatch =
  | { readonly type: "none" }
  | ({ readonly type: "server_vad" } & Partial<Omit<Extract<TurnDetectionSettings, { type: "server_vad" }>, "type">>)
  | ({ readonly type: "semantic_vad" } & Partial<
      Omit<Extract<TurnDetectionSettings, { type: "semantic_vad" }>, "type">
    >);

export type SettingsPatch = Partial<Omit<SessionSettings, "turnDetection" | "transcription">> & {
  readonly turnDetection?: TurnDetectionPatch;
  readonly transcription?: Partial<TranscriptionSettings> | null;
};

/** What one response may override. */
export type ResponseOverrides = Partial<
  Pick<
    SessionSettings,
    | "instructions"
    | "modality"
    | "voice"
    | "speed"
    | "outputFormat"
    | "tools"
    | "toolChoice"
    | "parallelToolCalls"
    | "outputTokensMax"
  >
>;

const SERVER_VAD = {
  type: "server_vad",
  threshold: 0.5,
  prefixPaddingMs: 300,
  silenceMs: 500,
  createResponse: true,
  interruptResponse: true,
  idleTimeoutMs: null,
} as const;

const SEMANTIC_VAD = {
  type: "semantic_vad",
  eagerness: "auto",
  createResponse: true,
  interruptResponse: true,
} as const;

const PCM_24K: AudioFormat = { encoding: "pcm16", hz: 24_000 };

/** OpenAI's defaults, but for the transcript: the engine has it anyway, so it is sent unless switched off. */
export function defaultSettings(
  type: SessionSettings["type"],
  capabilities: EngineCapabilities,
  overrides: Partial<Pick<SessionSettings, "model" | "instructions" | "transcription">> = {},
): SessionSettings {
  const model = overrides.model ?? capabilities.models[0] ?? "antiphon";
  return {
    type,
    model,
    instructions: "",
    modality: "audio",
    voice: capabilities.voices[0] ?? null,
    speed: 1,
    inputFormat: PCM_24K,
    outputFormat: PCM_24K,
    transcription: { model, language: null, prompt: null },
    turnDetection: SERVER_VAD,
    tools: [],
    toolChoice: "auto",
    parallelToolCalls: true,
    outputTokensMax: null,
    truncation: "auto",
    ...overrides,
  };
}

/** Deep merge: what the patch does not name stays. A turn detection of another type starts from its own defaults. */
export function mergeSettings(current: SessionSettings, patch: SettingsPatch): SessionSettings {
  const { turnDetection, transcription, ...rest } = patch;
  const next = { ...current, ...rest };
  return {
    ...next,
    turnDetection:
      turnDetection === undefined ? current.turnDetection : mergeTurn(current.turnDetection, turnDetection),
    transcription: mergeTranscription(current, transcription),
  };
}

function mergeTurn(current: TurnDetectionSettings, patch: TurnDetectionPatch): TurnDetectionSettings {
  if (patch.type === "none") return patch;
  if (patch.type === "server_vad") {
    return { ...(current.type === "server_vad" ? current : SERVER_VAD), ...patch };
  }
  return { ...(current.type === "semantic_vad" ? current : SEMANTIC_VAD), ...patch };
}

function mergeTranscription(
  current: SessionSettings,
  patch: SettingsPatch["transcription"],
): SessionSettings["transcription"] {
  if (patch === undefined) return current.transcription;
  if (patch === null) return null;
  return { ...(current.transcription ?? { model: current.model, language: null, prompt: null }), ...patch };
}

export interface ChangeContext {
  readonly capabilities: EngineCapabilities;
  /** The assistant has been heard: its voice is fixed. */
  readonly hasSpoken: boolean;
  /** The conversation has begun: the type of the session is fixed. */
  readonly hasItems: boolean;
}

/** Null where the change may be made. */
export function refuseChange(from: SessionSettings, to: SessionSettings, context: ChangeContext): ClientError | null {
  if (to.type !== from.type && context.hasItems) {
    const message = `A ${from.type} session cannot become a ${to.type} session once it has items; open a new one.`;
    return new ClientError("invalid_session_type", message, "session.type");
  }
  if (to.voice !== from.voice && context.hasSpoken) {
    const message = `The voice is ${from.voice ?? "the engine's own"} since the first answer; open a new session for another.`;
    return new ClientError("voice_locked", message, "session.audio.output.voice");
  }
  return refuseTools(to, context.capabilities, "session");
}

/** Null where the engine can work with these tools and the choice names one of them. */
export function refuseTools(
  settings: Pick<SessionSettings, "tools" | "toolChoice">,
  capabilities: EngineCapabilities,
  at: "session" | "response",
): ClientError | null {
  const names = settings.tools.map((tool) => tool.name);
  if (names.length > 0 && !capabilities.tools) {
    return new ClientError("capability_missing", "The engine behind this server calls no tools.", `${at}.tools`);
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    return new ClientError("invalid_value", `Two tools are named '${twice}'; names must differ.`, `${at}.tools`);
  }
  const choice = settings.toolChoice;
  if (typeof choice === "object" && !names.includes(choice.name)) {
    const message = `No tool is named '${choice.name}'; the tools are: ${names.join(", ") || "none"}.`;
    return new ClientError("invalid_value", message, `${at}.tool_choice`);
  }
  return null;
}

export function engineSettings(settings: SessionSettings, seed = 0): EngineSettings {
  const turn = settings.turnDetection;
  const { type } = turn;
  return {
    turnDetection:
      type === "none"
        ? { type }
        : type === "semantic_vad"
          ? { type, eagerness: turn.eagerness }
          : { type, threshold: turn.threshold, prefixPaddingMs: turn.prefixPaddingMs, silenceMs: turn.silenceMs },
    transcription: settings.transcription,
    systemPrompt: settings.instructions,
    responses: responseWishes(settings),
    seed,
    maxStreamingSeconds: null,
  };
}

/** What a response of these settings asks of the engine. */
export function responseWishes(settings: SessionSettings): ResponseWishes {
  const { instructions, modality, voice, speed, tools, toolChoice, parallelToolCalls } = settings;
  const { outputTokensMax, truncation } = settings;
  return {
    instructions,
    modalities: [modality],
    voice,
    speed,
    tools,
    toolChoice,
    parallelToolCalls,
    temperature: null,
    outputTokensMax,
    truncation,
  };
}

export const createsResponse = (settings: SessionSettings): boolean =>
  settings.type === "realtime" && settings.turnDetection.type !== "none" && settings.turnDetection.createResponse;

export const interruptsResponse = (settings: SessionSettings): boolean =>
  settings.turnDetection.type !== "none" && settings.turnDetection.interruptResponse;
