/** Reads the reference's outputs: a small safetensors reader of its own, so that a fault in ours cannot hide itself. */
import { readFileSync } from "node:fs";

export interface GoldenTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array | Int32Array | Uint32Array;
}

/** All tensors of a file of float32 and integer tensors. */
export function readGolden(path: string): Record<string, GoldenTensor> {
  const bytes = readFileSync(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes)) as Record<string, GoldenHeader>;
  const tensors: Record<string, GoldenTensor> = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets;
    const copy = new Uint8Array(bytes.subarray(8 + headerBytes + begin, 8 + headerBytes + end)).buffer;
    tensors[name] = { shape: entry.shape, data: values(entry.dtype, copy) };
  }
  return tensors;
}

function values(dtype: string, bytes: ArrayBuffer): GoldenTensor["data"] {
  if (dtype === "F32") return new Float32Array(bytes);
  if (dtype === "I32") return new Int32Array(bytes);
  if (dtype === "U32") return new Uint32Array(bytes);
  if (dtype === "I64") return Int32Array.from(new BigInt64Array(bytes), Number);
  throw new Error(`no reader for tensors of type ${dtype}`);
}

interface GoldenHeader {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

export function goldenFloats(tensors: Record<string, GoldenTensor>, name: string): Float32Array {
  const data = tensors[name]?.data;
  if (!(data instanceof Float32Array)) throw new Error(`no float32 tensor ${name}`);
  return data;
}

/** Ids and codes, whatever integer type the reference stored. */
export function goldenIds(tensors: Record<string, GoldenTensor>, name: string): number[] {
  const data = tensors[name]?.data;
  if (data === undefined) throw new Error(`no tensor ${name}`);
  return [...data];
}

export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) throw new Error(`${a.length} values against ${b.length}`);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(a[i]! - b[i]!);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}
