/**
 * The duplex language model: Nemotron-H, one fused embedding per position in, one hidden row out, and two heads over it.
 * Layers are Mamba2, attention without positions, and relu-squared MLPs, each `x + mixer(norm(x))`.
 *
 * One graph runs one position; the prompt and the offline run take the same steps. What a position needs of the past lies in
 * buffers of the session, is fed in place, and only the new rows come out (the runtime copies every output). A Mamba state is
 * far too large for that, so a session keeps it as a base and the rows since:
 *
 *     state = kept * base + sum over pending r of weight[r] * (dt * x)[r] outer B[r]
 *
 * which the graph multiplies by C without ever writing it (kept and weight are products of decays, per head). After PENDING positions the rows are folded into the base by a
 * small graph of its own; the layers take turns, so that each position pays for few of them.
 *
 * Letters: H heads, P head width, G groups of heads, N state size, R = PENDING; A attention heads share K key heads of width d.
 */
import { dequantizeRow, isQuantized, quantizedMatrix, rowOf } from "../../../checkpoint/mlx-quant.ts";
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { linear, parameter, rmsNorm, silu } from "../../../onnx/nn.ts";
import { add, argMax, clip, exp, matmul, mul, neg, reduceSum, relu, softplus } from "../../../onnx/ops.ts";
import { concat, reshape, slice, transpose } from "../../../onnx/ops-layout.ts";
import { rmsNormalization, softmax } from "../../../onnx/ops-neural.ts";
import type { Precision } from "../../../onnx/quantized.ts";
import { argument, constant, type Value } from "../../../onnx/value.ts";
import type { TextConfig } from "../config.ts";

/** Positions that a Mamba layer keeps beside its base: reading them costs an eighth of reading the base. */
export const PENDING = 16;

export interface LanguageModels {
  readonly body: Model;
  readonly fold: Model;
  readonly heads: Model;
  /** Places of the new rows in the body's one output. */
  readonly rows: readonly RowPlace[];
  /** Row of the embedding table for a token; read from the file on demand. */
  readonly embedding: (token: number) => Float32Array;
}

/** One new row: of which layer, what it is, and where in `rows` it lies. */
export interface RowPlace {
  readonly layer: number;
  readonly name: "conv" | "x" | "B" | "decay" | "keys" | "values";
  readonly start: number;
  readonly end: number;
}

export interface MambaSizes {
  readonly inner: number;
  readonly convolved: number;
  readonly projected: number;
}

export function mambaSizes(config: TextConfig): MambaSizes {
  const inner = config.mambaNumHeads * config.mambaHeadDim;
  const convolved = inner + 2 * config.nGroups * config.ssmStateSize;
  return { inner, convolved, projected: inner + convolved + config.mambaNumHeads };
}

export function languageModels(config: TextConfig, stt: Weights, precision: Precision): LanguageModels {
  const { model: body, rows } = new BodyGraph(config, stt.at("llm"), precision).finish();
  return {
    body,
    rows,
    fold: foldModel(config),
    heads: headsModel(config, stt, precision),
    embedding: embedding(config, stt),
  };
}

/** Builds the graph of one position, layer by layer, and notes the inputs and the new rows on the way. */
class BodyGraph {
  readonly #config: TextConfig;
  readonly #weights: Weights;
  readonly #precision: Precision;
  readonly #inputs: Record<string, Value> = {};
  readonly #rows: { readonly place: RowPlace; readonly row: Value }[] = [];

  constructor(config: TextConfig, weights: Weights, precision: Precision) {
    this.#config = config;
    this.#weights = weights;
    this.#precision = precision;
  }

