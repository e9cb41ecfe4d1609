/**
 * Reading of safetensors files: an 8-byte little-endian header length, a JSON header, one buffer without holes.
 *
 * The header is checked before any tensor is trusted, and tensor bytes are read from the file only when asked for.
 * Format: https://github.com/huggingface/safetensors (README, "Format").
 */
import { closeSync, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { CheckpointError } from "../errors.ts";

/** Element types, by the name that the header uses. */
export type TensorDtype =
  | "BOOL"
  | "U8"
  | "I8"
  | "U16"
  | "I16"
  | "F16"
  | "BF16"
  | "U32"
  | "I32"
  | "F32"
  | "U64"
  | "I64"
  | "F64";

/** Bytes of one element. */
export const ELEMENT_BYTES: Readonly<Record<TensorDtype, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
};

/** Where one tensor lies: `byteOffset` counts from the start of the file. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
  readonly byteOffset: number;
  readonly byteLength: number;
}

const LENGTH_BYTES = 8;
/** The format's own limit. */
const HEADER_BYTES_MAX = 100_000_000;
/** What stands in for a file that Git LFS has not fetched begins so; as a header's length it would be absurd. */
const LFS_BEGINNING = "version ";
/** `read` takes lengths below 2^31. */
const READ_BYTES_MAX = 1 << 30;

/** One open file. Owns its descriptor until `close`. */
export class SafetensorsFile {
  /** The file's real path: symbolic links are resolved, so that its folder holds it. */
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly byteLength: number;
  readonly #descriptor: number;
  #open = true;

