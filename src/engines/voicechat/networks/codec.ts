/**
 * The audio codec: 22,050 Hz speech as frames of codes, and back. A causal ConvNeXt encoder and decoder around a residual
 * quantizer, on short spectra of 16 samples at a hop of 4. docs/voicechat-model.md, section 9.
 *
 * T frames of codes; N spectra, with N = T * 441 at the published rates; C channels. All is [positions, channels]: a
 * convolution whose kernel equals its stride is a product with a reshaped matrix.
 */
import { concatPcm } from "../../../audio/pcm.ts";
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { parameter, stored } from "../../../onnx/nn.ts";
import { add, cos, exp, matmul, maximum, minimum, mul, neg, sin, softplus, sub } from "../../../onnx/ops.ts";
import { assume, concat, reshape, slice, split, transpose } from "../../../onnx/ops-layout.ts";
import { gelu, layerNormalization, matmulTransposed } from "../../../onnx/ops-neural.ts";
import { type Graph, type Runtime, type Tensors, tensor, zeros } from "../../../onnx/runtime.ts";
import { argument, constant, type Value } from "../../../onnx/value.ts";
import type { CodecConfig } from "../config.ts";
import { requireFinite } from "../finite.ts";
import { dequantize, quantize } from "./residual-quantizer.ts";

const NORM_EPSILON = 1e-6;
const MAGNITUDE_MAX = 100;

/** Samples of one frame of codes. */
export const frameSamplesOf = (config: CodecConfig): number =>
  config.downsampleRates.reduce((product, rate) => product * rate, config.hopLength);

export interface CodecModels {
  readonly encoder: Model;
  readonly decoder: Model;
}

export const codecModels = (config: CodecConfig, weights: Weights): CodecModels => ({
  encoder: encoderModel(config, weights),
  decoder: decoderModel(config, weights),
});

const binsOf = (config: CodecConfig): number => config.nFft / 2 + 1;
const channelsOf = (config: CodecConfig): number[] =>
  config.channelMultipliers.map((multiplier) => multiplier * config.baseChannels);

// ------------------------------------------------------------------------------------------------------------ encoder

/** spectrum [N, 2 * bins] (see `spectraOf`) -> latents [T, D] and codes i32 [T, Q]. */
function encoderModel(config: CodecConfig, weights: Weights): Model {
  const spectrum = argument("spectrum", "f32", ["N", 2 * binsOf(config)]);
  const channels = channelsOf(config);
  const layers = new LayerScopes(weights.at("encoder"));
  let x = pointwise(spectrum, layers.next(), channels[0] as number);
  config.downsampleRates.forEach((rate, stage) => {
    for (let block = 0; block < config.blocksPerStage; block++) {
      x = convNeXt(x, null, layers.next(), config.blockKernelSize).y;
    }
    x = downsample(x, layers.next(), channels[stage + 1] ?? config.latentDim, rate);
  });
  const { codes } = quantize(x, codebooksOf(config, weights));
  return build("codec encoder", { spectrum }, { latents: x, codes });
}

/** A convolution whose kernel and stride are `rate`. */
function downsample(x: Value, weights: Weights, outputs: number, rate: number): Value {
  const inputs = x.size(1);
  const kernel = parameter(weights, "weight", [outputs, inputs, rate]);
  const matrix = reshape(transpose(kernel, [2, 1, 0]), [rate * inputs, outputs]);
  return matmul(reshape(x, [-1, rate * inputs]), matrix);
}

/**
 * The encoder's input: real parts, then imaginary parts, of spectra at hops of 4, with 12 zeros around the waveform.
 * [samples / hop, 2 * bins] for a whole number of hops.
 */
function spectraOf(waveform: Float32Array, config: CodecConfig): Float32Array {
  const { nFft, hopLength } = config;
  const bins = binsOf(config);
  const window = hannWindow(nFft);
  const padLeft = Math.floor((nFft - hopLength) / 2);
  const count = Math.floor(waveform.length / hopLength);
  const spectra = new Float32Array(count * 2 * bins);
  for (let frame = 0; frame < count; frame++) {
    for (let bin = 0; bin < bins; bin++) {
      let real = 0;
      let imaginary = 0;
      for (let n = 0; n < nFft; n++) {
        const sample = (waveform[frame * hopLength + n - padLeft] ?? 0) * window[n]!;
        real += sample * Math.cos((2 * Math.PI * bin * n) / nFft);
        imaginary -= sample * Math.sin((2 * Math.PI * bin * n) / nFft);
      }
      spectra[frame * 2 * bins + bin] = real;
      spectra[(frame * 2 + 1) * bins + bin] = imaginary;
    }
  }
  return spectra;
}

