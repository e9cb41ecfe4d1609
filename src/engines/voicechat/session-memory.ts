/** What a live session gathers, from a checkpoint's dimensions. */
import type { TextConfig, TtsConfig, VoiceChatConfig } from "./config.ts";
import { PENDING } from "./networks/nemotron-h.ts";

const FLOAT_BYTES = 4;
/** With guidance everything is spoken twice, side by side. */
const GUIDED = 2;

/**
 * Bytes of a session's state after so many seconds. The attention caches of the language model and of the voice have a
 * row for every position that they see; all else has its size from the first frame. What runs meanwhile, and the
 * unfilled rows by which caches grow, are not counted.
 */
export function sessionBytes(config: VoiceChatConfig, seconds: number): number {
  const positions = Math.ceil(seconds / config.frameDuration);
  const floats = languageFloats(config.textConfig, positions) + voiceFloats(config.ttsConfig, positions);
  return FLOAT_BYTES * (floats + hearingFloats(config));
}

function languageFloats(config: TextConfig, positions: number): number {
  const { mambaNumHeads: H, mambaHeadDim: P, nGroups: G, ssmStateSize: N } = config;
  const attention = 2 * config.numKeyValueHeads * config.headDim * positions;
  const mamba = H * P * N + PENDING * (H * P + G * N);
  const count = (kind: string): number => config.layers.filter((layer) => layer === kind).length;
  return count("*") * attention + count("M") * mamba;
}

function voiceFloats(config: TtsConfig, positions: number): number {
  const { numHiddenLayers, numKeyValueHeads, headDim, slidingWindow, slidingWindowPattern } = config;
  const global = Math.floor(numHiddenLayers / slidingWindowPattern);
  const rows = global * positions + (numHiddenLayers - global) * Math.min(positions, slidingWindow);
  return 2 * GUIDED * numKeyValueHeads * headDim * rows;
}

function hearingFloats({ audioConfig }: VoiceChatConfig): number {
  const { nLayers, dModel, leftFrames, convKernelSize } = audioConfig.encoder;
  return nLayers * dModel * (2 * leftFrames + convKernelSize - 1);
}
