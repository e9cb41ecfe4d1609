/** Nemotron-H as plain loops in float64, one position at a time: an oracle that shares nothing with the graphs. */
import type { Weights } from "../../src/checkpoint/weights.ts";
import type { TextConfig } from "../../src/engines/voicechat/config.ts";

type Vector = ArrayLike<number>;

const silu = (x: number): number => x / (1 + Math.exp(-x));
const dot = (a: Vector, b: Vector, bStart = 0): number => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[bStart + i]!;
  return sum;
};
const rmsNorm = (x: number[], epsilon: number): number[] => {
  const scale = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
  return x.map((value) => value * scale);
};

interface Memory {
  conv: number[][];
  state: number[];
  keys: number[][];
  values: number[][];
}

export class PlainLanguage {
  readonly #config: TextConfig;
  readonly #weights: Weights;
  readonly #tables = new Map<string, Float32Array>();
  readonly #memory: Memory[];

  constructor(config: TextConfig, llm: Weights) {
    this.#config = config;
    this.#weights = llm;
    const stateSize = config.mambaNumHeads * config.mambaHeadDim * config.ssmStateSize;
    this.#memory = config.layers.map(() => ({
      conv: [],
      state: new Array<number>(stateSize).fill(0),
      keys: [],
      values: [],
    }));
  }

  step(embedding: Vector): number[] {
    let x = Array.from(embedding);
    for (const [layer, kind] of this.#config.layers.entries()) {
      const normed = this.#scaled(rmsNorm(x, this.#config.layerNormEpsilon), `layers.${layer}.norm.weight`);
      const mixer = `layers.${layer}.mixer`;
      const mixed =
        kind === "M"
          ? this.#mamba(normed, mixer, layer)
          : kind === "*"
            ? this.#attention(normed, mixer, layer)
            : this.#mlp(normed, mixer);
      x = x.map((value, i) => value + mixed[i]!);
    }
    return this.#scaled(rmsNorm(x, this.#config.layerNormEpsilon), "norm_f.weight");
  }

  #table(name: string): Float32Array {
    const known = this.#tables.get(name) ?? this.#weights.floats(name, this.#weights.shapeOf(name)!);
    this.#tables.set(name, known);
    return known;
  }
  #scaled(x: number[], name: string): number[] {
    const weight = this.#table(name);
    return x.map((value, i) => value * weight[i]!);
  }
  #linear(x: number[], name: string): number[] {
    const weight = this.#table(`${name}.weight`);
    return Array.from({ length: weight.length / x.length }, (_, row) => dot(x, weight, row * x.length));
  }
  #mlp(x: number[], name: string): number[] {
    return this.#linear(
      this.#linear(x, `${name}.up_proj`).map((value) => Math.max(0, value) ** 2),
      `${name}.down_proj`,
    );
  }

  #attention(x: number[], name: string, layer: number): number[] {
    const { numAttentionHeads: heads, numKeyValueHeads: shared, headDim } = this.#config;
    const { keys, values } = this.#memory[layer]!;
    const q = this.#linear(x, `${name}.q_proj`);
    keys.push(this.#linear(x, `${name}.k_proj`));
    values.push(this.#linear(x, `${name}.v_proj`));
    const seen = Array.from({ length: heads }, (_, head) => {
      const at = Math.floor(head / (heads / shared)) * headDim;
      const query = q.slice(head * headDim, (head + 1) * headDim);
      const scores = keys.map((key) => Math.exp(dot(query, key, at) / Math.sqrt(headDim)));
      const total = scores.reduce((sum, score) => sum + score, 0);
      return Array.from({ length: headDim }, (_, i) =>
        values.reduce((sum, value, t) => sum + (scores[t]! / total) * value[at + i]!, 0),
      );
    });
    return this.#linear(seen.flat(), `${name}.o_proj`);
  }

  #mamba(x: number[], name: string, layer: number): number[] {
    const { mambaNumHeads: H, mambaHeadDim: P, nGroups: G, ssmStateSize: N, convKernel, timeStepLimit } = this.#config;
    const memory = this.#memory[layer]!;
    const [inner, convolved] = [H * P, H * P + 2 * G * N];
    const projected = this.#linear(x, `${name}.in_proj`);
    memory.conv.push(projected.slice(inner, inner + convolved));
    const [taps, bias] = [this.#table(`${name}.conv1d.weight`), this.#table(`${name}.conv1d.bias`)];
    const mixed = Array.from({ length: convolved }, (_, channel) => {
      let sum = bias[channel]!;
      for (let back = 0; back < convKernel; back++) {
        sum += taps[channel * convKernel + convKernel - 1 - back]! * (memory.conv.at(-1 - back)?.[channel] ?? 0);
      }
      return silu(sum);
    });
    const y: number[] = [];
    for (let head = 0; head < H; head++) {
      const group = Math.floor(head / (H / G)) * N;
      const raw = Math.log1p(Math.exp(projected[inner + convolved + head]! + this.#table(`${name}.dt_bias`)[head]!));
      const dt = Math.min(timeStepLimit[1], Math.max(timeStepLimit[0], raw));
      const decay = Math.exp(-dt * Math.exp(this.#table(`${name}.A_log`)[head]!));
      for (let p = 0; p < P; p++) {
        const value = mixed[head * P + p]!;
        let sum = this.#table(`${name}.D`)[head]! * value;
        for (let n = 0; n < N; n++) {
          const at = (head * P + p) * N + n;
          memory.state[at] = decay * memory.state[at]! + dt * value * mixed[inner + group + n]!;
          sum += memory.state[at]! * mixed[inner + G * N + group + n]!;
        }
        y.push(sum);
      }
    }
    const gated = y.map((value, i) => silu(projected[i]!) * value);
    const width = inner / G;
    const normed = Array.from({ length: G }, (_, group) =>
      rmsNorm(gated.slice(group * width, (group + 1) * width), this.#config.layerNormEpsilon),
    );
    return this.#linear(this.#scaled(normed.flat(), `${name}.norm.weight`), `${name}.out_proj`);
  }
}
