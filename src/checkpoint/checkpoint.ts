/** A checkpoint directory: one safetensors file, or shards with an index that says which tensor lies where. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CheckpointError } from "../errors.ts";
import { SafetensorsFile, type TensorEntry } from "./safetensors.ts";

const INDEX = "model.safetensors.index.json";
const SINGLE = "model.safetensors";

/** A tensor and the file that holds it. */
export interface StoredTensor {
  readonly entry: TensorEntry;
  readonly file: SafetensorsFile;
}

/** Every tensor of a directory, none of them read yet. Owns the open files until `close`. */
export class Checkpoint {
  readonly directory: string;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly #files: readonly SafetensorsFile[];

  private constructor(directory: string, files: readonly SafetensorsFile[], tensors: Map<string, StoredTensor>) {
    this.directory = directory;
    this.#files = files;
    this.tensors = tensors;
  }

  /**
   * Reads the headers of all shards.
   * @throws {CheckpointError} when the directory, the index, a shard or a header is missing or not what it should be.
   */
  static open(directory: string): Checkpoint {
    requireDirectory(directory);
    const files: SafetensorsFile[] = [];
    try {
      const tensors = existsSync(join(directory, INDEX))
        ? openShards(directory, files)
        : openSingle(join(directory, SINGLE), files);
      return new Checkpoint(directory, files, tensors);
    } catch (error) {
      for (const file of files) file.close();
      throw error;
    }
  }

  /** Bytes of all files together. */
  get byteLength(): number {
    return this.#files.reduce((sum, file) => sum + file.byteLength, 0);
  }

  close(): void {
    for (const file of this.#files) file.close();
  }
}

function requireDirectory(directory: string): void {
  if (directory.endsWith(".nemo")) throw archive(directory);
  if (!existsSync(directory)) {
    throw new CheckpointError("checkpoint_unreadable", `${directory}: there is no such checkpoint directory`);
  }
  if (!statSync(directory).isDirectory()) {
    throw new CheckpointError("checkpoint_unreadable", `${directory}: a file; name the checkpoint's directory`);
  }
}

const archive = (path: string): CheckpointError =>
  new CheckpointError(
    "checkpoint_unsupported",
    `${path}: a .nemo archive is not read; take the converted MLX checkpoint (safetensors and config.json)`,
  );

function openSingle(path: string, files: SafetensorsFile[]): Map<string, StoredTensor> {
  if (!existsSync(path)) {
    const nemo = readdirSync(dirname(path)).find((name) => name.endsWith(".nemo"));
    if (nemo !== undefined) throw archive(join(dirname(path), nemo));
    throw new CheckpointError("checkpoint_unreadable", `${path}: missing, and there is no ${INDEX} beside it either`);
  }
  const file = new SafetensorsFile(path);
  files.push(file);
  return new Map([...file.tensors].map(([name, entry]) => [name, { entry, file }]));
}

function openShards(directory: string, files: SafetensorsFile[]): Map<string, StoredTensor> {
  const weightMap = readIndex(join(directory, INDEX));
  const shards = new Map<string, SafetensorsFile>();
  for (const shard of new Set(Object.values(weightMap))) {
    if (shard !== basename(shard) || shard === "" || shard === "." || shard === "..") {
      throw new CheckpointError(
        "checkpoint_corrupt",
        `${INDEX} names the shard "${shard}", which is no file of its directory`,
      );
    }
    const path = join(directory, shard);
    if (!existsSync(path)) {
      throw new CheckpointError("checkpoint_unreadable", `${path}: the shard is missing; ${INDEX} names it`);
    }
    const file = new SafetensorsFile(path);
    files.push(file);
    shards.set(shard, file);
  }
  const tensors = new Map<string, StoredTensor>();
  for (const [name, shard] of Object.entries(weightMap)) {
    const file = shards.get(shard) as SafetensorsFile;
    const entry = file.tensors.get(name);
    if (entry === undefined) {
      throw new CheckpointError("checkpoint_corrupt", `${INDEX} places ${name} in ${shard}, which does not have it`);
    }
    tensors.set(name, { entry, file });
  }
  for (const [shard, file] of shards) {
    const stray = [...file.tensors.keys()].find((name) => weightMap[name] !== shard);
    if (stray !== undefined) {
      throw new CheckpointError("checkpoint_corrupt", `${shard} holds ${stray}, which ${INDEX} does not place there`);
    }
  }
  return tensors;
}

function readIndex(path: string): Record<string, string> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CheckpointError("checkpoint_unreadable", `${path}: cannot be read (${code})`, { cause });
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError("checkpoint_corrupt", `${path}: not valid JSON`, { cause });
  }
  const map = (json as { weight_map?: unknown } | null)?.weight_map;
  if (
    typeof map !== "object" ||
    map === null ||
    Array.isArray(map) ||
    Object.values(map).some((shard) => typeof shard !== "string")
  ) {
    throw new CheckpointError("checkpoint_corrupt", `${path}: has no weight_map from tensor names to shard names`);
  }
  return map as Record<string, string>;
}