  finish(): { model: Model; rows: RowPlace[] } {
    const { hiddenSize, layerNormEpsilon: epsilon, layers } = this.#config;
    let x = this.#input("x", 1, hiddenSize);
    for (const [layer, kind] of layers.entries()) {
      const weights = this.#weights.at(`layers.${layer}`);
      const normed = rmsNorm(x, weights.at("norm"), hiddenSize, epsilon);
      const mixer = weights.at("mixer");
      if (kind === "M") x = add(x, this.#mamba(normed, mixer, layer));
      else if (kind === "*") x = add(x, this.#attention(normed, mixer, layer));
      else x = add(x, this.#mlp(normed, mixer));
    }
    const hidden = rmsNorm(x, this.#weights.at("norm_f"), hiddenSize, epsilon);
    const outputs: Record<string, Value> = { hidden };
    if (this.#rows.length > 0)
      outputs["rows"] = concat(
        this.#rows.map(({ row }) => row),
        0,
      );
    return { model: build("language model", this.#inputs, outputs), rows: this.#rows.map(({ place }) => place) };
  }

  #input(name: string, ...shape: (number | string)[]): Value {
    const value = argument(name, "f32", shape);
    this.#inputs[name] = value;
    return value;
  }

  /** Hands a row of this position to the session. */
  #remember(layer: number, name: RowPlace["name"], value: Value, size: number): void {
    const start = this.#rows.at(-1)?.place.end ?? 0;
    this.#rows.push({ place: { layer, name, start, end: start + size }, row: reshape(value, [size]) });
  }

  #linear(x: Value, weights: Weights, inputs: number, outputs: number, bias: boolean): Value {
    return linear(x, weights, inputs, outputs, { bias, precision: this.#precision });
  }

  #mlp(x: Value, weights: Weights): Value {
    const { hiddenSize, intermediateSize, mlpBias } = this.#config;
    const up = relu(this.#linear(x, weights.at("up_proj"), hiddenSize, intermediateSize, mlpBias));
    return this.#linear(mul(up, up), weights.at("down_proj"), intermediateSize, hiddenSize, mlpBias);
  }

  /** Keys [K, d, T] and values [K, T, d] of the past (key-value-cache.ts): the mask hides what is not filled yet. */
  #attention(x: Value, weights: Weights, layer: number): Value {
    const {
      hiddenSize,
      numAttentionHeads: heads,
      numKeyValueHeads: shared,
      headDim,
      attentionBias: bias,
    } = this.#config;
    const width = shared * headDim;
    const q = this.#linear(x, weights.at("q_proj"), hiddenSize, heads * headDim, bias);
    const key = this.#linear(x, weights.at("k_proj"), hiddenSize, width, bias);
    const value = this.#linear(x, weights.at("v_proj"), hiddenSize, width, bias);
    this.#remember(layer, "keys", key, width);
    this.#remember(layer, "values", value, width);
    const keys = this.#input(`keys.${layer}`, shared, headDim, `T.${layer}`);
    const values = this.#input(`values.${layer}`, shared, `T.${layer}`, headDim);
    const mask = this.#input(`mask.${layer}`, `T.${layer}`);
    // A / K query heads in a row share one key head.
    const queries = mul(reshape(q, [shared, heads / shared, headDim]), headDim ** -0.5);
    const past = add(matmul(queries, keys), mask);
    const now = matmul(queries, reshape(key, [shared, headDim, 1]));
    const shares = softmax(concat([now, past], 2), -1);
    const seen = add(
      mul(slice(shares, 2, 0, 1), reshape(value, [shared, 1, headDim])),
      matmul(slice(shares, 2, 1), values),
    );
    return this.#linear(reshape(seen, [1, heads * headDim]), weights.at("o_proj"), heads * headDim, hiddenSize, bias);
  }

  #mamba(x: Value, weights: Weights, layer: number): Value {
    const { hiddenSize, mambaNumHeads: H, mambaProjBias: bias, nGroups: G, ssmStateSize: N } = this.#config;
    const { inner, convolved, projected } = mambaSizes(this.#config);
    // The checkpoint may pad the projection with two unused branches in front.
    const width = weights.at("in_proj").shapeOf("weight")?.[0] ?? projected;
    const padding = Math.max(0, width - projected);
    const all = this.#linear(x, weights.at("in_proj"), hiddenSize, projected + 2 * Math.floor(padding / 2), bias);
    const part = (start: number, size: number): Value => slice(all, 1, padding + start, padding + start + size);
    const mixed = this.#convolve(part(inner, convolved), weights, layer);
    const piece = (start: number, size: number): Value => slice(mixed, 1, start, start + size);
    const y = this.#scan(
      piece(0, inner),
      piece(inner, G * N),
      piece(inner + G * N, G * N),
      part(inner + convolved, H),
      weights,
      layer,
    );
    return this.#linear(this.#gatedNorm(y, part(0, inner), weights), weights.at("out_proj"), inner, hiddenSize, bias);
  }

  /** Depthwise causal convolution over the last positions, then silu. */
  #convolve(now: Value, weights: Weights, layer: number): Value {
    const { convKernel, useConvBias } = this.#config;
    const { convolved } = mambaSizes(this.#config);
    this.#remember(layer, "conv", now, convolved);
    const past = this.#input(`conv.${layer}`, convKernel - 1, convolved);
    const taps = transpose(
      reshape(parameter(weights, "conv1d.weight", [convolved, 1, convKernel]), [convolved, convKernel]),
    );
    const sum = reduceSum(mul(concat([past, now], 0), taps), 0);
    return silu(useConvBias ? add(sum, parameter(weights, "conv1d.bias", [convolved])) : sum);
  }

  /** state . C + D * x, the state being the base, the pending rows and this position. */
  #scan(x: Value, B: Value, C: Value, dt: Value, weights: Weights, layer: number): Value {
    const { mambaNumHeads: H, mambaHeadDim: P, nGroups: G, ssmStateSize: N, timeStepLimit } = this.#config;
    const perHead = (name: string): Value => parameter(weights, name, [H]);
    const step = clip(softplus(add(dt, perHead("dt_bias"))), ...timeStepLimit);
    const decay = exp(mul(step, neg(exp(perHead("A_log")))));
    const heads = reshape(x, [H, P]);
    const scaled = mul(heads, reshape(step, [H, 1]));
    this.#remember(layer, "x", scaled, H * P);
    this.#remember(layer, "B", B, G * N);
    this.#remember(layer, "decay", decay, H);

    const base = this.#input(`base.${layer}`, G, (H / G) * P, N);
    const column = reshape(C, [G, N, 1]);
    const kept = mul(this.#input(`kept.${layer}`, 1, H), decay);
    const ofBase = mul(reshape(matmul(base, column), [H, P]), reshape(kept, [H, 1]));
    // How much each pending row counts for each head: [G, R, 1] -> [H, 1, R].
    const products = reshape(matmul(this.#input(`B.${layer}`, G, PENDING, N), column), [G, 1, PENDING]);
    const weight = mul(this.#input(`weight.${layer}`, G, H / G, PENDING), reshape(decay, [G, H / G, 1]));
    const counts = reshape(mul(weight, products), [H, 1, PENDING]);
    const ofPending = reshape(matmul(counts, this.#input(`x.${layer}`, H, PENDING, P)), [H, P]);
    const product = matmul(reshape(B, [G, 1, N]), column);
    const ofNow = reshape(mul(reshape(scaled, [G, H / G, P]), product), [H, P]);
    const direct = mul(heads, reshape(perHead("D"), [H, 1]));
    return reshape(add(add(ofBase, ofPending), add(ofNow, direct)), [1, H * P]);
  }

  /** silu(gate) * y, then RMS per group, then the weight. */
  #gatedNorm(y: Value, gate: Value, weights: Weights): Value {
    const { nGroups: G, layerNormEpsilon } = this.#config;
    const { inner } = mambaSizes(this.#config);
    const grouped = reshape(mul(silu(gate), y), [G, inner / G]);
    const ones = constant(new Float32Array(inner / G).fill(1));
    const normed = reshape(rmsNormalization(grouped, ones, layerNormEpsilon), [1, inner]);
    return mul(normed, parameter(weights, "norm.weight", [inner]));
  }
}

/** The state of one Mamba layer, base and pending rows summed up; layers share the graph. */
function foldModel(config: TextConfig): Model {
  const { mambaNumHeads: H, mambaHeadDim: P, nGroups: G, ssmStateSize: N } = config;
  const inputs = {
    base: argument("base", "f32", [G, (H / G) * P, N]),
    x: argument("x", "f32", [H, PENDING, P]),
    B: argument("B", "f32", [G, PENDING, N]),
    weight: argument("weight", "f32", [G, H / G, PENDING]),
    kept: argument("kept", "f32", [1, H]),
  };
  const weighted = mul(inputs.x, reshape(inputs.weight, [H, PENDING, 1]));
  const added = matmul(reshape(transpose(weighted), [G, (H / G) * P, PENDING]), inputs.B);
  const kept = mul(reshape(inputs.base, [H, P * N]), reshape(inputs.kept, [H, 1]));
  const state = add(reshape(kept, [G, (H / G) * P, N]), added);
  return build("state fold", inputs, { state });
}

/** hidden [1, D] -> logits of the text and the function channel, and the best token of each. */
function headsModel(config: TextConfig, stt: Weights, precision: Precision): Model {
  const { hiddenSize, vocabSize } = config;
  const hidden = argument("hidden", "f32", [1, hiddenSize]);
  const textLogits = linear(hidden, stt.at("lm_head"), hiddenSize, vocabSize, { precision });
  const functionLogits = linear(hidden, stt.at("function_head"), hiddenSize, vocabSize, { precision });
  const outputs = { textLogits, functionLogits, text: argMax(textLogits, 1), function: argMax(functionLogits, 1) };
  return build("language heads", { hidden }, outputs);
}

function embedding(config: TextConfig, stt: Weights): (token: number) => Float32Array {
  const { vocabSize, hiddenSize } = config;
  const module = stt.at("embed_tokens");
  if (isQuantized(module)) {
    const matrix = quantizedMatrix(module, vocabSize, hiddenSize);
    return (token) => dequantizeRow(module, matrix, token);
  }
  const table = module.tensor("weight", [vocabSize, hiddenSize]);
  return (token) => rowOf(module, table, token);
}
