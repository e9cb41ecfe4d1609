/** Element types of graph values, with ONNX's numbers for them (onnx.proto, TensorProto.DataType). */

export type DType = "f32" | "f16" | "bf16" | "f64" | "i8" | "u8" | "i32" | "i64" | "bool";

interface DTypeFacts {
  readonly code: number;
  readonly bytes: number;
}

export const DTYPES: Readonly<Record<DType, DTypeFacts>> = {
  f32: { code: 1, bytes: 4 },
  u8: { code: 2, bytes: 1 },
  i8: { code: 3, bytes: 1 },
  i32: { code: 6, bytes: 4 },
  i64: { code: 7, bytes: 8 },
  bool: { code: 9, bytes: 1 },
  f16: { code: 10, bytes: 2 },
  f64: { code: 11, bytes: 8 },
  bf16: { code: 16, bytes: 2 },
};

export const isFloat = (dtype: DType): boolean =>
  dtype === "f32" || dtype === "f16" || dtype === "bf16" || dtype === "f64";

/** What ONNX takes as indices. */
export const isIndex = (dtype: DType): boolean => dtype === "i32" || dtype === "i64";

export const isInteger = (dtype: DType): boolean =>
  dtype === "i8" || dtype === "u8" || dtype === "i32" || dtype === "i64";
