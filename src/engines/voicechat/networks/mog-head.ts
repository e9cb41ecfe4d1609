/**
 * The mixture head: from the backbone's two rows and the codes chosen so far to a vector of the latent space, and from there
 * to the next codes. docs/voicechat-model.md, section 8. D the width, P components, L the latent width, R the rank.
 */
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { linear, stored } from "../../../onnx/nn.ts";
import {
  add,
  argMax,
  cast,
  cumSum,
  exp,
  gather,
  less,
  log,
  matmul,
  maximum,
  mul,
  sub,
  topK,
  where,
} from "../../../onnx/ops.ts";
import { reshape, slice, squeeze, transpose } from "../../../onnx/ops-layout.ts";
import { softmax } from "../../../onnx/ops-neural.ts";
import { type FloatTensor, type Graph, type Runtime, tensor, zeros } from "../../../onnx/runtime.ts";
import { argument, type Value } from "../../../onnx/value.ts";
import type { RandomGenerator } from "../../../util/rng.ts";
import type { TtsConfig } from "../config.ts";
import { requireFinite } from "../finite.ts";
import { drawNoise, type MaskedIteration, maskedIterations } from "../sampling.ts";
import { gatedMlp, offsetNorm } from "./gemma.ts";
import { quantize, unstackCodebooks } from "./residual-quantizer.ts";

export interface MixtureModels {
  readonly head: Model;
  /** One for each iteration that fills codebooks. */
  readonly pickers: readonly Model[];
}

export function mixtureModels(config: TtsConfig, weights: Weights): MixtureModels {
  const iterations = maskedIterations(config.numQuantizers, config.numIterations, config.exponent);
  return {
    head: headModel(config, weights),
    pickers: iterations.map((iteration) => pickerModel(config, weights, iteration)),
  };
}

/**
 * hidden [2, D], sum [1, L] of the codes so far, gumbel [P] and normal [1, L] -> residual [1, L], the vector that the next
 * codes are to name.
 */
function headModel(config: TtsConfig, weights: Weights): Model {
  const { hiddenSize: size, latentSize, guidanceScale, mogHead } = config;
  const hidden = argument("hidden", "f32", [2, size]);
  const sum = argument("sum", "f32", [1, latentSize]);
  const gumbel = argument("gumbel", "f32", [mogHead.numPredictions]);
  const normal = argument("normal", "f32", [1, latentSize]);
  const head = weights.at("mog_head");
  let x = add(linear(sum, weights.at("embed_code"), latentSize, size), hidden);
  for (let index = 0; index < mogHead.numLayers; index++) {
    const layer = head.at(`mlp_stack.${index}`);
    const mlp = gatedMlp(
      offsetNorm(x, layer.at("pre_norm"), size, mogHead.eps),
      layer.at("mlp"),
      size,
      mogHead.intermediateSize,
    );
    x = add(x, offsetNorm(mlp, layer.at("post_norm"), size, mogHead.eps));
  }
  x = offsetNorm(x, head.at(`mlp_stack.${mogHead.numLayers}`), size, mogHead.eps);
  const [conditional, unconditional] = [slice(x, 0, 0, 1), slice(x, 0, 1, 2)];
  x = add(conditional, mul(sub(conditional, unconditional), guidanceScale));

  const component = pickComponent(linear(x, head.at("proj_logits"), size, mogHead.numPredictions), gumbel, config.topP);
  const spread = exp(maximum(linear(x, head.at("proj_logs"), size, 1), mogHead.minLogStd));
  const shift = linear(x, head.at("proj_else"), size, latentSize);
  const mean = add(mul(componentMean(config, x, component, head), spread), shift);
  const residual = add(mean, mul(mul(spread, normal), config.noiseScale));
  return build("mixture head", { hidden, sum, gumbel, normal }, { residual });
}

