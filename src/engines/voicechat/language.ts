/** The loaded language model, and the buffers in which a session keeps what it needs of the past. */
import { type FloatTensor, type Graph, type Runtime, type Tensor, tensor, zeros } from "../../onnx/runtime.ts";
import { assert } from "../../util/assert.ts";
import type { TextConfig } from "./config.ts";
import { requireFinite } from "./finite.ts";
import { type LanguageModels, mambaSizes, PENDING } from "./networks/nemotron-h.ts";

/** Positions by which the attention caches grow. */
const GROWTH = 128;
/** Added to scores of positions that are not filled yet. */
const MASKED = -1e30;

/** One session's language state. Owned and written by `LanguageModel`. */
export interface LanguageState {
  /** Positions so far. */
  positions: number;
  /** Room in the attention caches, in positions. */
  capacity: number;
  /** [1, capacity]: 0 where a position is filled. */
  mask: FloatTensor;
  readonly layers: ReadonlyMap<number, MambaState | AttentionState>;
}

/** Shapes as in nemotron-h.ts. */
export interface MambaState {
  readonly kind: "M";
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

export interface AttentionState {
  readonly kind: "*";
  keys: FloatTensor;
  values: FloatTensor;
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
  /** Row among PENDING at which each Mamba layer folds first: spread, so that few fold at the same position. */
  readonly #turns: ReadonlyMap<number, number>;

  private constructor(config: TextConfig, models: LanguageModels, body: Graph, fold: Graph, heads: Graph) {
    this.#config = config;
    this.#models = models;
    this.#body = body;
    this.#fold = fold;
    this.#heads = heads;
    const mamba = [...config.layers.keys()].filter((layer) => config.layers[layer] === "M");
    this.#turns = new Map(mamba.map((layer, index) => [layer, 1 + Math.floor((index * PENDING) / mamba.length)]));
  }

  static async load(runtime: Runtime, config: TextConfig, models: LanguageModels): Promise<LanguageModel> {
    const body = await runtime.load(models.body);
    const fold = await runtime.load(models.fold);
    return new LanguageModel(config, models, body, fold, await runtime.load(models.heads));
  }

  initialState(): LanguageState {
    const layers = new Map<number, MambaState | AttentionState>();
    for (const [layer, kind] of this.#config.layers.entries()) {
      if (kind === "M") layers.set(layer, this.#emptyMamba());
      if (kind === "*") layers.set(layer, this.#emptyAttention(GROWTH));
    }
    const mask = tensor("f32", [1, GROWTH], new Float32Array(GROWTH).fill(MASKED));
    return { positions: 0, capacity: GROWTH, mask, layers };
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
    const feeds: Record<string, Tensor> = { x: tensor("f32", [1, embedding.length], embedding) };
    if (this.#config.layers.includes("*")) feeds["mask"] = state.mask;
    for (const [layer, parts] of state.layers) {
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
    const parts = state.layers.get(layer);
    assert(parts?.kind === "M", `layer ${layer} is not a Mamba layer`);
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
      kind: "M",
      pending: 0,
      base: zeros(G, (H / G) * P, N),
      conv: zeros(convKernel - 1, mambaSizes(this.#config).convolved),
      x: zeros(H, PENDING, P),
      B: zeros(G, PENDING, N),
      weight: zeros(G, H / G, PENDING),
      kept: tensor("f32", [1, H], new Float32Array(H).fill(1)),
    };
  }

  #emptyAttention(capacity: number): AttentionState {
    const { numKeyValueHeads: shared, headDim } = this.#config;
    return { kind: "*", keys: zeros(shared, headDim, capacity), values: zeros(shared, capacity, headDim) };
  }

  #remember(state: LanguageState, rows: Float32Array): void {
    if (state.positions === state.capacity) this.#grow(state);
    for (const { layer, name, start, end } of this.#models.rows) {
      const parts = state.layers.get(layer) as MambaState | AttentionState;
      const row = rows.subarray(start, end);
      if (parts.kind === "*") this.#rememberAttention(state, parts, name, row);
      else this.#rememberMamba(parts, name, row);
    }
    for (const parts of state.layers.values()) if (parts.kind === "M") parts.pending++;
    state.mask.data[state.positions] = 0;
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

  #rememberAttention(state: LanguageState, parts: AttentionState, name: string, row: Float32Array): void {
    const { capacity, positions } = state;
    if (name === "value") scatter(parts.values.data, row, this.#config.headDim, capacity, positions);
    else for (let i = 0; i < row.length; i++) parts.keys.data[i * capacity + positions] = row[i] as number;
  }

  /** Room for GROWTH more positions. */
  #grow(state: LanguageState): void {
    const capacity = state.capacity + GROWTH;
    for (const parts of state.layers.values()) {
      if (parts.kind !== "*") continue;
      const { keys, values } = this.#emptyAttention(capacity);
      respace(parts.keys.data, state.capacity, keys.data, capacity);
      const { headDim } = this.#config;
      respace(parts.values.data, state.capacity * headDim, values.data, capacity * headDim);
      parts.keys = keys;
      parts.values = values;
    }
    const mask = new Float32Array(capacity).fill(MASKED);
    mask.set(state.mask.data);
    state.mask = tensor("f32", [1, capacity], mask);
    state.capacity = capacity;
  }

  /** Folds the layers whose turn it is, before their pending rows run out. */
  async #foldDue(state: LanguageState): Promise<void> {
    for (const [layer, turn] of this.#turns) {
      if (state.positions % PENDING !== turn % PENDING) continue;
      const parts = state.layers.get(layer) as MambaState;
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

/** Copies blocks of `fromSize` to the beginnings of blocks of `toSize`. */
function respace(from: Float32Array, fromSize: number, to: Float32Array, toSize: number): void {
  for (let block = 0; block * fromSize < from.length; block++) {
    to.set(from.subarray(block * fromSize, (block + 1) * fromSize), block * toSize);
  }
}
