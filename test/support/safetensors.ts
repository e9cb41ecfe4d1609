/** Writes safetensors files, well formed or not. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export interface Written {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export const f32 = (shape: readonly number[], numbers: ArrayLike<number>): Written => ({
  dtype: "F32",
  shape,
  bytes: new Uint8Array(Float32Array.from(numbers).buffer),
});

/** Header text and buffer as a file's bytes. */
export function fileOf(header: string, buffer: Uint8Array): Uint8Array {
  const text = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, buffer]);
}

export function encodeSafetensors(tensors: Readonly<Record<string, Written>>): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
  }
  return fileOf(JSON.stringify(header), Buffer.concat(Object.values(tensors).map(({ bytes }) => bytes)));
}

/** A directory that goes when the test ends. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "antiphon-test-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A checkpoint of one file. */
export function writeCheckpointOf(tensors: Readonly<Record<string, Written>>): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "model.safetensors"), encodeSafetensors(tensors));
  return directory;
}