// ------------------------------------------------------------------------------------------------------------ decoder

/** Per ConvNeXt block, [kernel - 1, channels]: the inputs that the next step still sees. */
function stateShapes(config: CodecConfig): Readonly<Record<string, readonly [number, number]>> {
  const shapes: Record<string, readonly [number, number]> = {};
  for (const channels of channelsOf(config).reverse()) {
    for (let block = 0; block < config.blocksPerStage; block++) {
      shapes[`state.${Object.keys(shapes).length}`] = [config.blockKernelSize - 1, channels];
    }
  }
  return shapes;
}

/** codes i32 [T, Q] and the state -> windows [N, nFft], to be overlapped and added, and the next state. */
function decoderModel(config: CodecConfig, weights: Weights): Model {
  const codes = argument("codes", "i32", ["T", config.numQuantizers]);
  const state = Object.entries(stateShapes(config)).map(([name, shape]) => argument(name, "f32", shape));
  const next: Record<string, Value> = {};
  const layers = new LayerScopes(weights.at("decoder"));
  let x = dequantize(codes, codebooksOf(config, weights));
  [...config.downsampleRates].reverse().forEach((rate, stage) => {
    x = upsample(x, layers.next(), channelsOf(config).reverse()[stage] as number, rate);
    for (let block = 0; block < config.blocksPerStage; block++) {
      const index = stage * config.blocksPerStage + block;
      const { y, kept } = convNeXt(x, state[index] as Value, layers.next(), config.blockKernelSize);
      x = y;
      next[`state.${index}`] = kept;
    }
  });
  const windows = inverseSpectra(pointwise(x, layers.next(), 2 * binsOf(config)), config);
  const arguments_ = Object.fromEntries(state.map((value, index) => [`state.${index}`, value]));
  return build("codec decoder", { codes, ...arguments_ }, { windows, ...next });
}

/** A transposed convolution whose kernel and stride are `rate`. */
function upsample(x: Value, weights: Weights, outputs: number, rate: number): Value {
  const inputs = x.size(1);
  const kernel = parameter(weights, "weight", [inputs, outputs, rate]);
  const matrix = reshape(transpose(kernel, [0, 2, 1]), [inputs, rate * outputs]);
  return reshape(matmul(x, matrix), [-1, outputs]);
}

/** Magnitude logits and phases [N, 2 * bins] -> windowed samples [N, nFft]. */
function inverseSpectra(features: Value, config: CodecConfig): Value {
  const { nFft } = config;
  const bins = binsOf(config);
  const [logits, phase] = split(features, [bins, bins], 1) as [Value, Value];
  const magnitude = mul(exp(neg(softplus(sub(Math.log(MAGNITUDE_MAX), logits)))), MAGNITUDE_MAX);
  const [cosines, sines] = inverseTransform(nFft);
  const samples = add(
    matmul(mul(magnitude, cos(phase)), constant(cosines, "f32", [bins, nFft])),
    matmul(mul(magnitude, sin(phase)), constant(sines, "f32", [bins, nFft])),
  );
  const window = constant(hannWindow(nFft));
  return mul(maximum(minimum(samples, window), neg(window)), window);
}

/** Rows of the inverse real transform for real and imaginary parts, [bins, nFft]. DC and Nyquist have no imaginary part. */
function inverseTransform(nFft: number): [number[], number[]] {
  const cosines: number[] = [];
  const sines: number[] = [];
  for (let bin = 0; bin <= nFft / 2; bin++) {
    const edge = bin === 0 || bin === nFft / 2;
    for (let n = 0; n < nFft; n++) {
      const angle = (2 * Math.PI * bin * n) / nFft;
      cosines.push(((edge ? 1 : 2) / nFft) * Math.cos(angle));
      sines.push(edge ? 0 : (-2 / nFft) * Math.sin(angle));
    }
  }
  return [cosines, sines];
}

