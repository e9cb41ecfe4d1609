/**
 * The RNN-T branch: the user's words from encoder frames. A prediction network (LSTM over the emitted symbols) and a joint
 * network that adds it to an encoder frame and scores every symbol and the blank; decoding is greedy.
 *
 * The prediction network moves only when a symbol is emitted, so its output is kept until then.
 */
import { rowOf } from "../../../checkpoint/mlx-quant.ts";
import type { Weights } from "../../../checkpoint/weights.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { linear, parameter } from "../../../onnx/nn.ts";
import { add, argMax, mul, relu, sigmoid, tanh } from "../../../onnx/ops.ts";
import { concat, slice, split } from "../../../onnx/ops-layout.ts";
import { matmulTransposed } from "../../../onnx/ops-neural.ts";
import { type FloatTensor, type Graph, type Runtime, tensor, zeros } from "../../../onnx/runtime.ts";
import { argument, type Value } from "../../../onnx/value.ts";
import type { AudioConfig, JointConfig, PredictionConfig } from "../config.ts";

/** One session's decoder. Each step gives a new one; `prediction` follows the last emitted symbol. */
export interface RnntState {
  /** [layers, hidden]. */
  readonly h: FloatTensor;
  readonly c: FloatTensor;
  /** [1, hidden]. */
  readonly prediction: FloatTensor;
}

export interface RnntModels {
  readonly prediction: Model;
  readonly joint: Model;
  /** Row of the embedding table for a symbol. */
  readonly embedding: (symbol: number) => Float32Array;
}

export function rnntModels(config: AudioConfig, stt: Weights): RnntModels {
  const { predHidden, vocabSize, blankAsPad } = config.decoder;
  const embed = stt.at("rnnt_decoder.prediction.embed");
  const table = embed.tensor("weight", [blankAsPad ? vocabSize + 1 : vocabSize, predHidden]);
  return {
    prediction: predictionModel(config.decoder, stt.at("rnnt_decoder.prediction.dec_rnn.lstm")),
    joint: jointModel(config.joint, stt.at("rnnt_joint")),
    embedding: (symbol) => rowOf(embed, table, symbol),
  };
}

/** A stack of LSTM layers, one step: x [1, hidden], h and c [layers, hidden]. Gates in the order i, f, g, o. */
function predictionModel(config: PredictionConfig, weights: Weights): Model {
  const { predHidden: width, predRnnLayers: layers } = config;
  const x = argument("x", "f32", [1, width]);
  const h = argument("h", "f32", [layers, width]);
  const c = argument("c", "f32", [layers, width]);
  const [hidden, cells]: [Value[], Value[]] = [[], []];
  let input = x;
  for (let layer = 0; layer < layers; layer++) {
    const gate = (name: string, of: Value): Value =>
      matmulTransposed(of, parameter(weights, `weight_${name}_l${layer}`, [4 * width, width]));
    const bias = (name: string): Value => parameter(weights, `bias_${name}_l${layer}`, [4 * width]);
    const before = slice(h, 0, layer, layer + 1);
    const gates = add(add(gate("ih", input), add(bias("ih"), bias("hh"))), gate("hh", before));
    const [i, f, g, o] = split(gates, [width, width, width, width], 1) as [Value, Value, Value, Value];
    const cell = add(mul(sigmoid(f), slice(c, 0, layer, layer + 1)), mul(sigmoid(i), tanh(g)));
    input = mul(sigmoid(o), tanh(cell));
    hidden.push(input);
    cells.push(cell);
  }
  const outputs = { prediction: input, h: concat(hidden, 0), c: concat(cells, 0) };
  return build("rnnt prediction", { x, h, c }, outputs);
}

const ACTIVATIONS: Readonly<Record<JointConfig["activation"], (x: Value) => Value>> = { relu, sigmoid, tanh };

