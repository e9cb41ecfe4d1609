/** Widening of stored numbers to float32. */
import type { TensorDtype } from "./safetensors.ts";

/** bf16 is the upper half of a float32. */
export function bf16ToFloat(bits: Uint16Array): Float32Array {
  const words = new Uint32Array(bits.length);
  for (let i = 0; i < bits.length; i++) words[i] = (bits[i] as number) << 16;
  return new Float32Array(words.buffer);
}

/** IEEE 754 half precision: 1 sign, 5 exponent, 10 fraction bits. */
export function f16ToFloat(bits: Uint16Array): Float32Array {
  const values = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const half = bits[i] as number;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    const size =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction === 0
            ? Number.POSITIVE_INFINITY
            : Number.NaN
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    values[i] = half & 0x8000 ? -size : size;
  }
  return values;
}

/** Bytes of a floating tensor as float32. `bytes` starts at the beginning of its buffer. */
export function widen(bytes: Uint8Array, dtype: TensorDtype): Float32Array {
  const buffer = bytes.buffer as ArrayBuffer;
  switch (dtype) {
    case "F32":
      return new Float32Array(buffer);
    case "BF16":
      return bf16ToFloat(new Uint16Array(buffer));
    case "F16":
      return f16ToFloat(new Uint16Array(buffer));
    default:
      throw new TypeError(`${dtype} is not a floating dtype`);
  }
}
