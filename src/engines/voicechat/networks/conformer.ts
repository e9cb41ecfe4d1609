/**
 * FastConformer encoder: log-mel frames (10 ms) to encoder frames (80 ms), and their projection to the language model.
 *
 * Causal throughout: convolutions look back only, attention sees the last `left` frames and its own. So the whole utterance
 * and a live stream run the same two graphs, the utterance in chunks of many frames, the stream in chunks of one. They differ
 * in the subsampling at the right edge: a stream ends after every frame, and the padding there is part of what it emits
 * (design: docs/voicechat-model.md).
 *
 * Letters: T frames of the chunk, W mel frames of a window, L = left context, D model width, H heads, d = D / H, K = kernel.
 */
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { glu, layerNorm, linear, parameter, silu } from "../../../onnx/nn.ts";
import { add, gather, gatherElements, matmul, mul, reduceSum, relu } from "../../../onnx/ops.ts";
import { concat, reshape, slice, transpose, unsqueeze } from "../../../onnx/ops-layout.ts";
import { conv, matmulTransposed, softmax } from "../../../onnx/ops-neural.ts";
import { type FloatTensor, type Graph, type Runtime, type Tensor, tensor, zeros } from "../../../onnx/runtime.ts";
import { argument, constant, type Value } from "../../../onnx/value.ts";
import { assert } from "../../../util/assert.ts";
import type { AudioConfig, EncoderConfig } from "../config.ts";
import { requireFinite } from "../finite.ts";

/** Mel frames before an output that the three strided convolutions see, rounded up to whole outputs. */
const MEL_CONTEXT = 16;
/** Stride of the subsampling. */
const STRIDE = 8;
/** Encoder frames of one chunk when the whole utterance is at hand: bounds memory, and fills matrix products. */
const OFFLINE_FRAMES = 64;
/** Added to scores that must not count: far below any score, and finite. */
const MASKED = -1e30;

/** One session's encoder: what the next frame needs of the past. Owned and written by `Conformer`. */
export interface ConformerState {
  /** Frames encoded so far. Frame n lies in slot n mod L of the attention caches. */
  frames: number;
  /** Mel frames consumed so far, and the last of them, [n, features]. */
  melFrames: number;
  mel: Float32Array;
  readonly layers: readonly LayerState[];
}

interface LayerState {
  /** [H, d, L], a frame per column. */
  readonly keys: FloatTensor;
  /** [H, L, d]. */
  readonly values: FloatTensor;
  /** [K - 1, D], the newest last. */
  readonly conv: FloatTensor;
}

export interface EncodedFrames {
  readonly frames: number;
  /** [frames, D]. */
  readonly encoded: Float32Array;
  /** [frames, outputDim]. */
  readonly projected: Float32Array;
}

export function conformerModels(config: AudioConfig, perception: Weights): { subsampling: Model; encoder: Model } {
  return {
    subsampling: subsamplingModel(config.encoder, perception.at("encoder.pre_encode")),
    encoder: encoderModel(config, perception),
  };
}

/** mel [W, F] and the indices of the wanted outputs [T] -> [T, D]. */
function subsamplingModel(config: EncoderConfig, weights: Weights): Model {
  const { featIn, dModel, subsamplingConvChannels: channels } = config;
  const mel = argument("mel", "f32", ["W", featIn]);
  const wanted = argument("wanted", "i64", ["T"]);
  const strided = {
    strides: [2, 2],
    pads: [
      [2, 1],
      [2, 1],
    ],
  } as const;
  const weighted = (
    x: Value,
    index: number,
    inner: number,
    kernel: number,
    options: Parameters<typeof conv>[3],
  ): Value => {
    const scope = weights.at(`conv.${index}`);
    const weight = parameter(scope, "weight", [channels, inner, kernel, kernel]);
    return conv(x, weight, parameter(scope, "bias", [channels]), options);
  };
  let x = relu(weighted(unsqueeze(mel, 0, 1), 0, 1, 3, strided));
  for (const index of [2, 5]) {
    x = weighted(x, index, 1, 3, { ...strided, groups: channels });
    x = relu(weighted(x, index + 1, channels, 1, {}));
  }
  // [1, C, T', F'] -> rows of channel-major features.
  const width = channels * x.size(3);
  const rows = reshape(transpose(gather(x, wanted, 2), [0, 2, 1, 3]), ["T", width]);
  const output = linear(rows, weights.at("out"), width, dModel, { bias: true });
  return build("conformer subsampling", { mel, wanted }, { output });
}

