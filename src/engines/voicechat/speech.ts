/**
 * The voice: EAR-TTS from text tokens to frames of codes. Warmed once with the recorded voice, from where every session
 * starts with a copy. docs/voicechat-model.md, sections 6 to 8.
 */
import type { Weights } from "../../checkpoint/weights.ts";
import type { Runtime } from "../../onnx/runtime.ts";
import type { RandomGenerator } from "../../util/rng.ts";
import type { VoiceChatConfig } from "./config.ts";
import { type CodecModels, encodeOnce, frameSamplesOf } from "./networks/codec.ts";
import { MixtureHead, type MixtureModels, mixtureModels } from "./networks/mog-head.ts";
import {
  type BackboneModels,
  type BackboneState,
  backboneModels,
  copyBackboneState,
  SpeechBackbone,
} from "./networks/speech-backbone.ts";
import { SubwordEncoder, type SubwordModels, subwordModels } from "./networks/subword-encoder.ts";

/** All that EAR-TTS takes from the checkpoint. Q codebooks, D the width, F positions of the voice prompt. */
export interface SpeechModels {
  readonly subword: SubwordModels;
  readonly backbone: BackboneModels;
  readonly mixture: MixtureModels;
  /** The voice, [F, D]. */
  readonly latents: Float32Array;
  /** [D], added where the prompt ends. */
  readonly beginning: Float32Array;
  /** The code of silence of each codebook, [Q]. */
  readonly silenceCodes: Int32Array;
  /** Codes that have a meaning of their own in the model and none in the codec. */
  readonly controlCodes: ReadonlySet<number>;
}

/** `weights` is the scope `tts_model`. */
export function speechModels(config: VoiceChatConfig, weights: Weights): SpeechModels {
  const { ttsConfig } = config;
  const tts = weights.at("tts_model");
  // Projects codes where the prompt has no latents; this voice has them.
  tts.ignore("audio_prompt_projection_W");
  return {
    subword: subwordModels(ttsConfig, tts.at("embed_subword")),
    backbone: backboneModels(ttsConfig, tts),
    mixture: mixtureModels(ttsConfig, tts),
    latents: weights.floats("audio_prompt_latents.Aria", [1, null, ttsConfig.hiddenSize]),
    beginning: tts.floats("bos_emb", [ttsConfig.hiddenSize]),
    silenceCodes: weights.integers("codec_silence_tokens", [ttsConfig.numQuantizers]),
    controlCodes: new Set(weights.integers("_control_codes", [null])),
  };
}

/** What one session's speech remembers. Owned and written by `Speech`. */
export interface SpeechState {
  readonly backbone: BackboneState;
  readonly generator: RandomGenerator;
  /** i32 [Q], fed back. */
  codes: Int32Array;
}

/** The loaded voice. Shared by all sessions; each brings its own state. */
export class Speech {
  readonly #config: VoiceChatConfig;
  readonly #models: SpeechModels;
  readonly #subword: SubwordEncoder;
  readonly #backbone: SpeechBackbone;
  readonly #mixture: MixtureHead;
  /** After the voice prompt, and before the first frame. */
  readonly #warm: BackboneState;

  private constructor(
    config: VoiceChatConfig,
    models: SpeechModels,
    subword: SubwordEncoder,
    backbone: SpeechBackbone,
    mixture: MixtureHead,
  ) {
    this.#config = config;
    this.#models = models;
    this.#subword = subword;
    this.#backbone = backbone;
    this.#mixture = mixture;
    this.#warm = backbone.initialState();
  }