/** encoded [1, D] and prediction [1, hidden] -> logits [1, classes + 1], the blank last, and the best symbol. */
function jointModel(config: JointConfig, weights: Weights): Model {
  const { encoderHidden, predHidden, jointHidden, numClasses } = config;
  const encoded = argument("encoded", "f32", [1, encoderHidden]);
  const prediction = argument("prediction", "f32", [1, predHidden]);
  const sum = add(
    linear(encoded, weights.at("enc"), encoderHidden, jointHidden, { bias: true }),
    linear(prediction, weights.at("pred"), predHidden, jointHidden, { bias: true }),
  );
  const active = ACTIVATIONS[config.activation](sum);
  const logits = linear(active, weights.at("joint_net.2"), jointHidden, numClasses + 1, { bias: true });
  return build("rnnt joint", { encoded, prediction }, { logits, symbol: argMax(logits, 1) });
}

/** The loaded branch. Shared by all sessions. */
export class Rnnt {
  readonly #config: AudioConfig;
  readonly #blank: number;
  readonly #prediction: Graph;
  readonly #joint: Graph;
  readonly #embedding: RnntModels["embedding"];

  private constructor(config: AudioConfig, blank: number, prediction: Graph, joint: Graph, models: RnntModels) {
    this.#config = config;
    this.#blank = blank;
    this.#prediction = prediction;
    this.#joint = joint;
    this.#embedding = models.embedding;
  }

  static async load(runtime: Runtime, config: AudioConfig, blank: number, models: RnntModels): Promise<Rnnt> {
    const prediction = await runtime.load(models.prediction);
    return new Rnnt(config, blank, prediction, await runtime.load(models.joint), models);
  }

  /** Before any symbol: the prediction network has seen one row of zeros. */
  async initialState(): Promise<RnntState> {
    const { predHidden: width, predRnnLayers: layers } = this.#config.decoder;
    return this.#predict(new Float32Array(width), zeros(layers, width), zeros(layers, width));
  }

  /** The state after a symbol. */
  async emit(state: RnntState, symbol: number): Promise<RnntState> {
    return this.#predict(this.#embedding(symbol), state.h, state.c);
  }

  /** Scores of all symbols for an encoder frame [D]. */
  async logits(state: RnntState, encoded: Float32Array): Promise<Float32Array> {
    const { logits } = await this.#joint.run(this.#jointFeeds(state, encoded), ["logits"]);
    return logits.data as Float32Array;
  }

  /** Decodes one encoder frame [D]: up to `maxSymbols` symbols, none when the blank comes first. */
  async step(state: RnntState, encoded: Float32Array): Promise<{ state: RnntState; symbols: number[] }> {
    const symbols: number[] = [];
    let current = state;
    while (symbols.length < this.#config.maxSymbols) {
      const { symbol } = await this.#joint.run(this.#jointFeeds(current, encoded), ["symbol"]);
      const best = Number(symbol.data[0]);
      if (best === this.#blank) break;
      symbols.push(best);
      current = await this.emit(current, best);
    }
    return { state: current, symbols };
  }

  async close(): Promise<void> {
    await this.#prediction.close();
    await this.#joint.close();
  }

  #jointFeeds(state: RnntState, encoded: Float32Array): Record<string, FloatTensor> {
    return { encoded: tensor("f32", [1, encoded.length], encoded), prediction: state.prediction };
  }

  async #predict(x: Float32Array, h: FloatTensor, c: FloatTensor): Promise<RnntState> {
    const next = await this.#prediction.run({ x: tensor("f32", [1, x.length], x), h, c }, ["prediction", "h", "c"]);
    return next as Record<"prediction" | "h" | "c", FloatTensor>;
  }
}

/** Pieces that stand for no text: markers, and language tags such as <en-US>. */
const MARKERS: ReadonlySet<string> = new Set(["<unk>", "<pad>", "<s>", "</s>"]);
const LANGUAGE_TAG = /^<[a-z]{2,3}-[A-Za-z]{2,4}>$/;

/** The text of SentencePiece symbols: ▁ is a space, markers and ids outside the vocabulary are nothing. */
export function symbolsText(symbols: readonly number[], vocabulary: readonly string[]): string {
  const pieces = symbols.map((symbol) => vocabulary[symbol] ?? "");
  return pieces
    .filter((piece) => !MARKERS.has(piece) && !LANGUAGE_TAG.test(piece))
    .map((piece) => piece.replaceAll("▁", " "))
    .join("");
}