// ------------------------------------------------------------------------------------------------------------- blocks

/** Scopes `layers.0`, `layers.1`, … in the order in which the layers are met. */
class LayerScopes {
  readonly #weights: Weights;
  #index = 0;
  constructor(weights: Weights) {
    this.#weights = weights;
  }
  next(): Weights {
    return this.#weights.at(`layers.${this.#index++}`);
  }
}

function codebooksOf(config: CodecConfig, weights: Weights): Value[] {
  const prvq = weights.at("prvq");
  prvq.ignore("_variance_list.");
  return Array.from({ length: config.numQuantizers }, (_, index) =>
    stored(prvq.tensor(`mus_list.${index}`, [config.codebookSize, config.latentDim])),
  );
}

/** A convolution of width 1. */
function pointwise(x: Value, weights: Weights, outputs: number, bias = false): Value {
  const kernel = parameter(weights, "weight", [outputs, x.size(1), 1]);
  const product = matmulTransposed(x, reshape(kernel, [outputs, x.size(1)]));
  return bias ? add(product, parameter(weights, "bias", [outputs])) : product;
}

/** x [N, C] after the `kernel - 1` inputs in `state` (zeros if null). `kept` is the state for what follows. */
function convNeXt(x: Value, state: Value | null, weights: Weights, kernelSize: number): { y: Value; kept: Value } {
  const channels = x.size(1);
  const reach = kernelSize - 1;
  const zeros = constant(new Float32Array(reach * channels), "f32", [reach, channels]);
  const padded = concat([state ?? zeros, x], 0);
  const depthwise = weights.at("dwconv");
  const kernel = parameter(depthwise, "weight", [channels, 1, kernelSize]);
  const taps = Array.from({ length: kernelSize }, (_, tap) => {
    const shifted = tap === reach ? slice(padded, 0, reach) : slice(padded, 0, tap, tap - reach);
    return mul(assume(shifted, x.shape), reshape(slice(kernel, 2, tap, tap + 1), [channels]));
  });
  const norm = weights.at("norm");
  const scale = parameter(norm, "weight", [channels]);
  let h = add(taps.reduce(add), parameter(depthwise, "bias", [channels]));
  h = layerNormalization(h, scale, parameter(norm, "bias", [channels]), NORM_EPSILON);
  h = gelu(pointwise(h, weights.at("pwconv1"), 4 * channels, true));
  h = pointwise(h, weights.at("pwconv2"), channels, true);
  return { y: add(x, h), kept: slice(padded, 0, -reach) };
}

/** The periodic Hann window, as float32. */
function hannWindow(size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, n) => 0.5 * (1 - Math.cos((2 * Math.PI * n) / size)));
}

// ------------------------------------------------------------------------------------------------------------ running

/** The codes i32 [T, Q] and latents [T, D] of a waveform: a whole number of frames. Loads the encoder for this once. */
export async function encodeOnce(
  runtime: Runtime,
  config: CodecConfig,
  encoder: Model,
  waveform: Float32Array,
): Promise<{ codes: Int32Array; latents: Float32Array }> {
  const spectrum = spectraOf(waveform, config);
  const width = 2 * binsOf(config);
  const graph = await runtime.load(encoder);
  try {
    const results = await graph.run({ spectrum: tensor("f32", [spectrum.length / width, width], spectrum) });
    return { codes: results["codes"]!.data as Int32Array, latents: results["latents"]!.data as Float32Array };
  } finally {
    await graph.close();
  }
}

/** The loaded decoder. Shared by all sessions; each decodes through a `CodecStream` of its own. */
export class Codec {
  readonly config: CodecConfig;
  readonly #decoder: Graph;
  private constructor(config: CodecConfig, decoder: Graph) {
    this.config = config;
    this.#decoder = decoder;
  }
  static async load(runtime: Runtime, config: CodecConfig, decoder: Model): Promise<Codec> {
    return new Codec(config, await runtime.load(decoder));
  }
  /** @see OverlapAdd for the two modes. */
  stream(mode: "offline" | "streaming"): CodecStream {
    return new CodecStream(this.config, this.#decoder, mode);
  }
  async close(): Promise<void> {
    await this.#decoder.close();
  }
}

/** One session's decoder: the inputs that the convolutions still see, and the overlap. */
export class CodecStream {
  readonly #decoder: Graph;
  readonly #quantizers: number;
  readonly #overlap: OverlapAdd;
  #state: Tensors;

