/** A checkpoint, loaded: every network of VoiceChat, shared by all sessions. */
import type { MelSettings } from "../../audio/mel.ts";
import { Checkpoint } from "../../checkpoint/checkpoint.ts";
import { Weights } from "../../checkpoint/weights.ts";
import type { Precision } from "../../onnx/quantized.ts";
import { type Provider, Runtime } from "../../onnx/runtime.ts";
import type { AudioConfig, VoiceChatConfig } from "./config.ts";
import { readConfig } from "./config-schema.ts";
import { LanguageModel } from "./language.ts";
import { Codec, type CodecModels, codecModels } from "./networks/codec.ts";
import { Conformer, conformerModels } from "./networks/conformer.ts";
import { type LanguageModels, languageModels } from "./networks/nemotron-h.ts";
import { Rnnt, type RnntModels, rnntModels } from "./networks/rnnt.ts";
import { Speech, type SpeechModels, speechModels } from "./speech.ts";
import { VoiceChatTokenizer } from "./tokenizer.ts";

export interface ModelOptions {
  readonly provider?: Provider;
  /** Threads within one run; the machine's cores by default. */
  readonly threads?: number;
  /** How quantized matrices are multiplied; `exact` by default. */
  readonly precision?: Precision;
  /** Called after each run of a graph, with its name and what the run took. */
  readonly onRun?: ((graph: string, ms: number) => void) | undefined;
  /** Called before each part is loaded. */
  readonly onPart?: ((part: string, done: number, total: number) => void) | undefined;
}

interface Networks {
  readonly conformer: Conformer;
  readonly rnnt: Rnnt;
  readonly language: LanguageModel;
  readonly codec: Codec;
  readonly speech: Speech;
}

/** Owns the checkpoint's open files and all native memory, until `close`. */
export class VoiceChatModel {
  readonly config: VoiceChatConfig;
  readonly tokenizer: VoiceChatTokenizer;
  readonly conformer: Conformer;
  readonly rnnt: Rnnt;
  readonly language: LanguageModel;
  readonly codec: Codec;
  readonly speech: Speech;
  readonly #checkpoint: Checkpoint;
  #closing: Promise<void> | null = null;

  private constructor(
    config: VoiceChatConfig,
    tokenizer: VoiceChatTokenizer,
    networks: Networks,
    checkpoint: Checkpoint,
  ) {
    this.config = config;
    this.tokenizer = tokenizer;
    this.conformer = networks.conformer;
    this.rnnt = networks.rnnt;
    this.language = networks.language;
    this.codec = networks.codec;
    this.speech = networks.speech;
    this.#checkpoint = checkpoint;
  }

  /**
   * Checks everything before it loads anything: configuration, tokenizer, the name and shape of every tensor.
   * @throws {CheckpointError} when the directory is not a checkpoint that this runs; {EngineError} when the runtime fails.
   */
  static async load(directory: string, options: ModelOptions = {}): Promise<VoiceChatModel> {
    const checkpoint = Checkpoint.open(directory);
    try {
      const config = readConfig(directory);
      const tokenizer = VoiceChatTokenizer.load(directory, config);
      const declared = declare(config, checkpoint, precisionOn(options));
      const networks = await loadNetworks(new Runtime(options), config, declared, tokenizer, options.onPart);
      return new VoiceChatModel(config, tokenizer, networks, checkpoint);
    } catch (error) {
      checkpoint.close();
      throw error;
    }
  }

  /** Samples of one frame going in. */
  get inputFrameSamples(): number {
    return Math.round(this.config.inputSampleRate * this.config.frameDuration);
  }

  get melSettings(): MelSettings {
    return melSettings(this.config.audioConfig);
  }

  /** Idempotent. Streams that are still open fail from here on. */
  close(): Promise<void> {
    this.#closing ??= this.#release();
    return this.#closing;
  }
  async #release(): Promise<void> {
    for (const network of [this.conformer, this.rnnt, this.language, this.codec, this.speech]) await network.close();
    this.#checkpoint.close();
  }
}

/** A GPU has a kernel for float activations, which is exact as it is; its int8 kernel rounds in groups of its own. */
function precisionOn({ provider = "cpu", precision = "exact" }: ModelOptions): Precision {
  return provider !== "cpu" && precision === "exact" ? "float" : precision;
}

interface Declared {
  readonly conformer: ReturnType<typeof conformerModels>;
  readonly rnnt: RnntModels;
  readonly language: LanguageModels;
  readonly codec: CodecModels;
  readonly speech: SpeechModels;
}

/**
 * All graphs, with every tensor accounted for.
 * @throws {CheckpointError} with every tensor that does not fit.
 */
function declare(config: VoiceChatConfig, checkpoint: Checkpoint, precision: Precision): Declared {
  const weights = Weights.of(checkpoint);
  let declared: Declared;
  try {
    declared = declareNetworks(config, weights, precision);
  } catch (error) {
    // Sizes that no tensor has may end in a graph that cannot be: the tensors say why.
    weights.finishEarly();
    throw error;
  }
  weights.finish();
  return declared;
}

function declareNetworks(config: VoiceChatConfig, weights: Weights, precision: Precision): Declared {
  const stt = weights.at("stt_model");
  const tts = weights.at("tts_model");
  // The mel filters are computed.
  stt.ignore("perception.preprocessor.");
  return {
    conformer: conformerModels(config.audioConfig, stt.at("perception")),
    rnnt: rnntModels(config.audioConfig, stt),
    language: languageModels(config.textConfig, stt, precision),
    codec: codecModels(config.codecConfig, tts.at("audio_codec")),
    speech: speechModels(config, tts),
  };
}

async function loadNetworks(
  runtime: Runtime,
  config: VoiceChatConfig,
  declared: Declared,
  tokenizer: VoiceChatTokenizer,
  onPart: ModelOptions["onPart"],
): Promise<Networks> {
  const { audioConfig, textConfig, codecConfig, rnntBlankId } = config;
  const parts = ["encoder", "transcriber", "language model", "codec", "voice"];
  const begin = (part: number): void => onPart?.(parts[part] as string, part, parts.length);
  begin(0);
  const conformer = await Conformer.load(runtime, audioConfig, declared.conformer);
  begin(1);
  const rnnt = await Rnnt.load(runtime, audioConfig, rnntBlankId, declared.rnnt);
  begin(2);
  const language = await LanguageModel.load(runtime, textConfig, declared.language);
  begin(3);
  const codec = await Codec.load(runtime, codecConfig, declared.codec.decoder);
  begin(4);
  const speech = await Speech.load(runtime, config, declared.speech, declared.codec, tokenizer.vocabulary);
  return { conformer, rnnt, language, codec, speech };
}

function melSettings({ preprocessor }: AudioConfig): MelSettings {
  const { sampleRate, nFft, windowSize, windowStride, features, preemph, logZeroGuardValue } = preprocessor;
  return {
    hz: sampleRate,
    fftSamples: nFft,
    // Python truncates here.
    windowSamples: Math.trunc(windowSize * sampleRate),
    hopSamples: Math.trunc(windowStride * sampleRate),
    bins: features,
    preemphasis: preemph,
    guard: logZeroGuardValue,
  };
}
