/**
 * Products with MLX-quantized matrices through ONNX Runtime's MatMulNBits, which multiplies int8 activations.
 *
 * MLX stores w = q * scale + bias per group of 64 inputs; MatMulNBits computes with (q - zero) * scale, zero being 8 or
 * 128. The rest, groupsum(x) . (bias + zero * scale), is a small product of its own.
 *
 * The kernel rounds each activation to q * s with s = max |x| / 127 per group. `exact` takes that rounding out: it feeds
 * what the kernel can represent, then what is left of it, then what is left of that, as three rows of one call (so the
 * weights are read once), and adds the rows: the error is float32's own. `fast` feeds the activations as they are.
 * `float` asks for a kernel that does not round: that of a GPU is no slower, and the one of the CPU is.
 */
import { GROUP_SIZE, type QuantizedMatrix, quantizedMatrix } from "../checkpoint/mlx-quant.ts";
import type { TensorRef, Weights } from "../checkpoint/weights.ts";
import { abs, add, cast, div, maximum, mul, reduceMax, reduceSum, round, sub } from "./ops.ts";
import { concat, expand, reshape } from "./ops-layout.ts";
import { matMulNBits, matmulTransposed } from "./ops-neural.ts";
import { constant, external, fault, type Value } from "./value.ts";

export type Precision = "exact" | "fast" | "float";

/** Rows that `exact` feeds. */
const PARTS = 3;
/** Keeps an all-zero group from dividing by zero. */
const SCALE_MIN = 1e-30;

/** x [1, inputs] -> [1, outputs]. */
export function quantizedLinear(
  x: Value,
  weights: Weights,
  inputs: number,
  outputs: number,
  precision: Precision,
): Value {
  if (x.rank !== 2 || x.dim(0) !== 1) fault("quantizedLinear", [x], "takes one row");
  const matrix = quantizedMatrix(weights, outputs, inputs);
  const groups = inputs / GROUP_SIZE;
  const scales = floats(matrix.scales);
  const rows = precision === "exact" ? exactRows(x, groups) : x;
  const products = matMulNBits(rows, packed(matrix), scales, {
    bits: matrix.bits,
    columns: inputs,
    rows: outputs,
    blockSize: GROUP_SIZE,
    accuracyLevel: precision === "float" ? 0 : 4,
  });
  const product = precision === "exact" ? reduceSum(products, 0) : products;
  const zero = matrix.bits === 4 ? 8 : 128;
  const offsets = add(floats(matrix.biases), mul(scales, zero));
  return add(product, matmulTransposed(groupSums(x, groups), offsets));
}

/** One split of x serves every product with x (q, k and v; both heads): keyed by the value. */
const splits = new WeakMap<Value, Value>();
const sums = new WeakMap<Value, Value>();

/** [1, inputs] -> [3, inputs]: three parts that the kernel represents exactly, and whose sum is x to float32. */
function exactRows(x: Value, groups: number): Value {
  const known = splits.get(x);
  if (known !== undefined) return known;
  const parts: Value[] = [];
  let rest = reshape(x, [groups, GROUP_SIZE]);
  for (let part = 0; part < PARTS - 1; part++) {
    const scale = maximum(div(reduceMax(abs(rest), 1), 127), SCALE_MIN);
    const rounded = mul(round(div(rest, scale)), scale);
    parts.push(rounded);
    rest = sub(rest, rounded);
  }
  parts.push(rest);
  const rows = concat(
    parts.map((part) => reshape(part, [1, groups * GROUP_SIZE])),
    0,
  );
  splits.set(x, rows);
  return rows;
}

/** [1, inputs] -> [1, groups]. */
function groupSums(x: Value, groups: number): Value {
  const known = sums.get(x);
  if (known !== undefined) return known;
  const value = reshape(reduceSum(reshape(x, [groups, GROUP_SIZE]), 1), [1, groups]);
  sums.set(x, value);
  return value;
}

/** The packed words as the bytes that they are: MLX's packing is the kernel's. */
function packed({ weight, rows, columns, bits }: QuantizedMatrix): Value {
  const shape = [rows, columns / GROUP_SIZE, (GROUP_SIZE * bits) / 8];
  if (weight.file === null) return expand(constant(0, "u8"), shape);
  return external({ file: weight.file, byteOffset: weight.byteOffset, byteLength: weight.byteLength }, "u8", shape);
}

/** Scales and biases are stored as bf16 (or f32), and used as f32. */
function floats(ref: TensorRef): Value {
  if (ref.file === null) return expand(constant(0), ref.shape);
  const dtype = ref.dtype === "BF16" ? "bf16" : ref.dtype === "F16" ? "f16" : "f32";
  return cast(
    external({ file: ref.file, byteOffset: ref.byteOffset, byteLength: ref.byteLength }, dtype, ref.shape),
    "f32",
  );
}