/**
 * x [T, D] with the caches -> encoded, projected, and `rows` [3 * layers, T, D]: keys, values and convolution inputs of
 * each layer, for the caches.
 */
function encoderModel(config: AudioConfig, perception: Weights): Model {
  const { nLayers, dModel, nHeads, leftFrames, convKernelSize } = config.encoder;
  const head = dModel / nHeads;
  const keysDim = `${leftFrames}+T`;
  const inputs: Record<string, Value> = {
    x: argument("x", "f32", ["T", dModel]),
    mask: argument("mask", "f32", ["T", keysDim]),
    distance: argument("distance", "i64", [nHeads, "T", keysDim]),
    window: argument("window", "i64", ["T", convKernelSize]),
  };
  const rows: Value[] = [];
  let x = inputs["x"] as Value;
  for (let layer = 0; layer < nLayers; layer++) {
    const keys = argument(`keys.${layer}`, "f32", [nHeads, head, leftFrames]);
    const values = argument(`values.${layer}`, "f32", [nHeads, leftFrames, head]);
    const past = argument(`conv.${layer}`, "f32", [convKernelSize - 1, dModel]);
    Object.assign(inputs, { [`keys.${layer}`]: keys, [`values.${layer}`]: values, [`conv.${layer}`]: past });
    const weights = perception.at(`encoder.layers.${layer}`);
    const half = (name: string): Value => mul(feedForward(config.encoder, x, weights, name), 0.5);
    x = add(x, half("feed_forward1"));
    const seen = attention(config.encoder, x, weights, { ...inputs, keys, values } as AttentionInputs);
    x = add(x, seen.output);
    const convolved = convolution(config.encoder, x, weights, past, inputs["window"] as Value);
    x = add(x, convolved.output);
    x = add(x, half("feed_forward2"));
    x = layerNorm(x, weights.at("norm_out"), dModel);
    rows.push(seen.key, seen.value, convolved.input);
  }
  const projected = linear(x, perception.at("proj"), dModel, config.outputDim, { bias: true });
  const outputs = {
    encoded: x,
    projected,
    rows: concat(
      rows.map((row) => unsqueeze(row, 0)),
      0,
    ),
  };
  return build("conformer encoder", inputs, outputs);
}

function feedForward(config: EncoderConfig, x: Value, weights: Weights, name: string): Value {
  const { dModel, ffExpansionFactor, useBias: bias } = config;
  const inner = dModel * ffExpansionFactor;
  const scope = weights.at(name);
  const normed = layerNorm(x, weights.at(`norm_${name}`), dModel);
  const up = silu(linear(normed, scope.at("linear1"), dModel, inner, { bias }));
  return linear(up, scope.at("linear2"), inner, dModel, { bias });
}

interface AttentionInputs {
  readonly keys: Value;
  readonly values: Value;
  /** [T, L + T]: 0, or MASKED where query and key do not meet; the cached slots, then the chunk. */
  readonly mask: Value;
  /** [H, T, L + T]: how many frames each key lies back, 0..L. */
  readonly distance: Value;
}

