/**
 * EAR-TTS: what is said next, from the codes of the last frame and the text token of this one. Gemma blocks, one position
 * at a time, twice side by side: row 0 hears the text, row 1 does not, and the mixture head goes further in the direction
 * from row 1 to row 0 (guidance). docs/voicechat-model.md, section 7.
 *
 * D the width, W the width of a head, C the rows of a cache (key-value-cache.ts), Q codebooks.
 */
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { linear, parameter } from "../../../onnx/nn.ts";
import { add, div, matmul, mul, reduceSum, sigmoid, sub } from "../../../onnx/ops.ts";
import { concat, reshape, slice } from "../../../onnx/ops-layout.ts";
import { softmax } from "../../../onnx/ops-neural.ts";
import { type FloatTensor, type Graph, type Runtime, type Tensors, tensor } from "../../../onnx/runtime.ts";
import { argument, type Value } from "../../../onnx/value.ts";
import type { TtsConfig } from "../config.ts";
import { requireFinite } from "../finite.ts";
import { gatedMlp, offsetNorm, rotate, rotationAt } from "./gemma.ts";
import { KeyValueCache } from "./key-value-cache.ts";
import { dequantize, unstackCodebooks } from "./residual-quantizer.ts";

/** Rows: with the text, and without. */
const BATCH = 2;

/** Layers that see everything; the others see a window. */
const isGlobal = (layer: number, config: TtsConfig): boolean => (layer + 1) % config.slidingWindowPattern === 0;

const layersOf = (config: TtsConfig, global: boolean): number[] =>
  [...Array(config.numHiddenLayers).keys()].filter((layer) => isGlobal(layer, config) === global);

export interface BackboneModels {
  readonly embedding: Model;
  readonly backbone: Model;
}

export const backboneModels = (config: TtsConfig, weights: Weights): BackboneModels => ({
  embedding: embeddingModel(config, weights),
  backbone: backboneModel(config, weights),
});

/** codes i32 [T, Q] -> embedding [T, D]; a code equal to the codebook's size adds nothing. */
function embeddingModel(config: TtsConfig, weights: Weights): Model {
  const { numQuantizers, codebookSize, latentSize, hiddenSize } = config;
  const codes = argument("codes", "i32", ["T", numQuantizers]);
  const codebooks = unstackCodebooks(weights.tensor("rvq_embs", [numQuantizers, codebookSize, latentSize]));
  const embedding = linear(dequantize(codes, codebooks), weights.at("embed_code"), latentSize, hiddenSize);
  return build("code embedding", { codes }, { embedding });
}

/**
 * audio [1, D] and text [1, D] of one position, with the caches' feeds -> hidden [2, D], and this position's keys and values
 * [2, H, W] under the names of the feeds.
 */
function backboneModel(config: TtsConfig, weights: Weights): Model {
  const { hiddenSize, headDim, numHiddenLayers, numKeyValueHeads, rmsNormEps } = config;
  const inputs: Record<string, Value> = {};
  const input = (name: string, ...shape: (number | string)[]): Value => {
    inputs[name] ??= argument(name, "f32", shape);
    return inputs[name];
  };
  const outputs: Record<string, Value> = {};
  const audio = input("audio", 1, hiddenSize);
  let x = fusion(config, audio, input("text", 1, hiddenSize), weights);
  for (let index = 0; index < numHiddenLayers; index++) {
    const kind = isGlobal(index, config) ? "global" : "local";
    const past: Past = {
      keys: input(`keys.${index}`, BATCH, numKeyValueHeads, headDim, `C.${index}`),
      values: input(`values.${index}`, BATCH, numKeyValueHeads, `C.${index}`, headDim),
      mask: input(`mask.${index}`, `C.${index}`),
      cosines: input(`${kind}Cosines`, 1, headDim / 2),
      sines: input(`${kind}Sines`, 1, headDim / 2),
    };
    const result = block(config, x, past, weights.at(`backbone.layers.${index}`));
    x = result.x;
    outputs[`keys.${index}`] = result.keys;
    outputs[`values.${index}`] = result.values;
  }
  const hidden = offsetNorm(x, weights.at("backbone.norm"), hiddenSize, rmsNormEps);
  return build("speech backbone", inputs, { hidden, ...outputs });
}

/** The two rows that enter the stack, [2, D]: a gated sum of what was said and what is to be said. */
function fusion(config: TtsConfig, audio: Value, text: Value, weights: Weights): Value {
  const { hiddenSize: size, numQuantizers, rmsNormEps } = config;
  const scope = weights.at("gated_fusion_audio_text");
  const unconditional = reshape(parameter(weights, "null_emb", [size]), [1, size]);
  const heard = linear(div(audio, numQuantizers), scope.at("audio_proj"), size, size, { bias: true });
  const read = linear(concat([text, unconditional], 0), scope.at("text_proj"), size, size, { bias: true });
  const gate = sigmoid(parameter(scope, "gate", [size]));
  const scale = sigmoid(parameter(scope, "residual_scale", []));
  const mixed = mul(scale, add(mul(gate, heard), mul(sub(1, gate), read)));
  return offsetNorm(mixed, scope.at("final_norm"), size, rmsNormEps);
}

interface Past {
  /** [2, H, W, C] */
  readonly keys: Value;
  /** [2, H, C, W] */
  readonly values: Value;
  /** [C] */
  readonly mask: Value;
  /** [1, W / 2] */
  readonly cosines: Value;
  readonly sines: Value;
}

