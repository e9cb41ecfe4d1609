/** The loaded language model, and the buffers in which a session keeps what it needs of the past. */
import { type FloatTensor, type Graph, type Runtime, type Tensor, tensor, zeros } from "../../onnx/runtime.ts";
import { assert } from "../../util/assert.ts";
import type { TextConfig } from "./config.ts";
import { requireFinite } from "./finite.ts";
import { KeyValueCache } from "./networks/key-value-cache.ts";
import { type LanguageModels, mambaSizes, PENDING, type RowPlace } from "./networks/nemotron-h.ts";

/** One session's language state. Owned and written by `LanguageModel`. */
export interface LanguageState {
  /** Positions so far. */
  positions: number;
  readonly attention: KeyValueCache;
  readonly mamba: ReadonlyMap<number, MambaState>;
}

/** Shapes as in nemotron-h.ts. */
export interface MambaState {
  /** Row of the next position among the pending ones. */
  pending: number;
  base: FloatTensor;
  readonly conv: FloatTensor;
  readonly x: FloatTensor;
  readonly B: FloatTensor;
  /** What is left of each pending row, and of the base. */
  readonly weight: FloatTensor;
  readonly kept: FloatTensor;
}

export interface Tokens {
  readonly text: number;
  readonly function: number;
}

export interface Logits {
  readonly text: Float32Array;
  readonly function: Float32Array;
}

/** Shared by all sessions; each brings its own state. */
export class LanguageModel {
  readonly #config: TextConfig;
  readonly #models: LanguageModels;
  readonly #body: Graph;
  readonly #fold: Graph;
  readonly #heads: Graph;
  /** Where a row of an attention layer lies, by the name of its feed; the rows of the Mamba layers. */
  readonly #attentionRows: ReadonlyMap<string, RowPlace>;
  readonly #mambaRows: readonly RowPlace[];
  /** Row among PENDING at which each Mamba layer folds first: spread, so that few fold at the same position. */
  readonly #turns: ReadonlyMap<number, number>;

  private constructor(config: TextConfig, models: LanguageModels, body: Graph, fold: Graph, heads: Graph) {
    this.#config = config;
    this.#models = models;
    this.#body = body;
    this.#fold = fold;
    this.#heads = heads;
    const mamba = layersOf(config, "M");
    this.#turns = new Map(mamba.map((layer, index) => [layer, 1 + Math.floor((index * PENDING) / mamba.length)]));
    const ofMamba = new Set(mamba);
    this.#mambaRows = models.rows.filter(({ layer }) => ofMamba.has(layer));
    const ofAttention = models.rows.filter(({ layer }) => !ofMamba.has(layer));
    this.#attentionRows = new Map(ofAttention.map((place) => [`${place.name}.${place.layer}`, place]));
  }

  static async load(runtime: Runtime, config: TextConfig, models: LanguageModels): Promise<LanguageModel> {
    const body = await runtime.load(models.body);
    const fold = await runtime.load(models.fold);
    return new LanguageModel(config, models, body, fold, await runtime.load(models.heads));
  }