/** Attention with relative positions (Transformer-XL, untied biases): scores q_u . k + q_v . p[distance]. */
function attention(config: EncoderConfig, x: Value, weights: Weights, inputs: AttentionInputs): AttentionOutput {
  const { dModel, nHeads, leftFrames, useBias: bias } = config;
  const head = dModel / nHeads;
  const scope = weights.at("self_attn");
  const normed = layerNorm(x, weights.at("norm_self_att"), dModel);
  const project = (name: string): Value => linear(normed, scope.at(name), dModel, dModel, { bias });
  const heads = (rows: Value, order: number[]): Value => transpose(reshape(rows, ["T", nHeads, head]), order);
  const [q, key, value] = [project("linear_q"), project("linear_k"), project("linear_v")] as const;
  const biased = (name: string): Value =>
    heads(add(q, reshape(parameter(scope, name, [nHeads, head]), [dModel])), [1, 0, 2]);
  const qu = biased("pos_bias_u");
  // Depends on weights only: folded when the graph loads, to [H, d, L + 1].
  const positions = linear(distanceEmbedding(leftFrames, dModel), scope.at("linear_pos"), dModel, dModel);
  const p = transpose(reshape(positions, [leftFrames + 1, nHeads, head]), [1, 2, 0]);
  const byDistance = gatherElements(matmul(biased("pos_bias_v"), p), inputs.distance, 2);
  const content = concat([matmul(qu, inputs.keys), matmul(qu, heads(key, [1, 2, 0]))], 2);
  const scores = add(mul(add(content, byDistance), head ** -0.5), inputs.mask);
  const shares = softmax(scores, -1);
  const cached = matmul(slice(shares, 2, 0, leftFrames), inputs.values);
  const fresh = matmul(slice(shares, 2, leftFrames), heads(value, [1, 0, 2]));
  const merged = reshape(transpose(add(cached, fresh), [1, 0, 2]), ["T", dModel]);
  return { output: linear(merged, scope.at("linear_out"), dModel, dModel, { bias }), key, value };
}

interface AttentionOutput {
  readonly output: Value;
  readonly key: Value;
  readonly value: Value;
}

/** Sinusoids for 0..L frames back, [L + 1, D], rounded to float32 where the reference rounds. */
function distanceEmbedding(left: number, width: number): Value {
  const { fround } = Math;
  const rate = fround(-Math.log(10_000) / width);
  const table = new Float32Array((left + 1) * width);
  for (let distance = 0; distance <= left; distance++) {
    for (let pair = 0; pair < width; pair += 2) {
      const angle = fround(distance * fround(Math.exp(fround(pair * rate))));
      table[distance * width + pair] = Math.sin(angle);
      table[distance * width + pair + 1] = Math.cos(angle);
    }
  }
  return constant(table, "f32", [left + 1, width]);
}

/** Pointwise, gated, depthwise over the last K frames, LayerNorm (which the checkpoint names batch_norm), pointwise. */
function convolution(config: EncoderConfig, x: Value, weights: Weights, past: Value, window: Value): ConvOutput {
  const { dModel, convKernelSize: kernel, useBias: bias } = config;
  const scope = weights.at("conv");
  const normed = layerNorm(x, weights.at("norm_conv"), dModel);
  const input = glu(pointwise(normed, scope, "pointwise_conv1", dModel, 2 * dModel, bias));
  const taps = transpose(reshape(parameter(scope, "depthwise_conv.weight", [dModel, 1, kernel]), [dModel, kernel]));
  // window[t] picks the K frames that end with frame t: [T, K, D].
  const seen = gather(concat([past, input], 0), window, 0);
  const sum = reduceSum(mul(seen, taps), 1, false);
  const biased = bias ? add(sum, parameter(scope, "depthwise_conv.bias", [dModel])) : sum;
  const y = silu(layerNorm(biased, scope.at("batch_norm"), dModel));
  return { output: pointwise(y, scope, "pointwise_conv2", dModel, dModel, bias), input };
}

interface ConvOutput {
  readonly output: Value;
  readonly input: Value;
}

/** A convolution of kernel 1 is a matrix: stored as [outputs, inputs, 1]. */
function pointwise(x: Value, scope: Weights, name: string, inputs: number, outputs: number, bias: boolean): Value {
  const weight = reshape(parameter(scope, `${name}.weight`, [outputs, inputs, 1]), [outputs, inputs]);
  const product = matmulTransposed(x, weight);
  return bias ? add(product, parameter(scope, `${name}.bias`, [outputs])) : product;
}

