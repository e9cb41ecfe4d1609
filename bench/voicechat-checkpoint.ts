/**
 * Writes a VoiceChat checkpoint of the published dimensions with random weights: what counts is their size, not what they
 * say. The embedding table, of which a run reads a few rows, is a hole in the file.
 */
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

import { type Bits, config, type Kind, type PlannedTensor, plannedTensors } from "./voicechat-dimensions.ts";

/** Writes into `directory` unless a checkpoint is there already. */
export function writeCheckpoint(directory: string, bits: Bits): void {
  if (existsSync(join(directory, "config.json"))) return;
  mkdirSync(directory, { recursive: true });
  writeTensors(join(directory, "model.safetensors"), plannedTensors(bits), bits);
  writeFileSync(join(directory, "config.json"), `${JSON.stringify(config(bits), null, 1)}\n`);
}

const DTYPES: Readonly<Record<Kind, readonly [string, number]>> = {
  weight: ["BF16", 2],
  norm: ["BF16", 2],
  offsetNorm: ["BF16", 2],
  bias: ["BF16", 2],
  aLog: ["F32", 4],
  packed: ["U32", 4],
  hole: ["U32", 4],
  scale: ["BF16", 2],
  quantBias: ["BF16", 2],
  integer: ["I32", 4],
};

const BLOCK_BYTES = 1 << 24;

function writeTensors(path: string, tensors: readonly PlannedTensor[], bits: Bits): void {
  const header: Record<string, unknown> = { __metadata__: { format: "mlx" } };
  let end = 0;
  for (const { name, shape, kind } of tensors) {
    const [dtype, bytes] = DTYPES[kind];
    const start = end;
    end += shape.reduce((product, size) => product * size, bytes);
    header[name] = { dtype, shape, data_offsets: [start, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  const file = openSync(path, "w");
  writeSync(file, prefix);
  writeSync(file, text);
  ftruncateSync(file, 8 + text.length + end);
  let at = 8 + text.length;
  for (const [index, { shape, kind }] of tensors.entries()) {
    const length = shape.reduce((product, size) => product * size, DTYPES[kind][1]);
    if (kind !== "hole") writeRepeated(file, blockOf(kind, bits, length), index, at, length);
    at += length;
  }
  closeSync(file);
}

/** Starts somewhere else in the block for each tensor: the runtime would store equal tensors once. */
function writeRepeated(file: number, block: Buffer, index: number, at: number, length: number): void {
  let from = block.length === BLOCK_BYTES ? (index * 104_729 * 4) % BLOCK_BYTES : 0;
  for (let done = 0; done < length; ) {
    const count = Math.min(block.length - from, length - done);
    writeSync(file, block, from, count, at + done);
    done += count;
    from = 0;
  }
}

const blocks = new Map<string, Buffer>();

/** Repeated as often as a tensor needs it. */
function blockOf(kind: Kind, bits: Bits, length: number): Buffer {
  const known = blocks.get(kind);
  if (known !== undefined) return known;
  if (kind === "aLog")
    return Buffer.from(Float32Array.from({ length: length / 4 }, (_, index) => Math.log(index + 1)).buffer);
  const block = Buffer.alloc(BLOCK_BYTES);
  const scale = bits === 4 ? 0.0022 : 0.00014;
  for (let at = 0; at < BLOCK_BYTES; at += 2) block.writeUInt16LE(numberOf(kind, scale, bits) & 0xffff, at);
  if (kind === "integer") block.fill(0);
  blocks.set(kind, block);
  return block;
}

/** Sixteen bits: a bf16 number, or two packed bytes. */
function numberOf(kind: Kind, scale: number, bits: Bits): number {
  const random = (): number => (Math.random() + Math.random() + Math.random() - 1.5) * 2;
  switch (kind) {
    case "packed":
      return Math.floor(Math.random() * 65_536);
    case "scale":
      return bf16(scale);
    case "quantBias":
      return bf16(-scale * (bits === 4 ? 7.5 : 127.5));
    case "norm":
      return bf16(1 + 0.1 * random());
    case "weight":
      return bf16(0.02 * random());
    default:
      return bf16(0.1 * random());
  }
}

const word = new DataView(new ArrayBuffer(4));

function bf16(value: number): number {
  word.setFloat32(0, value);
  return word.getUint16(0);
}
