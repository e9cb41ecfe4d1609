/**
 * What the numbers of a config.json owe each other. A sum that does not come out here would come out later as an ill-typed
 * graph, or not at all. docs/voicechat-model.md has the numbers themselves.
 */
import type { AudioConfig, CodecConfig, TextConfig, TtsConfig, VoiceChatConfig } from "./config.ts";

/** What holds, and the words for where it does not. */
type Rule = readonly [holds: boolean, otherwise: string];

/** Mel frames of one encoder frame: the subsampling. */
const MEL_FRAMES = 8;

/** The first rule that is broken, with its values; null where all hold. */
export function brokenRule(config: VoiceChatConfig): string | null {
  const { textConfig, audioConfig, ttsConfig, codecConfig } = config;
  const rules = [
    ...textRules(textConfig),
    ...audioRules(audioConfig),
    ...ttsRules(ttsConfig),
    ...codecRules(codecConfig),
    ...betweenRules(config),
  ];
  return rules.find(([holds]) => !holds)?.[1] ?? null;
}

const divides = (part: number, whole: number): boolean => whole % part === 0;

function textRules(text: TextConfig): Rule[] {
  const { hiddenSize, numAttentionHeads: heads, numKeyValueHeads: shared, mambaNumHeads, nGroups } = text;
  const [low, high] = text.timeStepLimit;
  return [
    [text.layers.length > 0, "text_config.hybrid_override_pattern names no layer"],
    [
      Number.isInteger(text.headDim),
      `text_config: hidden_size ${hiddenSize} does not divide by num_attention_heads ${heads}`,
    ],
    [divides(shared, heads), `text_config: ${heads} attention heads do not divide by ${shared} key-value heads`],
    [divides(nGroups, mambaNumHeads), `text_config: ${mambaNumHeads} mamba heads do not divide by n_groups ${nGroups}`],
    [text.convKernel >= 2, `text_config.conv_kernel is ${text.convKernel}, expected 2 or more`],
    [low <= high, `text_config.time_step_limit runs from ${low} to ${high}`],
  ];
}

function audioRules({ preprocessor, encoder, decoder, joint }: AudioConfig): Rule[] {
  const { sampleRate, windowSize, windowStride, nFft, features } = preprocessor;
  return [
    [
      Math.trunc(windowStride * sampleRate) >= 1,
      `audio_config: a window_stride of ${windowStride} s is no sample at ${sampleRate} Hz`,
    ],
    [
      Math.trunc(windowSize * sampleRate) >= 1 && Math.trunc(windowSize * sampleRate) <= nFft,
      `audio_config: a window_size of ${windowSize} s at ${sampleRate} Hz does not fit n_fft ${nFft}`,
    ],
    [divides(2, nFft), `audio_config: n_fft ${nFft} is odd`],
    [encoder.featIn === features, `audio_config: feat_in ${encoder.featIn} differs from features ${features}`],
    [
      divides(encoder.nHeads, encoder.dModel) && divides(2, encoder.dModel),
      `audio_config: d_model ${encoder.dModel} does not divide by n_heads ${encoder.nHeads}, or by 2`,
    ],
    [encoder.convKernelSize >= 2, `audio_config: conv_kernel_size is ${encoder.convKernelSize}, expected 2 or more`],
    [
      joint.encoderHidden === encoder.dModel && joint.predHidden === decoder.predHidden,
      `audio_config.joint joins ${joint.encoderHidden} and ${joint.predHidden} numbers; the encoder gives ${encoder.dModel}, the decoder ${decoder.predHidden}`,
    ],
    [
      joint.numClasses === decoder.vocabSize,
      `audio_config: joint.num_classes ${joint.numClasses} differs from decoder.vocab_size ${decoder.vocabSize}`,
    ],
  ];
}

function ttsRules(tts: TtsConfig): Rule[] {
  const { characterEncoder: character } = tts;
  const headRules = (at: string, config: TtsConfig | typeof character): Rule[] => [
    [
      divides(config.numKeyValueHeads, config.numAttentionHeads),
      `${at}: ${config.numAttentionHeads} attention heads do not divide by ${config.numKeyValueHeads} key-value heads`,
    ],
    [divides(2, config.headDim), `${at}: head_dim ${config.headDim} is odd`],
  ];
  return [
    ...headRules("tts_config", tts),
    ...headRules("tts_config.character_encoder", character),
    [tts.topP <= 1, `tts_config.top_p is ${tts.topP}, expected 0 to 1`],
  ];
}

function codecRules(codec: CodecConfig): Rule[] {
  const { channelMultipliers, downsampleRates, nFft, hopLength } = codec;
  return [
    [
      channelMultipliers.length === downsampleRates.length && downsampleRates.length > 0,
      `codec_config has ${channelMultipliers.length} channel_multipliers and ${downsampleRates.length} downsample_rates`,
    ],
    [
      divides(2, nFft) && nFft > hopLength,
      `codec_config: n_fft ${nFft} is odd, or not larger than hop_length ${hopLength}`,
    ],
  ];
}

/** Where one network's numbers meet another's. */
function betweenRules(config: VoiceChatConfig): Rule[] {
  const { textConfig: text, audioConfig: audio, ttsConfig: tts, codecConfig: codec, frameDuration } = config;
  const { sampleRate, windowStride } = audio.preprocessor;
  const heard = MEL_FRAMES * Math.trunc(windowStride * sampleRate);
  const spoken = codec.downsampleRates.reduce((product, rate) => product * rate, codec.hopLength);
  const ids = {
    bos: config.bosTokenId,
    eos: config.eosTokenId,
    pad: config.padTokenId,
    silence: config.silenceTokenId,
  };
  const strange = Object.entries(ids).find(([, id]) => id >= text.vocabSize);
  return [
    [
      audio.outputDim === text.hiddenSize,
      `audio_config.output_dim ${audio.outputDim} differs from text_config.hidden_size ${text.hiddenSize}`,
    ],
    [
      sampleRate === config.inputSampleRate,
      `audio_config hears ${sampleRate} Hz, and input_sample_rate is ${config.inputSampleRate}`,
    ],
    [
      codec.sampleRate === config.outputSampleRate,
      `codec_config speaks ${codec.sampleRate} Hz, and output_sample_rate is ${config.outputSampleRate}`,
    ],
    [
      heard === Math.round(frameDuration * sampleRate) && spoken === Math.round(frameDuration * codec.sampleRate),
      `frame_duration is ${frameDuration} s; the encoder hears ${heard} samples of ${sampleRate} Hz a frame, the codec speaks ${spoken} of ${codec.sampleRate} Hz`,
    ],
    [
      tts.latentSize === codec.latentDim && tts.codebookSize === codec.codebookSize,
      `tts_config and codec_config differ in their codebooks: ${tts.codebookSize} of ${tts.latentSize}, ${codec.codebookSize} of ${codec.latentDim}`,
    ],
    [strange === undefined, `${strange?.[0]}_token_id is ${strange?.[1]}, and vocab_size ${text.vocabSize}`],
    [
      config.rnntBlankId === audio.joint.numClasses,
      `rnnt_blank_id is ${config.rnntBlankId}; the blank comes after the ${audio.joint.numClasses} classes`,
    ],
  ];
}