  /** Loads the graphs and hears the voice prompt. The codec's encoder is loaded for the prompt only. */
  static async load(
    runtime: Runtime,
    config: VoiceChatConfig,
    models: SpeechModels,
    codec: CodecModels,
    vocabulary: ReadonlyMap<string, number>,
  ): Promise<Speech> {
    const { ttsConfig } = config;
    const subword = await SubwordEncoder.load(runtime, ttsConfig, models.subword, vocabulary);
    const backbone = await SpeechBackbone.load(runtime, ttsConfig, models.backbone);
    const mixture = await MixtureHead.load(runtime, ttsConfig, models.mixture);
    const speech = new Speech(config, models, subword, backbone, mixture);
    await speech.warmUp(speech.#warm, await promptCodes(runtime, config, models, codec));
    return speech;
  }

  /** A session's state: it speaks next. */
  initialState(generator: RandomGenerator): SpeechState {
    return { backbone: copyBackboneState(this.#warm), generator, codes: maskCodes(this.#config) };
  }

  /** One frame: what is said at this position, for its text token. The codes i32 [Q] are the state's own. */
  async step(state: SpeechState, textId: number): Promise<Int32Array> {
    // The end of an utterance cuts the thread: the next frame continues silence.
    if (textId === this.#config.eosTokenId) state.codes = this.#models.silenceCodes;
    const audio = await this.#backbone.embedCodes(state.codes);
    const hidden = await this.#backbone.step(state.backbone, audio, await this.#subword.embed(textId));
    state.codes = await this.#mixture.sample(hidden, state.generator);
    return state.codes;
  }

  /** Codes as the codec is to have them: those without a sound become silence. A new array. */
  audible(codes: Int32Array): Int32Array {
    const { controlCodes, silenceCodes } = this.#models;
    return codes.map((code, index) => (controlCodes.has(code) ? silenceCodes[index % silenceCodes.length]! : code));
  }

  get silenceCodes(): Int32Array {
    return this.#models.silenceCodes;
  }

  /**
   * The voice prompt: the latents stand for the codes, up to the last position, which begins the speech. The text channel
   * holds PAD, spelled out at the last two positions only. Gives the hidden rows [2, D] of every position.
   */
  async warmUp(state: BackboneState, codes: Int32Array): Promise<Float32Array[]> {
    const { latents, beginning } = this.#models;
    const { hiddenSize, numQuantizers } = this.#config.ttsConfig;
    const positions = latents.length / hiddenSize;
    const padId = this.#config.padTokenId;
    const hidden: Float32Array[] = [];
    for (let position = 0; position < positions; position++) {
      const text = position < positions - 2 ? this.#subword.unspelled(padId) : await this.#subword.embed(padId);
      let audio = latents.subarray(position * hiddenSize, (position + 1) * hiddenSize);
      if (position === positions - 1) {
        const before = codes.slice((position - 1) * numQuantizers, position * numQuantizers);
        const embedded = await this.#backbone.embedCodes(before);
        audio = embedded.map((value, index) => value + beginning[index]!);
      }
      hidden.push((await this.#backbone.step(state, audio, text)).data);
    }
    return hidden;
  }

  async close(): Promise<void> {
    await this.#subword.close();
    await this.#backbone.close();
    await this.#mixture.close();
  }
}

/** Codes that add nothing: nothing was said yet. */
const maskCodes = ({ ttsConfig }: VoiceChatConfig): Int32Array =>
  new Int32Array(ttsConfig.numQuantizers).fill(ttsConfig.codebookSize);

/** i32 [F, Q]: silence as the codec hears it, with mask codes at both ends. */
export async function promptCodes(
  runtime: Runtime,
  config: VoiceChatConfig,
  models: SpeechModels,
  codec: CodecModels,
): Promise<Int32Array> {
  const { hiddenSize, numQuantizers } = config.ttsConfig;
  const positions = models.latents.length / hiddenSize;
  const silence = new Float32Array((positions + 1) * frameSamplesOf(config.codecConfig));
  const { codes } = await encodeOnce(runtime, config.codecConfig, codec.encoder, silence);
  const prompt = codes.slice(0, positions * numQuantizers);
  prompt.set(maskCodes(config), 0);
  prompt.set(maskCodes(config), (positions - 1) * numQuantizers);
  return prompt;
}
