/**
 * What a text token sounds like, from its spelling: a small bidirectional encoder over the token's characters, and two
 * flags. docs/voicechat-model.md, section 6. L characters, D the width.
 */
import type { Weights } from "../../../checkpoint/weights.ts";
import { CheckpointError } from "../../../errors.ts";
import { build, type Model } from "../../../onnx/build.ts";
import { linear, parameter } from "../../../onnx/nn.ts";
import { add, div, gather, matmul, mul, reduceMean, tanh } from "../../../onnx/ops.ts";
import { reshape, transpose } from "../../../onnx/ops-layout.ts";
import { softmax } from "../../../onnx/ops-neural.ts";
import { type Graph, type Runtime, tensor } from "../../../onnx/runtime.ts";
import { argument, type Value } from "../../../onnx/value.ts";
import type { CharacterEncoderConfig, TtsConfig } from "../config.ts";
import { gatedMlp, offsetNorm, rotate, rotationAt } from "./gemma.ts";

/** Embeddings that are kept; the rest is computed again. */
const KEPT_MAX = 4096;

export interface SubwordModels {
  readonly encoder: Model;
  readonly tables: SubwordTables;
}

export const subwordModels = (config: TtsConfig, weights: Weights): SubwordModels => ({
  encoder: encoderModel(config, weights),
  tables: subwordTables(config, weights),
});

/** characters i32 [L] of one token -> embedding [1, D]. */
function encoderModel(config: TtsConfig, weights: Weights): Model {
  const character = config.characterEncoder;
  const { hiddenSize, charVocabSize, headDim, rmsNormEps } = character;
  const characters = argument("characters", "i32", ["L"]);
  const cosines = argument("cosines", "f32", ["L", headDim / 2]);
  const sines = argument("sines", "f32", ["L", headDim / 2]);
  const encoder = weights.at("backbone.encoder");
  let x = mul(
    gather(parameter(weights.at("embed_tokens"), "weight", [charVocabSize, hiddenSize]), characters),
    Math.sqrt(hiddenSize),
  );
  for (let index = 0; index < character.numHiddenLayers; index++) {
    x = layer(character, x, cosines, sines, encoder.at(`layers.${index}`));
  }
  const mean = reduceMean(offsetNorm(x, encoder.at("norm"), hiddenSize, rmsNormEps), 0);
  const embedding = linear(mean, weights.at("proj_embedding"), hiddenSize, config.hiddenSize);
  return build("subword encoder", { characters, cosines, sines }, { embedding });
}

function layer(config: CharacterEncoderConfig, x: Value, cosines: Value, sines: Value, weights: Weights): Value {
  const { hiddenSize, rmsNormEps } = config;
  const norm = (value: Value, name: string): Value => offsetNorm(value, weights.at(name), hiddenSize, rmsNormEps);
  const heard = attention(config, norm(x, "pre_self_attn_layernorm"), cosines, sines, weights.at("self_attn"));
  const h = add(x, norm(heard, "post_self_attn_layernorm"));
  const mlp = gatedMlp(norm(h, "pre_feedforward_layernorm"), weights.at("mlp"), hiddenSize, config.intermediateSize);
  return add(h, norm(mlp, "post_feedforward_layernorm"));
}

/** Every character sees every other; the scores are bent to stay within ± the softcap. */
function attention(config: CharacterEncoderConfig, x: Value, cosines: Value, sines: Value, weights: Weights): Value {
  const { hiddenSize, numAttentionHeads: heads, numKeyValueHeads: groups, headDim, attnLogitSoftcapping } = config;
  // [L, heads * width] -> [groups, heads of a group, L, width]
  const project = (name: string, count: number): Value => {
    const flat = linear(x, weights.at(name), hiddenSize, count * headDim);
    return transpose(reshape(flat, ["L", groups, count / groups, headDim]), [1, 2, 0, 3]);
  };
  const q = rotate(project("q_proj", heads), cosines, sines);
  const k = rotate(project("k_proj", groups), cosines, sines);
  const scores = mul(matmul(q, transpose(k)), config.queryPreAttnScalar ** -0.5);
  const bent = mul(tanh(div(scores, attnLogitSoftcapping)), attnLogitSoftcapping);
  const mixed = transpose(matmul(softmax(bent), project("v_proj", groups)), [2, 0, 1, 3]);
  return linear(reshape(mixed, ["L", heads * headDim]), weights.at("o_proj"), heads * headDim, hiddenSize);
}

/** The flags of all ids, and what each flag adds: [flags, D]. */
interface SubwordTables {
  readonly continuation: FlagTable;
  readonly special: FlagTable;
}

