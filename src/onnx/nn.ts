/**
 * Blocks that most networks share. Each takes its weights from a scope of the checkpoint, under the names that the
 * checkpoint uses, and widens bf16 to float32 inside the graph: the runtime folds that when it loads.
 */
import { isQuantized } from "../checkpoint/mlx-quant.ts";
import type { ExpectedShape, TensorRef, Weights } from "../checkpoint/weights.ts";
import type { DType } from "./dtype.ts";
import { add, cast, mul, sigmoid } from "./ops.ts";
import { expand, split } from "./ops-layout.ts";
import { layerNormalization, matmulTransposed, rmsNormalization } from "./ops-neural.ts";
import { type Precision, quantizedLinear } from "./quantized.ts";
import { constant, external, fault, type Value } from "./value.ts";

const STORED: Readonly<Partial<Record<string, DType>>> = {
  F32: "f32",
  F16: "f16",
  BF16: "bf16",
  I32: "i32",
  I64: "i64",
  U8: "u8",
};

/** A stored tensor as it is. A stand-in for a missing one becomes zeros: `Weights.finish` reports it before any load. */
export function stored(ref: TensorRef): Value {
  const dtype = STORED[ref.dtype] ?? fault("stored", [], `${ref.name}: graphs take no ${ref.dtype}`);
  if (ref.file === null) return expand(constant(0, dtype === "bf16" || dtype === "f16" ? "f32" : dtype), ref.shape);
  return external({ file: ref.file, byteOffset: ref.byteOffset, byteLength: ref.byteLength }, dtype, ref.shape);
}

/** A floating parameter of this scope as float32. */
export const parameter = (weights: Weights, name: string, shape: ExpectedShape): Value =>
  cast(stored(weights.tensor(name, shape)), "f32");

export interface LinearOptions {
  readonly bias?: boolean;
  /** How a quantized matrix is multiplied. */
  readonly precision?: Precision;
}

/** x [.., inputs] -> [.., outputs] by `weight` [outputs, inputs], quantized or not as the checkpoint has it. */
export function linear(
  x: Value,
  weights: Weights,
  inputs: number,
  outputs: number,
  options: LinearOptions = {},
): Value {
  const product = isQuantized(weights)
    ? quantizedLinear(x, weights, inputs, outputs, options.precision ?? "exact")
    : matmulTransposed(x, parameter(weights, "weight", [outputs, inputs]));
  return options.bias === true ? add(product, parameter(weights, "bias", [outputs])) : product;
}

/** Over the last axis, with `weight` and `bias`. */
export const layerNorm = (x: Value, weights: Weights, size: number, epsilon: number = 1e-5): Value =>
  layerNormalization(x, parameter(weights, "weight", [size]), parameter(weights, "bias", [size]), epsilon);

/** Over the last axis. `offset` is added to the stored weight: 1 for Gemma's norms. */
export function rmsNorm(x: Value, weights: Weights, size: number, epsilon: number, offset: 0 | 1 = 0): Value {
  const weight = parameter(weights, "weight", [size]);
  return rmsNormalization(x, offset === 0 ? weight : add(weight, offset), epsilon);
}

export const silu = (x: Value): Value => mul(x, sigmoid(x));

/** The first half of the last axis, gated by the sigmoid of the second. */
export function glu(x: Value): Value {
  const half = x.size(-1) / 2;
  const [value, gate] = split(x, [half, half], -1) as [Value, Value];
  return mul(value, sigmoid(gate));
}