  constructor(config: CodecConfig, decoder: Graph, mode: "offline" | "streaming") {
    this.#decoder = decoder;
    this.#quantizers = config.numQuantizers;
    this.#overlap = new OverlapAdd(config, mode);
    this.#state = Object.fromEntries(
      Object.entries(stateShapes(config)).map(([name, shape]) => [name, zeros(...shape)]),
    );
  }

  /** Codes i32 [T, Q] of the next frames -> the samples that they complete; all of theirs when streaming. */
  async push(codes: Int32Array): Promise<Float32Array> {
    const shape = [codes.length / this.#quantizers, this.#quantizers];
    const { windows, ...next } = await this.#decoder.run({ codes: tensor("i32", shape, codes), ...this.#state });
    const given = requireFinite("codec", windows!.data as Float32Array);
    this.#state = next;
    return this.#overlap.push(given);
  }

  /** The rest of an offline decode. */
  finish(): Float32Array {
    return this.#overlap.finish();
  }
}

// -------------------------------------------------------------------------------------------------------- overlap-add

/** Where the squared windows hardly overlap, at the very ends. */
const WEIGHT_MIN = 1e-10;

/**
 * Adds up the decoder's windows at their hops, and divides by the squared windows that overlap.
 *
 * `offline`: all pushes and the finish together give hop samples a window, as the reference's whole decode. `streaming`:
 * each push gives hop samples a window at once, as if silent windows had gone before; it trails `offline` by 8 samples.
 */
class OverlapAdd {
  readonly #hop: number;
  readonly #squares: Float32Array;
  /** Sums to which windows are still to be added, and the squares in them. */
  readonly #sums: Float32Array;
  readonly #weights: Float32Array;
  /** Samples to leave out at the start, and at the end. */
  #skip: number;
  readonly #cut: number;
  /** Complete, and beyond hop samples a window. */
  #held: Float32Array = new Float32Array(0);

  constructor(config: CodecConfig, mode: "offline" | "streaming") {
    const { nFft, hopLength } = config;
    const before = Math.floor((nFft - hopLength) / 2);
    this.#hop = hopLength;
    this.#squares = hannWindow(nFft).map((value) => value * value);
    this.#sums = new Float32Array(nFft);
    this.#weights = new Float32Array(nFft);
    this.#skip = before;
    this.#cut = nFft - hopLength - before;
    if (mode === "streaming") {
      const trailing = Math.ceil(before / hopLength);
      this.#skip += trailing * hopLength;
      this.#held = this.#add(new Float32Array(2 * trailing * nFft));
    }
  }

  /** windows [n, nFft] -> at most n * hop samples. */
  push(windows: Float32Array): Float32Array {
    const complete = concatPcm([this.#held, this.#add(windows)]);
    const samples = (windows.length / this.#squares.length) * this.#hop;
    this.#held = complete.slice(samples);
    return complete.subarray(0, samples);
  }

  /** The rest of an offline decode. */
  finish(): Float32Array {
    const rest = this.#sums.slice(0, -this.#hop);
    for (let i = 0; i < rest.length; i++) rest[i]! /= Math.max(this.#weights[i]!, WEIGHT_MIN);
    return concatPcm([this.#held, rest]).slice(0, -this.#cut);
  }

  /** All samples that these windows complete. */
  #add(windows: Float32Array): Float32Array {
    const size = this.#squares.length;
    const hop = this.#hop;
    const count = windows.length / size;
    const samples = new Float32Array(count * hop);
    for (let frame = 0; frame < count; frame++) {
      for (let i = 0; i < size; i++) {
        this.#sums[i]! += windows[frame * size + i]!;
        this.#weights[i]! += this.#squares[i]!;
      }
      for (let i = 0; i < hop; i++) samples[frame * hop + i] = this.#sums[i]! / Math.max(this.#weights[i]!, WEIGHT_MIN);
      for (const buffer of [this.#sums, this.#weights]) buffer.copyWithin(0, hop).fill(0, size - hop);
    }
    const skipped = Math.min(this.#skip, samples.length);
    this.#skip -= skipped;
    return samples.subarray(skipped);
  }
}