  /** @throws {CheckpointError} `checkpoint_unreadable` or `checkpoint_corrupt`. */
  constructor(path: string) {
    try {
      this.path = realpathSync(path);
      this.#descriptor = openSync(this.path, "r");
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new CheckpointError(
        "checkpoint_unreadable",
        `${path}: cannot be opened (${code}); is the download complete?`,
        { cause },
      );
    }
    try {
      const facts = fstatSync(this.#descriptor);
      if (!facts.isFile()) throw new CheckpointError("checkpoint_unreadable", `${path}: not a file`);
      this.byteLength = facts.size;
      const header = this.#readHeader();
      this.metadata = header.metadata;
      this.tensors = header.tensors;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** `byteLength` bytes of a tensor from `byteStart` on, in a buffer of their own (so that any typed array fits). */
  read(entry: TensorEntry, byteStart: number = 0, byteLength: number = entry.byteLength - byteStart): Uint8Array {
    if (byteStart < 0 || byteLength < 0 || byteStart + byteLength > entry.byteLength) {
      throw new RangeError(
        `${entry.name}: bytes ${byteStart}..${byteStart + byteLength} of ${entry.byteLength} asked for`,
      );
    }
    const bytes = new Uint8Array(new ArrayBuffer(byteLength));
    this.#readAt(bytes, entry.byteOffset + byteStart);
    return bytes;
  }

  close(): void {
    if (this.#open) closeSync(this.#descriptor);
    this.#open = false;
  }

  #readAt(bytes: Uint8Array, position: number): void {
    let done = 0;
    while (done < bytes.length) {
      const wanted = Math.min(READ_BYTES_MAX, bytes.length - done);
      const got = readSync(this.#descriptor, bytes, done, wanted, position + done);
      if (got === 0) {
        throw new CheckpointError("checkpoint_corrupt", `${this.path}: ends ${bytes.length - done} bytes too early`);
      }
      done += got;
    }
  }

  #readHeader(): Header {
    const fail: Fail = (what) => {
      throw new CheckpointError(
        "checkpoint_corrupt",
        `${this.path}: ${what}; the file is damaged or incomplete, fetch it again`,
      );
    };
    if (this.byteLength < LENGTH_BYTES) fail(`has ${this.byteLength} bytes, too few for a safetensors header`);
    const prefix = new Uint8Array(LENGTH_BYTES);
    this.#readAt(prefix, 0);
    if (new TextDecoder().decode(prefix) === LFS_BEGINNING) {
      throw new CheckpointError(
        "checkpoint_unreadable",
        `${this.path}: a pointer of Git LFS, not the file itself; run git lfs pull in its directory`,
      );
    }
    const length = Number(new DataView(prefix.buffer).getBigUint64(0, true));
    if (length > HEADER_BYTES_MAX) fail(`states a header of ${length} bytes, more than ${HEADER_BYTES_MAX}`);
    if (length > this.byteLength - LENGTH_BYTES) {
      fail(`states a header of ${length} bytes and has ${this.byteLength - LENGTH_BYTES} after the length`);
    }
    const text = new Uint8Array(length);
    this.#readAt(text, LENGTH_BYTES);
    let json: unknown;
    try {
      json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
    } catch {
      fail("has a header that is not JSON");
    }
    return parseHeader(json, LENGTH_BYTES + length, this.byteLength, fail);
  }
}

interface Header {
  readonly tensors: Map<string, TensorEntry>;
  readonly metadata: Record<string, string>;
}

type Fail = (what: string) => never;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Checks every entry by itself, then that together they cover the buffer once: no overlap, no hole, no rest. */
function parseHeader(json: unknown, dataStart: number, fileEnd: number, fail: Fail): Header {
  if (!isRecord(json)) return fail("has a header that is not a JSON object");
  const tensors = new Map<string, TensorEntry>();
  const metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (name === "__metadata__") Object.assign(metadata, parseMetadata(value, fail));
    else tensors.set(name, parseEntry(name, value, dataStart, fileEnd, fail));
  }
  let end = dataStart;
  let before = "the header";
  for (const entry of [...tensors.values()].sort(byPlace)) {
    if (entry.byteOffset < end) fail(`tensor ${entry.name} overlaps ${before}`);
    if (entry.byteOffset > end) fail(`has ${entry.byteOffset - end} bytes between ${before} and ${entry.name}`);
    end = entry.byteOffset + entry.byteLength;
    before = entry.name;
  }
  if (end !== fileEnd) fail(`has ${fileEnd - end} bytes after its last tensor`);
  return { tensors, metadata };
}

/** By offset; an empty tensor comes before the one that shares its offset. */
const byPlace = (a: TensorEntry, b: TensorEntry): number => a.byteOffset - b.byteOffset || a.byteLength - b.byteLength;

function parseMetadata(value: unknown, fail: Fail): Record<string, string> {
  if (!isRecord(value) || Object.values(value).some((text) => typeof text !== "string")) {
    return fail("has __metadata__ that does not map strings to strings");
  }
  return value as Record<string, string>;
}

function parseEntry(name: string, value: unknown, dataStart: number, fileEnd: number, fail: Fail): TensorEntry {
  if (!isRecord(value)) return fail(`tensor ${name} is not described by an object`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== "string" || !Object.hasOwn(ELEMENT_BYTES, dtype)) {
    return fail(`tensor ${name} has the unknown dtype ${JSON.stringify(dtype)}`);
  }
  if (!Array.isArray(shape) || !shape.every(isCount)) return fail(`tensor ${name} has no valid shape`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    return fail(`tensor ${name} has no valid data_offsets`);
  }
  const [start, end] = offsets as [number, number];
  if (start > end || dataStart + end > fileEnd) {
    return fail(`tensor ${name} lies at ${start}..${end} of a buffer of ${fileEnd - dataStart} bytes`);
  }
  const byteLength = shape.reduce((product, size) => product * size, ELEMENT_BYTES[dtype as TensorDtype]);
  if (end - start !== byteLength) {
    return fail(`tensor ${name} (${dtype} [${shape}]) takes ${byteLength} bytes, and has ${end - start}`);
  }
  return { name, dtype: dtype as TensorDtype, shape, byteOffset: dataStart + start, byteLength };
}