interface FlagTable {
  readonly flags: Int32Array;
  /** Ids from here on have the flag of `otherId`. */
  readonly knownIds: number;
  readonly otherId: number;
  readonly rows: Float32Array;
}

function subwordTables(config: TtsConfig, weights: Weights): SubwordTables {
  const table = (scope: Weights, flagsName: string, embedding: string, kinds: number, spare: number): FlagTable => {
    const flags = scope.integers(flagsName, [null]);
    return {
      flags,
      knownIds: flags.length - spare,
      otherId: scope.integers("pad_tensor", [])[0] ?? 0,
      rows: scope.floats(`${embedding}.weight`, [kinds, config.characterEncoder.hiddenSize]),
    };
  };
  return {
    // The table of continuations has one more entry, for ids beyond the vocabulary.
    continuation: table(weights.at("subword_flag_emb"), "is_continuation", "cont_emb", 2, 1),
    special: table(weights.at("bos_eos_emb"), "special_flags", "special_emb", 3, 0),
  };
}

/** The characters that each token id is spelled with. */
type Spelling = (id: number) => readonly number[];

/**
 * Tokens of one character, in the order of their ids, are the alphabet; a token is the list of those of its characters that
 * the alphabet has.
 * @throws {CheckpointError} `checkpoint_tensor` when the alphabet is not the one that the embedding has rows for.
 */
function spellingOf(vocabulary: ReadonlyMap<string, number>, charVocabSize: number): Spelling {
  const single = [...vocabulary].filter(([token]) => [...token].length === 1).sort(([, a], [, b]) => a - b);
  // The last row is for padding.
  if (single.length + 1 !== charVocabSize) {
    throw new CheckpointError(
      "checkpoint_tensor",
      `tokenizer.json has ${single.length} tokens of one character, the subword encoder is made for ${charVocabSize - 1}`,
    );
  }
  const alphabet = new Map(single.map(([token], index) => [token, index]));
  const tokens = new Map([...vocabulary].map(([token, id]) => [id, token]));
  return (id) => [...(tokens.get(id) ?? "")].flatMap((character) => alphabet.get(character) ?? []);
}

/** Embeds tokens, and remembers what it has embedded: the result depends on the id alone. Shared by all sessions. */
export class SubwordEncoder {
  readonly #config: TtsConfig;
  readonly #graph: Graph;
  readonly #tables: SubwordTables;
  readonly #spelling: Spelling;
  readonly #kept = new Map<number, Float32Array>();

  private constructor(config: TtsConfig, graph: Graph, tables: SubwordTables, spelling: Spelling) {
    this.#config = config;
    this.#graph = graph;
    this.#tables = tables;
    this.#spelling = spelling;
  }

  /** `vocabulary` has the id of every token, added ones too. @throws {CheckpointError} when it does not fit. */
  static async load(
    runtime: Runtime,
    config: TtsConfig,
    models: SubwordModels,
    vocabulary: ReadonlyMap<string, number>,
  ): Promise<SubwordEncoder> {
    const spelling = spellingOf(vocabulary, config.characterEncoder.charVocabSize);
    return new SubwordEncoder(config, await runtime.load(models.encoder), models.tables, spelling);
  }

  /** [D]. The caller must not change it. */
  async embed(id: number): Promise<Float32Array> {
    const known = this.#kept.get(id);
    if (known !== undefined) return known;
    const embedding = this.unspelled(id);
    const spelled = await this.#spelled(id);
    for (let i = 0; i < spelled.length; i++) embedding[i]! += spelled[i]!;
    if (this.#kept.size >= KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as number);
    this.#kept.set(id, embedding);
    return embedding;
  }

  /** [D]: the flags alone, as the prompt's silent positions have it. */
  unspelled(id: number): Float32Array {
    const embedding = new Float32Array(this.#config.hiddenSize);
    for (const { flags, knownIds, otherId, rows } of [this.#tables.continuation, this.#tables.special]) {
      const flag = flags[id >= knownIds ? otherId : id] ?? 0;
      const row = flag * embedding.length;
      for (let i = 0; i < embedding.length; i++) embedding[i]! += rows[row + i]!;
    }
    return embedding;
  }

  async close(): Promise<void> {
    await this.#graph.close();
  }

  async #spelled(id: number): Promise<Float32Array> {
    const characters = this.#spelling(id);
    if (characters.length === 0) return new Float32Array(0);
    const { headDim, ropeBase } = this.#config.characterEncoder;
    const rotation = rotationAt([...characters.keys()], headDim, ropeBase);
    const { embedding } = await this.#graph.run({
      characters: tensor("i32", [characters.length], Int32Array.from(characters)),
      ...rotation,
    });
    return embedding!.data as Float32Array;
  }
}
