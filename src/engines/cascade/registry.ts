/** From names to loaded stages. Everything is loaded at once, and warm when it is here. */
import { loadLlm } from "./llm/choice.ts";
import type { RecognizerKind, VoiceKind } from "./sherpa.ts";
import type { CascadeStageOptions } from "./stage-options.ts";
import type { Stages } from "./stages.ts";
import { OpenAiStt } from "./stt/openai-stt.ts";
import { SherpaStt } from "./stt/sherpa-stt.ts";
import type { Stt } from "./stt/stt.ts";
import { FliteTts } from "./tts/flite.ts";
import { OpenAiTts } from "./tts/openai-tts.ts";
import { SherpaTts } from "./tts/sherpa-tts.ts";
import type { Tts } from "./tts/tts.ts";
import { SmartTurn } from "./turn/smart-turn.ts";
import type { TurnModel } from "./turn/turn.ts";
import { EnergyVad } from "./vad/energy.ts";
import { SileroVad } from "./vad/silero.ts";
import type { Vad } from "./vad/vad.ts";

const STT_MODELS: Readonly<Record<RecognizerKind, string>> = {
  moonshine: "moonshine-tiny-en",
  "parakeet-tdt": "parakeet-tdt-v2",
  whisper: "whisper-turbo",
  paraformer: "paraformer",
};
const VOICE_MODELS: Readonly<Record<Exclude<CascadeStageOptions["tts"], "openai" | "flite">, string>> = {
  piper: "piper-joe",
  kokoro: "kokoro",
};
/** Kokoro v0.19's eleven voices, by speaker number. */
const KOKORO_VOICES = [
  "af",
  "af_bella",
  "af_nicole",
  "af_sarah",
  "af_sky",
  "am_adam",
  "am_michael",
  "bf_emma",
  "bf_isabella",
  "bm_george",
  "bm_lewis",
];

/** @throws {AppError} of the first stage that does not load; what was loaded is ended again. */
export async function loadStages(options: CascadeStageOptions): Promise<Stages> {
  const loading = [loadVad(options), loadTurn(options), loadStt(options), loadLlm(options), loadTts(options)] as const;
  const results = await Promise.allSettled(loading);
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) {
    const [vad, turn, stt, llm, tts] = await Promise.all(loading);
    return { vad, turn, stt, llm, tts };
  }
  await Promise.all(
    results.map((result) => (result.status === "fulfilled" ? result.value[Symbol.asyncDispose]() : undefined)),
  );
  throw failed.reason;
}

async function loadVad({ vad, store, log, ...options }: CascadeStageOptions): Promise<Vad> {
  if (vad === "energy") return new EnergyVad();
  const files = await store.ensure("silero-vad", options);
  return SileroVad.load(files.file("model"), log);
}

async function loadTurn({ store, log, ...options }: CascadeStageOptions): Promise<TurnModel> {
  const files = await store.ensure("smart-turn", options);
  return SmartTurn.load(files.file("model"), log);
}

async function loadStt(options: CascadeStageOptions): Promise<Stt> {
  const { stt, sttModel, sttBaseUrl, sttApiKey, threads, log } = options;
  if (stt === "openai")
    return new OpenAiStt({ model: sttModel, baseUrl: sttBaseUrl, apiKey: sttApiKey, ...service(options) });
  const roles = await rolesOf(options, sttModel ?? STT_MODELS[stt]);
  return SherpaStt.load({ kind: stt, roles, threads: shared(threads) }, log);
}

async function loadTts(options: CascadeStageOptions): Promise<Tts> {
  const { tts, ttsModel, ttsBaseUrl, ttsApiKey, threads, log } = options;
  if (tts === "openai")
    return new OpenAiTts({ model: ttsModel, baseUrl: ttsBaseUrl, apiKey: ttsApiKey, ...service(options) });
  if (tts === "flite") {
    const { model } = await rolesOf(options, "flite");
    return FliteTts.load(model ?? "", log);
  }
  const model = ttsModel ?? VOICE_MODELS[tts];
  const roles = await rolesOf(options, model);
  const kind: VoiceKind = tts === "kokoro" && model.startsWith("kitten") ? "kitten" : tts;
  const names = kind === "piper" ? [model.replace(/^piper-/, "")] : kind === "kokoro" ? KOKORO_VOICES : [];
  return SherpaTts.load({ kind, roles, threads, names }, log);
}

/**
 * Threads of a model that works while others do. Its threads wait for each other by spinning: one for every core, on
 * cores that are not all free, is many times slower than one fewer.
 */
const shared = (threads: number): number => Math.max(1, threads - 1);

const service = ({ fetch }: CascadeStageOptions): { fetch?: typeof globalThis.fetch } =>
  fetch === undefined ? {} : { fetch };

async function rolesOf({ store, ...options }: CascadeStageOptions, name: string): Promise<Record<string, string>> {
  const files = await store.ensure(name, options);
  return Object.fromEntries(Object.keys(store.model(name).roles).map((role) => [role, files.file(role)]));
}
