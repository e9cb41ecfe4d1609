/**
 * One recording in, one answer out: everything is encoded at once, the timeline runs over the prompt and all frames, and the
 * codec decodes what was said. docs/voicechat-model.md, section 1.
 */
import { logMel } from "../../audio/mel.ts";
import { allFinite, concatPcm } from "../../audio/pcm.ts";
import { ClientError } from "../../errors.ts";
import { EXTRA_SECONDS_MAX, RECORDING_SECONDS_MAX } from "./limits.ts";
import type { VoiceChatModel } from "./model.ts";
import { type RnntState, symbolsText } from "./networks/rnnt.ts";
import { Timeline, type TimelineFrame } from "./timeline.ts";

export interface OfflineOptions {
  /** Mono, at the model's input rate. */
  readonly samples: Float32Array;
  /** The checkpoint's own where null, which is none as a rule. */
  readonly systemPrompt?: string | null;
  /** Silence after the recording, in which the answer is given. */
  readonly extraDecodingSeconds?: number;
  readonly seed?: number;
  /** Frames of audio to run at most, 2 or more. */
  readonly framesMax?: number | null;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: OfflineProgress) => void) | undefined;
}

/** Positions of the timeline, the prompt's among them. */
export interface OfflineProgress {
  readonly done: number;
  readonly total: number;
}

export interface OfflineResult {
  readonly text: string;
  readonly functionText: string;
  readonly userTranscript: string;
  /** Per frame. */
  readonly textIds: readonly number[];
  readonly functionIds: readonly number[];
  /** i32 [frames, Q], as the codec has them. */
  readonly audioCodes: Int32Array;
  readonly samples: Float32Array;
  readonly hz: number;
  /** What each stage took, all frames together. */
  readonly stageMs: Readonly<Record<OfflineStage, number>>;
}

export type OfflineStage = "perception" | "rnnt" | "language" | "speech" | "codec";

const FRAMES_MIN = 2;
/** Frames of codes that are decoded at once: bounds memory. */
const DECODED_FRAMES = 16;

/**
 * @throws {ClientError} invalid_value for what cannot be run, {EngineError} when a network fails, and the signal's reason.
 */
export async function generateOffline(model: VoiceChatModel, options: OfflineOptions): Promise<OfflineResult> {
  const { config, tokenizer, speech } = model;
  const { signal, onProgress, seed = 0 } = options;
  const samples = checkedSamples(options, config.inputSampleRate);
  const promptIds = tokenizer.promptIds(options.systemPrompt ?? config.defaultSystemPrompt);
  const stageMs = { perception: 0, rnnt: 0, language: 0, speech: 0, codec: 0 };

  const heardMs = performance.now();
  const { frames, encoded, projected } = await hear(model, samples, options.framesMax ?? null);
  stageMs.perception = performance.now() - heardMs;

  const total = promptIds.length + frames;
  const onPromptPosition = (done: number): void => onProgress?.({ done, total });
  const timeline = await Timeline.begin(
    { config, language: model.language, speech },
    { promptIds, seed, signal, onPromptPosition },
  );
  const said: TimelineFrame[] = [];
  const audioCodes = new Int32Array(frames * config.ttsConfig.numQuantizers);
  const width = config.audioConfig.outputDim;
  for (let frame = 0; frame < frames; frame++) {
    signal?.throwIfAborted();
    const step = await timeline.step(projected.subarray(frame * width, (frame + 1) * width));
    said.push(step);
    // The first position of all has no codes; the reference decodes zeros there.
    const codes = step.codes ?? new Int32Array(config.ttsConfig.numQuantizers);
    audioCodes.set(speech.audible(codes), frame * codes.length);
    stageMs.language += step.languageMs;
    stageMs.speech += step.speechMs;
    onProgress?.({ done: promptIds.length + frame + 1, total });
  }

  const transcribedMs = performance.now();
  const userTranscript = await transcribe(model, encoded, frames, signal);
  stageMs.rnnt = performance.now() - transcribedMs;
  const decodedMs = performance.now();
  const answer = await decode(model, audioCodes, signal);
  stageMs.codec = performance.now() - decodedMs;
  const textIds = said.map((step) => step.textId);
  const functionIds = said.map((step) => step.functionId);
  return {
    text: tokenizer.text(textIds),
    functionText: tokenizer.text(functionIds),
    userTranscript,
    textIds,
    functionIds,
    audioCodes,
    samples: answer,
    hz: config.outputSampleRate,
    stageMs,
  };
}

