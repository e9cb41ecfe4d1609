/**
 * MLX affine quantization: per row and group of 64 inputs, w = q * scale + bias, with q of 4 or 8 bits packed into
 * uint32 words, little endian, low bits first.
 */
import { widen } from "./numbers.ts";
import type { TensorRef, Weights } from "./weights.ts";

export const GROUP_SIZE = 64;

export type QuantBits = 4 | 8;

/** A quantized matrix [rows, columns] by reference. */
export interface QuantizedMatrix {
  readonly bits: QuantBits;
  readonly rows: number;
  readonly columns: number;
  /** U32 [rows, columns * bits / 32]. */
  readonly weight: TensorRef;
  /** Floating [rows, columns / 64]. */
  readonly scales: TensorRef;
  readonly biases: TensorRef;
}

/** Whether the module at this scope is quantized: the presence of its scales decides. */
export const isQuantized = (module: Weights): boolean => module.has("scales");

/** The quantized matrix of a module. The packed width says whether it has 4 or 8 bits. */
export function quantizedMatrix(module: Weights, rows: number | null, columns: number): QuantizedMatrix {
  const stored = module.shapeOf("weight");
  const bits: QuantBits = stored?.[1] === columns / 4 ? 8 : 4;
  const weight = module.raw("weight", "U32", [rows, (columns * bits) / 32]);
  const known = weight.shape[0] as number;
  const groups = columns / GROUP_SIZE;
  return {
    bits,
    rows: known,
    columns,
    weight,
    scales: module.tensor("scales", [known, groups]),
    biases: module.tensor("biases", [known, groups]),
  };
}

/** One row as float32: only that row is read. */
export function dequantizeRow(module: Weights, matrix: QuantizedMatrix, row: number): Float32Array {
  const { bits, columns, weight, scales, biases } = matrix;
  const packed = module.bytes(weight, (row * columns * bits) / 8, (columns * bits) / 8);
  const scale = rowOf(module, scales, row);
  const bias = rowOf(module, biases, row);
  const values = new Float32Array(columns);
  for (let i = 0; i < columns; i++) {
    const group = Math.floor(i / GROUP_SIZE);
    const q = bits === 8 ? (packed[i] as number) : ((packed[i >> 1] as number) >> (4 * (i & 1))) & 15;
    values[i] = Math.fround(q * (scale[group] as number)) + (bias[group] as number);
  }
  return values;
}

/** One row of a floating matrix as float32. */
export function rowOf(module: Weights, matrix: TensorRef, row: number): Float32Array {
  const rowBytes = matrix.byteLength / (matrix.shape[0] as number);
  return widen(module.bytes(matrix, row * rowBytes, rowBytes), matrix.dtype);
}
