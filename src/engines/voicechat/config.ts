/**
 * config.json of a Nemotron VoiceChat checkpoint, in our spelling; config-schema.ts reads it. Sizes are counts of elements unless a comment says
 * otherwise.
 */
export interface PreprocessorConfig {
  readonly sampleRate: number;
  readonly features: number;
  readonly nFft: number;
  /** Seconds. */
  readonly windowSize: number;
  /** Seconds. */
  readonly windowStride: number;
  readonly preemph: number;
  readonly logZeroGuardValue: number;
}

export interface EncoderConfig {
  readonly featIn: number;
  readonly nLayers: number;
  readonly dModel: number;
  readonly nHeads: number;
  readonly ffExpansionFactor: number;
  readonly subsamplingFactor: number;
  readonly subsamplingConvChannels: number;
  readonly convKernelSize: number;
  readonly useBias: boolean;
  /** Frames that attention sees before the current one. */
  readonly leftFrames: number;
}

export interface PredictionConfig {
  readonly predHidden: number;
  readonly predRnnLayers: number;
  readonly vocabSize: number;
  readonly blankAsPad: boolean;
}

export interface JointConfig {
  readonly jointHidden: number;
  readonly activation: "relu" | "sigmoid" | "tanh";
  readonly encoderHidden: number;
  readonly predHidden: number;
  readonly numClasses: number;
}

export interface AudioConfig {
  readonly preprocessor: PreprocessorConfig;
  readonly encoder: EncoderConfig;
  readonly decoder: PredictionConfig;
  readonly joint: JointConfig;
  readonly outputDim: number;
  /** Most symbols that one frame may emit. */
  readonly maxSymbols: number;
}

/** M: Mamba2, *: attention, -: MLP. */
export type LayerKind = "M" | "*" | "-";

export interface TextConfig {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numAttentionHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly attentionBias: boolean;
  readonly mambaNumHeads: number;
  readonly mambaHeadDim: number;
  readonly mambaProjBias: boolean;
  readonly ssmStateSize: number;
  readonly convKernel: number;
  readonly nGroups: number;
  readonly useConvBias: boolean;
  readonly mlpBias: boolean;
  readonly layerNormEpsilon: number;
  readonly timeStepLimit: readonly [number, number];
  readonly layers: readonly LayerKind[];
}

export interface CharacterEncoderConfig {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numHiddenLayers: number;
  readonly numAttentionHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  readonly rmsNormEps: number;
  readonly queryPreAttnScalar: number;
  readonly attnLogitSoftcapping: number;
  readonly ropeBase: number;
  readonly charVocabSize: number;
}

export interface MogConfig {
  readonly intermediateSize: number;
  readonly lowRank: number;
  readonly minLogStd: number;
  readonly numLayers: number;
  readonly numPredictions: number;
  readonly eps: number;
}

export interface TtsConfig {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numHiddenLayers: number;
  readonly numAttentionHeads: number;
  readonly numKeyValueHeads: number;
  readonly headDim: number;
  /** Positions that a sliding layer sees. */
  readonly slidingWindow: number;
  readonly slidingWindowPattern: number;
  readonly rmsNormEps: number;
  readonly queryPreAttnScalar: number;
  readonly ropeGlobalBaseFreq: number;
  readonly ropeLocalBaseFreq: number;
  readonly latentSize: number;
  readonly numQuantizers: number;
  readonly codebookSize: number;
  readonly numIterations: number;
  readonly guidanceScale: number;
  readonly topP: number;
  readonly noiseScale: number;
  readonly exponent: number;
  readonly characterEncoder: CharacterEncoderConfig;
  readonly mogHead: MogConfig;
}

export interface CodecConfig {
  readonly sampleRate: number;
  readonly baseChannels: number;
  readonly channelMultipliers: readonly number[];
  readonly downsampleRates: readonly number[];
  readonly blocksPerStage: number;
  readonly blockKernelSize: number;
  readonly latentDim: number;
  readonly nFft: number;
  readonly hopLength: number;
  readonly numQuantizers: number;
  readonly codebookSize: number;
}

export interface VoiceChatConfig {
  readonly textConfig: TextConfig;
  readonly audioConfig: AudioConfig;
  readonly ttsConfig: TtsConfig;
  readonly codecConfig: CodecConfig;
  readonly bosTokenId: number;
  readonly eosTokenId: number;
  readonly padTokenId: number;
  readonly silenceTokenId: number;
  readonly rnntBlankId: number;
  readonly inputSampleRate: number;
  readonly outputSampleRate: number;
  /** Seconds. */
  readonly frameDuration: number;
  readonly functionChannelWeight: number;
  readonly defaultSystemPrompt: string;
  readonly rnntVocabulary: readonly string[];
  readonly speaker: string;
}
