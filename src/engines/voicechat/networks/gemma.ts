/** What EAR-TTS takes from Gemma: norms whose weight is an offset from one, gated MLPs, rotary positions. */
import type { Weights } from "../../../checkpoint/weights.ts";
import { linear, rmsNorm } from "../../../onnx/nn.ts";
import { add, mul, sub } from "../../../onnx/ops.ts";
import { concat, split } from "../../../onnx/ops-layout.ts";
import { gelu } from "../../../onnx/ops-neural.ts";
import { type FloatTensor, tensor } from "../../../onnx/runtime.ts";
import type { Value } from "../../../onnx/value.ts";

export const offsetNorm = (x: Value, weights: Weights, size: number, epsilon: number): Value =>
  rmsNorm(x, weights, size, epsilon, 1);

/** down(gelu(gate x) · up x), [.., size] -> [.., size]. */
export function gatedMlp(x: Value, weights: Weights, size: number, hidden: number): Value {
  const gate = gelu(linear(x, weights.at("gate_proj"), size, hidden), "tanh");
  return linear(mul(gate, linear(x, weights.at("up_proj"), size, hidden)), weights.at("down_proj"), hidden, size);
}

/** Turns pairs (i, i + width / 2) of the last axis by angles whose cosines and sines are [positions, width / 2]. */
export function rotate(x: Value, cosines: Value, sines: Value): Value {
  const half = x.size(-1) / 2;
  const [a, b] = split(x, [half, half], -1) as [Value, Value];
  return concat([sub(mul(a, cosines), mul(b, sines)), add(mul(a, sines), mul(b, cosines))], -1);
}

export interface Rotation {
  /** [positions, width / 2] */
  readonly cosines: FloatTensor;
  readonly sines: FloatTensor;
}

const { fround } = Math;

/** Angles position · base^(-2i / width), in the float32 steps of the reference: at late positions the last bits show. */
export function rotationAt(positions: readonly number[], width: number, base: number): Rotation {
  const half = width / 2;
  const exponent = fround(fround(Math.log(base)) / half);
  const frequencies = Array.from({ length: half }, (_, i) => fround(Math.exp(fround(-i * exponent))));
  const angles = positions.flatMap((position) => frequencies.map((frequency) => fround(position * frequency)));
  const shape = [positions.length, half];
  return {
    cosines: tensor("f32", shape, Float32Array.from(angles, Math.cos)),
    sines: tensor("f32", shape, Float32Array.from(angles, Math.sin)),
  };
}