/** The recording with the silence after it. @throws {ClientError} for any option that cannot be. */
function checkedSamples(options: OfflineOptions, hz: number): Float32Array {
  const { samples, extraDecodingSeconds = 0, framesMax = null, seed = 0 } = options;
  const refuse = (message: string, field: string): never => {
    throw new ClientError("invalid_value", message, field);
  };
  if (samples.length > RECORDING_SECONDS_MAX * hz) {
    refuse(`the recording has ${(samples.length / hz).toFixed(0)} s; ${RECORDING_SECONDS_MAX} s is the limit`, "audio");
  }
  if (!allFinite(samples)) refuse("the recording has samples that are not numbers", "audio");
  if (!(extraDecodingSeconds >= 0 && extraDecodingSeconds <= EXTRA_SECONDS_MAX)) {
    refuse(
      `expected 0 to ${EXTRA_SECONDS_MAX} s of extra decoding, got ${extraDecodingSeconds}`,
      "extra_decoding_seconds",
    );
  }
  if (framesMax !== null && !(Number.isInteger(framesMax) && framesMax >= FRAMES_MIN)) {
    refuse(`expected at least ${FRAMES_MIN} frames, got ${framesMax}`, "max_frames");
  }
  if (!(Number.isSafeInteger(seed) && seed >= 0))
    refuse(`the seed must be a non-negative integer, got ${seed}`, "seed");
  const silence = roundHalfEven(extraDecodingSeconds * hz);
  if (samples.length + silence === 0) refuse("the recording is empty, and no silence is added", "audio");
  return concatPcm([samples, new Float32Array(silence)]);
}

/** As Python rounds: halves go to the even neighbour. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  return value - floor === 0.5 ? floor + (floor % 2) : Math.round(value);
}

interface Heard {
  readonly frames: number;
  /** [frames, D] */
  readonly encoded: Float32Array;
  /** [frames, outputDim] */
  readonly projected: Float32Array;
}

async function hear(model: VoiceChatModel, samples: Float32Array, framesMax: number | null): Promise<Heard> {
  const all = await model.conformer.encode(logMel(samples, model.melSettings));
  return { ...all, frames: Math.min(all.frames, framesMax ?? all.frames) };
}

async function transcribe(
  model: VoiceChatModel,
  encoded: Float32Array,
  frames: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { rnntVocabulary, audioConfig } = model.config;
  if (rnntVocabulary.length === 0) return "";
  const width = audioConfig.encoder.dModel;
  const symbols: number[] = [];
  let state: RnntState = await model.rnnt.initialState();
  for (let frame = 0; frame < frames; frame++) {
    signal?.throwIfAborted();
    const step = await model.rnnt.step(state, encoded.subarray(frame * width, (frame + 1) * width));
    state = step.state;
    symbols.push(...step.symbols);
  }
  return symbolsText(symbols, rnntVocabulary).trim();
}

/** All samples of codes i32 [T, Q]. */
async function decode(
  model: VoiceChatModel,
  codes: Int32Array,
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  const stream = model.codec.stream("offline");
  const stride = DECODED_FRAMES * model.config.codecConfig.numQuantizers;
  const parts: Float32Array[] = [];
  for (let at = 0; at < codes.length; at += stride) {
    signal?.throwIfAborted();
    parts.push(await stream.push(codes.slice(at, at + stride)));
  }
  return concatPcm([...parts, stream.finish()]);
}