/** logits [1, P] -> i64 [1]. A component stays while the probability of those before it, in falling order, is below topP. */
function pickComponent(logits: Value, gumbel: Value, topP: number): Value {
  const components = logits.size(-1);
  if (topP >= 1) return argMax(add(log(softmax(logits)), gumbel), -1);
  const [sorted, order] = topK(logits, components);
  const kept = less(cumSum(softmax(sorted), -1, { exclusive: true }), topP);
  const filtered = where(kept, sorted, Number.NEGATIVE_INFINITY);
  const place = argMax(add(log(softmax(filtered)), gather(gumbel, order)), -1);
  return gather(squeeze(order, 0), place);
}

/** The mean [1, L] of component i64 [1]: two factors of rank R. Only the component's own rows are read and widened. */
function componentMean(config: TtsConfig, x: Value, component: Value, head: Weights): Value {
  const { hiddenSize, latentSize, mogHead } = config;
  const { numPredictions, lowRank } = mogHead;
  const stackedMeans = stored(head.at("proj_mus").tensor("weight", [numPredictions * lowRank, hiddenSize]));
  const means = reshape(stackedMeans, [numPredictions, lowRank, hiddenSize]);
  const factors = stored(head.tensor("low_mat", [numPredictions, latentSize, lowRank]));
  const inner = cast(squeeze(gather(means, component), 0), "f32");
  const outer = cast(squeeze(gather(factors, component), 0), "f32");
  return matmul(matmul(x, transpose(inner)), transpose(outer));
}

/** residual [1, L] and sum [1, L] -> codes i32 [1, count] of one iteration's codebooks, and the sum with them. */
function pickerModel(config: TtsConfig, weights: Weights, iteration: MaskedIteration): Model {
  const { numQuantizers, codebookSize, latentSize } = config;
  const residual = argument("residual", "f32", [1, latentSize]);
  const before = argument("sum", "f32", [1, latentSize]);
  const { start, count } = iteration;
  const stack = weights.tensor("rvq_embs", [numQuantizers, codebookSize, latentSize]);
  const codebooks = unstackCodebooks(stack).slice(start, start + count);
  const { codes, sum } = quantize(residual, codebooks, before);
  return build(`code picker ${start}`, { residual, sum: before }, { codes, sum });
}

/** The loaded head. Holds no state. */
export class MixtureHead {
  readonly #config: TtsConfig;
  readonly #head: Graph;
  readonly #pickers: readonly Graph[];

  private constructor(config: TtsConfig, head: Graph, pickers: readonly Graph[]) {
    this.#config = config;
    this.#head = head;
    this.#pickers = pickers;
  }

  static async load(runtime: Runtime, config: TtsConfig, models: MixtureModels): Promise<MixtureHead> {
    const head = await runtime.load(models.head);
    const pickers: Graph[] = [];
    for (const picker of models.pickers) pickers.push(await runtime.load(picker));
    return new MixtureHead(config, head, pickers);
  }

  /** The codes i32 [Q] of one frame, from the backbone's rows [2, D]. Draws from the session's generator. */
  async sample(hidden: FloatTensor, generator: RandomGenerator): Promise<Int32Array> {
    const { latentSize, mogHead, numQuantizers } = this.#config;
    const codes = new Int32Array(numQuantizers);
    let sum = zeros(1, latentSize);
    let filled = 0;
    for (const picker of this.#pickers) {
      const { gumbel, normal } = drawNoise(generator, mogHead.numPredictions, latentSize);
      const { residual } = await this.#head.run({
        hidden,
        sum,
        gumbel: tensor("f32", [gumbel.length], gumbel),
        normal: tensor("f32", [1, latentSize], normal),
      });
      requireFinite("mixture head", (residual as FloatTensor).data);
      const picked = await picker.run({ residual: residual as FloatTensor, sum });
      const added = picked["codes"]!.data as Int32Array;
      codes.set(added, filled);
      filled += added.length;
      sum = picked["sum"] as FloatTensor;
    }
    return codes;
  }

  async close(): Promise<void> {
    for (const graph of [this.#head, ...this.#pickers]) await graph.close();
  }
}