/** The loaded encoder. Shared by all sessions; each brings its own state. */
export class Conformer {
  readonly #config: EncoderConfig;
  readonly #outputDim: number;
  readonly #subsampling: Graph;
  readonly #encoder: Graph;

  private constructor(config: AudioConfig, subsampling: Graph, encoder: Graph) {
    this.#config = config.encoder;
    this.#outputDim = config.outputDim;
    this.#subsampling = subsampling;
    this.#encoder = encoder;
  }

  static async load(
    runtime: Runtime,
    config: AudioConfig,
    models: ReturnType<typeof conformerModels>,
  ): Promise<Conformer> {
    const subsampling = await runtime.load(models.subsampling);
    return new Conformer(config, subsampling, await runtime.load(models.encoder));
  }

  initialState(): ConformerState {
    const { nLayers, nHeads, dModel, leftFrames, convKernelSize } = this.#config;
    const head = dModel / nHeads;
    const layers = Array.from({ length: nLayers }, () => ({
      keys: zeros(nHeads, head, leftFrames),
      values: zeros(nHeads, leftFrames, head),
      conv: zeros(convKernelSize - 1, dModel),
    }));
    return { frames: 0, melFrames: 0, mel: new Float32Array(0), layers };
  }

  /**
   * A live frame: new mel frames [n, features] (1 at first, then 8) give exactly one encoder frame, the last output of
   * the subsampling over the kept mel frames and the new ones.
   */
  async step(state: ConformerState, mel: Float32Array): Promise<EncodedFrames> {
    const { featIn } = this.#config;
    const count = mel.length / featIn;
    assert(Number.isInteger(count) && count > 0, `step takes whole mel frames, got ${mel.length} numbers`);
    const window = new Float32Array(state.mel.length + mel.length);
    window.set(state.mel);
    window.set(mel, state.mel.length);
    const outputs = outputCount(window.length / featIn);
    const base = (state.melFrames - state.mel.length / featIn) / STRIDE;
    assert(
      base + outputs === state.frames + 1,
      `${count} mel frames end encoder frame ${base + outputs - 1}, not ${state.frames}`,
    );
    const x = await this.#subsample(window, outputs - 1, outputs);
    const end = state.melFrames + count;
    const keep = MEL_CONTEXT + modulo(end - MEL_CONTEXT, STRIDE);
    state.mel = window.slice(Math.max(0, window.length - keep * featIn));
    state.melFrames = end;
    return this.#encode(state, x, 1);
  }

