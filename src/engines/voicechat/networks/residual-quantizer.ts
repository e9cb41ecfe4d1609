/**
 * Vectors as lists of codes: each codebook names the vector nearest to what the ones before it left over.
 *
 * T positions, D the width of a vector, Q codebooks of K vectors. A code of K is the mask: it adds nothing.
 */
import type { TensorRef } from "../../../checkpoint/weights.ts";
import { stored } from "../../../onnx/nn.ts";
import { add, argMin, cast, gather, less, minimum, mul, reduceSum, sub, where } from "../../../onnx/ops.ts";
import { concat, slice, squeeze, unsqueeze } from "../../../onnx/ops-layout.ts";
import { matmulTransposed } from "../../../onnx/ops-neural.ts";
import type { Value } from "../../../onnx/value.ts";

/** A stored tensor [Q, K, D] as Q codebooks [K, D], which stay where they lie in the file. */
export function unstackCodebooks(stack: TensorRef): Value[] {
  const [count = 0, ...shape] = stack.shape;
  const byteLength = stack.byteLength / count;
  return Array.from({ length: count }, (_, index) =>
    stored({ ...stack, shape, byteLength, byteOffset: stack.byteOffset + index * byteLength }),
  );
}

export interface Quantized {
  /** i32 [T, codebooks.length] */
  readonly codes: Value;
  /** [T, D]: `sum` and the vectors of the codes. */
  readonly sum: Value;
}

/** The codes of `x` [T, D] by these codebooks in turn. `sum` is that of the codebooks before them, or null. */
export function quantize(x: Value, codebooks: readonly Value[], before: Value | null = null): Quantized {
  let residual = x;
  let sum = before;
  const codes = codebooks.map((codebook) => {
    const vectors = cast(codebook, "f32");
    // |x - v|² without |x|², which is the same for every v.
    const norms = reduceSum(mul(vectors, vectors), -1, false);
    const code = argMin(sub(norms, mul(matmulTransposed(residual, vectors), 2)), -1);
    const chosen = pick(codebook, code);
    residual = sub(residual, chosen);
    sum = sum === null ? chosen : add(sum, chosen);
    return unsqueeze(cast(code, "i32"), 1);
  });
  return { codes: concat(codes, 1), sum: sum ?? x };
}

/** The sum [T, D] of the vectors that `codes` [T, Q] names, codebook by codebook. */
export function dequantize(codes: Value, codebooks: readonly Value[]): Value {
  return codebooks
    .map((codebook, index) => {
      const size = codebook.size(0);
      const code = squeeze(slice(codes, 1, index, index + 1), 1);
      return where(unsqueeze(less(code, size), 1), pick(codebook, minimum(code, size - 1)), 0);
    })
    .reduce(add);
}

/** Rows are picked first and widened after: the codebook needs no float32 copy for it. */
const pick = (codebook: Value, code: Value): Value => cast(gather(codebook, code), "f32");