  initialState(): LanguageState {
    const { numKeyValueHeads, headDim } = this.#config;
    const layers = layersOf(this.#config, "*");
    return {
      positions: 0,
      attention: new KeyValueCache({ layers, heads: [numKeyValueHeads], width: headDim, window: null }),
      mamba: new Map(layersOf(this.#config, "M").map((layer) => [layer, this.#emptyMamba()])),
    };
  }

  /** Embedding of a token, [D]. */
  embed(token: number): Float32Array {
    return this.#models.embedding(token);
  }

  /**
   * One position: fused embedding [D] -> hidden row [D]. The state moves only when the run has succeeded.
   * Positions of one session must not overlap in time.
   */
  async step(state: LanguageState, embedding: Float32Array): Promise<Float32Array> {
    const x = tensor("f32", [1, embedding.length], embedding);
    const feeds: Record<string, Tensor> = { x, ...state.attention.feeds() };
    for (const [layer, parts] of state.mamba) {
      for (const [name, part] of Object.entries(parts)) {
        if (typeof part === "object") feeds[`${name}.${layer}`] = part;
      }
    }
    const { hidden, rows } = await this.#body.run(feeds);
    const given = requireFinite("language model", (hidden as FloatTensor).data);
    if (rows !== undefined) this.#remember(state, rows.data as Float32Array);
    await this.#foldDue(state);
    return given;
  }

  /** The best token of each channel for a hidden row. */
  async tokens(hidden: Float32Array): Promise<Tokens> {
    const result = await this.#heads.run({ hidden: tensor("f32", [1, hidden.length], hidden) }, ["text", "function"]);
    return { text: Number(result.text.data[0]), function: Number(result.function.data[0]) };
  }

  /** All scores of each channel. */
  async logits(hidden: Float32Array): Promise<Logits> {
    const feeds = { hidden: tensor("f32", [1, hidden.length], hidden) };
    const { textLogits, functionLogits } = await this.#heads.run(feeds, ["textLogits", "functionLogits"]);
    return { text: textLogits.data as Float32Array, function: functionLogits.data as Float32Array };
  }

  /** The Mamba state of a layer, written out: [H, P, N]. */
  async mambaState(state: LanguageState, layer: number): Promise<Float32Array> {
    const parts = state.mamba.get(layer);
    assert(parts !== undefined, `layer ${layer} is not a Mamba layer`);
    return (await this.#folded(parts)).data;
  }

  async close(): Promise<void> {
    await this.#body.close();
    await this.#fold.close();
    await this.#heads.close();
  }

  #emptyMamba(): MambaState {
    const { mambaNumHeads: H, mambaHeadDim: P, nGroups: G, ssmStateSize: N, convKernel } = this.#config;
    return {
      pending: 0,
      base: zeros(G, (H / G) * P, N),
      conv: zeros(convKernel - 1, mambaSizes(this.#config).convolved),
      x: zeros(H, PENDING, P),
      B: zeros(G, PENDING, N),
      weight: zeros(G, H / G, PENDING),
      kept: tensor("f32", [1, H], new Float32Array(H).fill(1)),
    };
  }

  #remember(state: LanguageState, rows: Float32Array): void {
    const at = ({ start, end }: RowPlace): Float32Array => rows.subarray(start, end);
    state.attention.append((name) => at(this.#attentionRows.get(name)!));
    for (const place of this.#mambaRows) this.#rememberMamba(state.mamba.get(place.layer)!, place.name, at(place));
    for (const parts of state.mamba.values()) parts.pending++;
    state.positions++;
  }

  #rememberMamba(parts: MambaState, name: string, row: Float32Array): void {
    const { mambaHeadDim: P, ssmStateSize: N } = this.#config;
    const { pending } = parts;
    if (name === "conv") {
      parts.conv.data.copyWithin(0, row.length);
      parts.conv.data.set(row, parts.conv.data.length - row.length);
    } else if (name === "decay") {
      decayWeights(parts, row);
    } else if (name === "x") scatter(parts.x.data, row, P, PENDING, pending);
    else scatter(parts.B.data, row, N, PENDING, pending);
  }

  /** Folds the layers whose turn it is, before their pending rows run out. */
  async #foldDue(state: LanguageState): Promise<void> {
    for (const [layer, turn] of this.#turns) {
      if (state.positions % PENDING !== turn % PENDING) continue;
      const parts = state.mamba.get(layer)!;
      parts.base = await this.#folded(parts);
      parts.pending = 0;
      parts.weight.data.fill(0);
      parts.kept.data.fill(1);
    }
  }

  async #folded({ base, x, B, weight, kept }: MambaState): Promise<FloatTensor> {
    const { state } = await this.#fold.run({ base, x, B, weight, kept }, ["state"]);
    return state as FloatTensor;
  }
}

/** The base and the rows before shrink by this position's decay, per head; its own row counts in full. */
function decayWeights({ weight, kept, pending }: MambaState, decay: Float32Array): void {
  for (let head = 0; head < decay.length; head++) {
    const factor = decay[head] as number;
    kept.data[head] = (kept.data[head] as number) * factor;
    const at = head * PENDING;
    for (let row = 0; row < pending; row++) weight.data[at + row] = (weight.data[at + row] as number) * factor;
    weight.data[at + pending] = 1;
  }
}

/** Writes the pieces of `row`, `width` each, to place `at` of each of the target's blocks of `places` pieces. */
function scatter(target: Float32Array, row: Float32Array, width: number, places: number, at: number): void {
  for (let from = 0, block = 0; from < row.length; from += width, block++) {
    target.set(row.subarray(from, from + width), (block * places + at) * width);
  }
}

const layersOf = ({ layers }: TextConfig, kind: "M" | "*"): number[] =>
  [...layers.keys()].filter((layer) => layers[layer] === kind);
