/** Typed access to a checkpoint's tensors, with an account of what was asked for, so that loading is strict. */
import { CheckpointError } from "../errors.ts";
import type { Checkpoint, StoredTensor } from "./checkpoint.ts";
import { widen } from "./numbers.ts";
import { ELEMENT_BYTES, type TensorDtype } from "./safetensors.ts";

/** The expected shape; null leaves a dimension to the checkpoint. */
export type ExpectedShape = readonly (number | null)[];

/** A tensor by reference: enough to read it, or to name it as external data of a graph. */
export interface TensorRef {
  readonly name: string;
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
  /** Absolute path of the file, and the tensor's first byte in it. Null when the checkpoint lacks the tensor. */
  readonly file: string | null;
  readonly byteOffset: number;
  readonly byteLength: number;
}

const FLOATS: readonly TensorDtype[] = ["F32", "BF16", "F16"];
const INTEGERS: readonly TensorDtype[] = ["I32", "I64", "U8", "I8", "U32"];

/** Tensors that one message names. */
const LINES_MAX = 20;

/** What all scopes of one checkpoint share. */
class Account {
  readonly checkpoint: Checkpoint;
  readonly used = new Set<string>();
  readonly faults = new Map<string, string>();
  readonly ignored: string[] = [];
  constructor(checkpoint: Checkpoint) {
    this.checkpoint = checkpoint;
  }
}

/**
 * A scope of tensor names. Asking never throws: what is missing or misshapen is noted, a stand-in of the expected shape is
 * returned, and `finish` reports all faults at once. So: declare all graphs first, `finish`, then load.
 */
export class Weights {
  readonly #account: Account;
  readonly #prefix: string;

  private constructor(account: Account, prefix: string) {
    this.#account = account;
    this.#prefix = prefix;
  }

  static of(checkpoint: Checkpoint): Weights {
    return new Weights(new Account(checkpoint), "");
  }

  /** The tensors below `path`: `weights.at("layers.0").at("norm")`. */
  at(path: string): Weights {
    return new Weights(this.#account, `${this.#prefix}${path}.`);
  }

  has(name: string): boolean {
    return this.#account.checkpoint.tensors.has(this.#prefix + name);
  }

  /** The stored shape, or null; does not count as use. */
  shapeOf(name: string): readonly number[] | null {
    return this.#account.checkpoint.tensors.get(this.#prefix + name)?.entry.shape ?? null;
  }

  /** A floating tensor (F32, BF16 or F16) by reference. */
  tensor(name: string, shape: ExpectedShape): TensorRef {
    return this.#take(name, shape, FLOATS);
  }

  /** A tensor of exactly this dtype by reference. */
  raw(name: string, dtype: TensorDtype, shape: ExpectedShape): TensorRef {
    return this.#take(name, shape, [dtype]);
  }

  /** A floating tensor, read and widened to float32. */
  floats(name: string, shape: ExpectedShape): Float32Array {
    const ref = this.tensor(name, shape);
    return widen(this.bytes(ref), ref.dtype);
  }

  /** An integer tensor, read as int32. */
  integers(name: string, shape: ExpectedShape): Int32Array {
    const ref = this.#take(name, shape, INTEGERS);
    const bytes = this.bytes(ref);
    if (ref.dtype === "I64") return Int32Array.from(new BigInt64Array(bytes.buffer as ArrayBuffer), Number);
    if (ref.dtype === "U8") return Int32Array.from(bytes);
    if (ref.dtype === "I8") return Int32Array.from(new Int8Array(bytes.buffer as ArrayBuffer));
    return new Int32Array(bytes.buffer as ArrayBuffer);
  }

  /** Bytes of a tensor, or of a part of it; zeros for a stand-in. Each call reads the file. */
  bytes(ref: TensorRef, byteStart: number = 0, byteLength: number = ref.byteLength - byteStart): Uint8Array {
    const stored = this.#account.checkpoint.tensors.get(ref.name);
    if (ref.file === null || stored === undefined) return new Uint8Array(new ArrayBuffer(byteLength));
    return stored.file.read(stored.entry, byteStart, byteLength);
  }

  /** Tensors below this scope that start with `prefix` are known and not needed. */
  ignore(prefix: string): void {
    this.#account.ignored.push(this.#prefix + prefix);
  }

  /**
   * Call it when everything has been asked for.
   * @throws {CheckpointError} `checkpoint_tensor`, with the missing, misshapen and unused tensors of the checkpoint.
   */
  finish(): void {
    const { checkpoint, used, ignored } = this.#account;
    const unused = [...checkpoint.tensors.keys()].filter(
      (name) => !used.has(name) && !ignored.some((prefix) => name.startsWith(prefix)),
    );
    this.#refuse(unused);
  }

  /** As `finish`, when not everything could be asked for: nothing counts as unused. */
  finishEarly(): void {
    this.#refuse([]);
  }

  #refuse(unused: readonly string[]): void {
    const { checkpoint, faults } = this.#account;
    if (faults.size === 0 && unused.length === 0) return;
    const lines = firstOf([...faults].map(([name, fault]) => `${name}: ${fault}`));
    if (unused.length > 0) lines.push(`unused: ${firstOf(unused).join(", ")}`);
    throw new CheckpointError(
      "checkpoint_tensor",
      `${checkpoint.directory}: the tensors do not fit config.json\n  ${lines.join("\n  ")}`,
      { details: { directory: checkpoint.directory, faults: faults.size, unused: unused.length } },
    );
  }

  #take(name: string, expected: ExpectedShape, dtypes: readonly TensorDtype[]): TensorRef {
    const path = this.#prefix + name;
    const stored = this.#account.checkpoint.tensors.get(path);
    if (stored === undefined) {
      this.#account.faults.set(path, `missing, expected ${dtypes[0]} [${expected.map((size) => size ?? "?")}]`);
      return standIn(path, expected, dtypes[0] as TensorDtype);
    }
    this.#account.used.add(path);
    const { dtype, shape } = stored.entry;
    const fits =
      shape.length === expected.length && expected.every((size, axis) => size === null || size === shape[axis]);
    if (fits && dtypes.includes(dtype)) return reference(stored);
    this.#account.faults.set(
      path,
      `expected ${dtypes.join(" or ")} [${expected.map((size) => size ?? "?")}], found ${dtype} [${shape}]`,
    );
    return standIn(path, expected, dtypes[0] as TensorDtype);
  }
}

/** A checkpoint of another size has thousands. */
function firstOf(lines: readonly string[]): string[] {
  const rest = lines.length - LINES_MAX;
  return rest <= 0 ? [...lines] : [...lines.slice(0, LINES_MAX), `and ${rest} more`];
}

function reference({ entry, file }: StoredTensor): TensorRef {
  const { name, dtype, shape, byteOffset, byteLength } = entry;
  return { name, dtype, shape, byteOffset, byteLength, file: file.path };
}

function standIn(name: string, expected: ExpectedShape, dtype: TensorDtype): TensorRef {
  const shape = expected.map((size) => size ?? 1);
  const byteLength = shape.reduce((product, size) => product * size, ELEMENT_BYTES[dtype]);
  return { name, dtype, shape, byteOffset: 0, byteLength, file: null };
}