interface BlockResult {
  readonly x: Value;
  /** [2, H, W] */
  readonly keys: Value;
  readonly values: Value;
}

function block(config: TtsConfig, x: Value, past: Past, weights: Weights): BlockResult {
  const { hiddenSize, intermediateSize, rmsNormEps } = config;
  const norm = (value: Value, name: string): Value => offsetNorm(value, weights.at(name), hiddenSize, rmsNormEps);
  const heard = attention(config, norm(x, "input_layernorm"), past, weights.at("self_attn"));
  const h = add(x, norm(heard.x, "post_attention_layernorm"));
  const mlp = gatedMlp(norm(h, "pre_feedforward_layernorm"), weights.at("mlp"), hiddenSize, intermediateSize);
  return { ...heard, x: add(h, norm(mlp, "post_feedforward_layernorm")) };
}

/** One query over the past and itself. Query heads that share keys lie on an axis of their own. */
function attention(config: TtsConfig, x: Value, past: Past, weights: Weights): BlockResult {
  const { hiddenSize, headDim, numAttentionHeads, numKeyValueHeads: groups, rmsNormEps } = config;
  const project = (name: string, heads: number): Value => {
    const flat = linear(x, weights.at(name), hiddenSize, heads * headDim);
    return reshape(flat, [BATCH, groups, heads / groups, headDim]);
  };
  const normed = (value: Value, name: string): Value =>
    rotate(offsetNorm(value, weights.at(name), headDim, rmsNormEps), past.cosines, past.sines);
  const q = mul(normed(project("q_proj", numAttentionHeads), "q_norm"), config.queryPreAttnScalar ** -0.5);
  const k = normed(project("k_proj", groups), "k_norm");
  const v = project("v_proj", groups);
  const before = add(matmul(q, past.keys), past.mask);
  const itself = reduceSum(mul(q, k), -1);
  const shares = softmax(concat([itself, before], -1));
  const mixed = add(mul(slice(shares, -1, 0, 1), v), matmul(slice(shares, -1, 1), past.values));
  const width = numAttentionHeads * headDim;
  return {
    x: linear(reshape(mixed, [BATCH, width]), weights.at("o_proj"), width, hiddenSize),
    keys: reshape(k, [BATCH, groups, headDim]),
    values: reshape(v, [BATCH, groups, headDim]),
  };
}

/** What one session's stack remembers. `step` adds to it in place. */
export interface BackboneState {
  readonly local: KeyValueCache;
  readonly global: KeyValueCache;
}

export const copyBackboneState = (state: BackboneState): BackboneState => ({
  local: state.local.clone(),
  global: state.global.clone(),
});

/** The loaded backbone. Shared by all sessions; each brings its own state. */
export class SpeechBackbone {
  readonly #config: TtsConfig;
  readonly #embedding: Graph;
  readonly #backbone: Graph;

  private constructor(config: TtsConfig, embedding: Graph, backbone: Graph) {
    this.#config = config;
    this.#embedding = embedding;
    this.#backbone = backbone;
  }

  static async load(runtime: Runtime, config: TtsConfig, models: BackboneModels): Promise<SpeechBackbone> {
    const embedding = await runtime.load(models.embedding);
    return new SpeechBackbone(config, embedding, await runtime.load(models.backbone));
  }

  initialState(): BackboneState {
    const { numKeyValueHeads: heads, headDim: width, slidingWindow } = this.#config;
    const cache = (global: boolean): KeyValueCache => {
      const layers = layersOf(this.#config, global);
      return new KeyValueCache({ layers, heads: [BATCH, heads], width, window: global ? null : slidingWindow });
    };
    return { local: cache(false), global: cache(true) };
  }

  /** The embedding [D] of one frame's codes i32 [Q]. */
  async embedCodes(codes: Int32Array): Promise<Float32Array> {
    const { embedding } = await this.#embedding.run({ codes: tensor("i32", [1, codes.length], codes) });
    return embedding!.data as Float32Array;
  }

  /** One position: audio [D] and text [D] -> hidden [2, D]. */
  async step(state: BackboneState, audio: Float32Array, text: Float32Array): Promise<FloatTensor> {
    const { hiddenSize } = this.#config;
    const { hidden, ...added } = await this.#backbone.run({
      audio: tensor("f32", [1, hiddenSize], audio),
      text: tensor("f32", [1, hiddenSize], text),
      ...this.#pastFeeds(state, "local"),
      ...this.#pastFeeds(state, "global"),
    });
    requireFinite("voice", (hidden as FloatTensor).data);
    const rowOf = (name: string): Float32Array => added[name]!.data as Float32Array;
    state.local.append(rowOf);
    state.global.append(rowOf);
    return hidden as FloatTensor;
  }

  async close(): Promise<void> {
    await this.#embedding.close();
    await this.#backbone.close();
  }

  /** What the layers of one kind take; nothing if there are none, since the graph has no such input then. */
  #pastFeeds(state: BackboneState, kind: "local" | "global"): Tensors {
    const { headDim, ropeLocalBaseFreq, ropeGlobalBaseFreq } = this.#config;
    const base = kind === "local" ? ropeLocalBaseFreq : ropeGlobalBaseFreq;
    const { cosines, sines } = rotationAt([state[kind].positions], headDim, base);
    return {
      ...state[kind].feeds(),
      [`${kind}Cosines`]: cosines,
      [`${kind}Sines`]: sines,
    };
  }
}