  /**
   * A whole utterance, mel [n, features], as the reference's offline run computes it. It is done in chunks, whose size
   * changes nothing but speed, so that memory does not grow with the utterance.
   */
  async encode(mel: Float32Array, chunkFrames: number = OFFLINE_FRAMES): Promise<EncodedFrames> {
    const { featIn, dModel } = this.#config;
    const melFrames = mel.length / featIn;
    const frames = outputCount(melFrames);
    const state = this.initialState();
    const encoded = new Float32Array(frames * dModel);
    const projected = new Float32Array(frames * this.#outputDim);
    for (let first = 0; first < frames; first += chunkFrames) {
      const count = Math.min(chunkFrames, frames - first);
      // Two outputs of context on the left; on the right up to the last mel frame that the last output sees.
      const before = Math.min(first, MEL_CONTEXT / STRIDE);
      const start = (first - before) * STRIDE;
      const end = Math.min(melFrames, (first + count - 1) * STRIDE + 1);
      const window = mel.subarray(start * featIn, end * featIn);
      const x = await this.#subsample(window, before, before + count);
      assert(x.length === count * dModel, `subsampling gave ${x.length / dModel} frames for ${count}`);
      const part = await this.#encode(state, x, count);
      encoded.set(part.encoded, first * dModel);
      projected.set(part.projected, first * this.#outputDim);
    }
    return { frames, encoded, projected };
  }

  async close(): Promise<void> {
    await this.#subsampling.close();
    await this.#encoder.close();
  }

  /** Outputs from..to of the subsampling over a window of mel frames. */
  async #subsample(window: Float32Array, from: number, to: number): Promise<Float32Array> {
    const { featIn } = this.#config;
    const wanted = BigInt64Array.from({ length: to - from }, (_, index) => BigInt(from + index));
    const { output } = await this.#subsampling.run({
      mel: tensor("f32", [window.length / featIn, featIn], window),
      wanted: tensor("i64", [wanted.length], wanted),
    });
    return (output as FloatTensor).data;
  }

  /** Runs the blocks over `count` frames and writes them into the caches. */
  async #encode(state: ConformerState, x: Float32Array, count: number): Promise<EncodedFrames> {
    const { dModel } = this.#config;
    const feeds: Record<string, Tensor> = {
      x: tensor("f32", [count, dModel], x),
      ...this.#places(state.frames, count),
    };
    for (const [layer, { keys, values, conv: past }] of state.layers.entries()) {
      feeds[`keys.${layer}`] = keys;
      feeds[`values.${layer}`] = values;
      feeds[`conv.${layer}`] = past;
    }
    const { encoded, projected, rows } = await this.#encoder.run(feeds, ["encoded", "projected", "rows"]);
    requireFinite("encoder", encoded.data as Float32Array);
    this.#remember(state, rows.data as Float32Array, count);
    return { frames: count, encoded: encoded.data as Float32Array, projected: projected.data as Float32Array };
  }

  /** Which key each query sees and how far back it lies; which frames each convolution output takes. */
  #places(start: number, count: number): Record<string, Tensor> {
    const { nHeads, leftFrames: left, convKernelSize: kernel } = this.#config;
    const slots = left + count;
    const mask = new Float32Array(count * slots).fill(MASKED);
    const distance = new BigInt64Array(nHeads * count * slots);
    for (let slot = 0; slot < slots; slot++) {
      // Slot s holds the newest cached frame that is s modulo L; the chunk's own frames follow.
      const frame = slot < left ? start - 1 - modulo(start - 1 - slot, left) : start + slot - left;
      for (let query = 0; query < count; query++) {
        const back = start + query - frame;
        if (frame < 0 || back < 0 || back > left) continue;
        mask[query * slots + slot] = 0;
        for (let head = 0; head < nHeads; head++) distance[(head * count + query) * slots + slot] = BigInt(back);
      }
    }
    const window = BigInt64Array.from({ length: count * kernel }, (_, index) =>
      BigInt(Math.floor(index / kernel) + (index % kernel)),
    );
    return {
      mask: tensor("f32", [count, slots], mask),
      distance: tensor("i64", [nHeads, count, slots], distance),
      window: tensor("i64", [count, kernel], window),
    };
  }

  /** rows [3 * layers, count, D] into the caches. */
  #remember(state: ConformerState, rows: Float32Array, count: number): void {
    const { dModel, nHeads, leftFrames: left, convKernelSize: kernel } = this.#config;
    const head = dModel / nHeads;
    const size = count * dModel;
    for (const [layer, { keys, values, conv: past }] of state.layers.entries()) {
      const at = 3 * layer * size;
      for (let t = Math.max(0, count - left); t < count; t++) {
        const slot = (state.frames + t) % left;
        const key = rows.subarray(at + t * dModel, at + (t + 1) * dModel);
        for (let i = 0; i < dModel; i++) keys.data[i * left + slot] = key[i] as number;
        for (let h = 0; h < nHeads; h++) {
          const from = at + size + t * dModel + h * head;
          values.data.set(rows.subarray(from, from + head), (h * left + slot) * head);
        }
      }
      const kept = Math.min(count, kernel - 1);
      past.data.copyWithin(0, kept * dModel);
      past.data.set(rows.subarray(at + 3 * size - kept * dModel, at + 3 * size), (kernel - 1 - kept) * dModel);
    }
    state.frames += count;
  }
}

/** Frames that three convolutions of kernel 3, stride 2 and padding (2, 1) leave. */
const outputCount = (melFrames: number): number => {
  let count = melFrames;
  for (let stage = 0; stage < 3; stage++) count = Math.floor(count / 2) + 1;
  return count;
};

const modulo = (value: number, by: number): number => ((value % by) + by) % by;
