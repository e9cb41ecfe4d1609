/**
 * Running of models: the only file that imports onnxruntime-node.
 *
 * A run blocks the thread that asks for it, so this lives in a model process. Input buffers are used in place while the
 * run lasts; outputs are copies that belong to the caller.
 */
import { createRequire } from "node:module";
import type { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { ConfigError, EngineError } from "../errors.ts";
import { assert } from "../util/assert.ts";
import type { Model } from "./build.ts";
import type { DType } from "./dtype.ts";
import type { ValueType } from "./value.ts";

export type Provider = "cpu" | "webgpu" | "cuda" | "coreml";

export type TensorData = Float32Array | Int32Array | BigInt64Array | Uint8Array | Int8Array | Float64Array;

/** Numbers with a shape. Whoever made it owns `data`; booleans are bytes. */
export interface Tensor<Data extends TensorData = TensorData> {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: Data;
}

export type FloatTensor = Tensor<Float32Array>;
export type Tensors = Readonly<Record<string, Tensor>>;

export interface RuntimeOptions {
  readonly provider?: Provider;
  /** Threads within one run; the machine's cores by default. */
  readonly threads?: number;
  /** Called after each run of a graph, with its name and what the run took. */
  readonly onRun?: ((graph: string, ms: number) => void) | undefined;
}

const ORT_TYPES = {
  f32: "float32",
  f64: "float64",
  i32: "int32",
  i64: "int64",
  u8: "uint8",
  i8: "int8",
  bool: "bool",
} as const;
const DTYPES = Object.fromEntries(Object.entries(ORT_TYPES).map(([dtype, type]) => [type, dtype])) as Record<
  string,
  DType
>;

type Ort = typeof import("onnxruntime-node");

/** A provider with its settings; loads models into graphs. */
export class Runtime {
  readonly provider: Provider;
  readonly #threads: number;
  readonly #onRun: RuntimeOptions["onRun"];
  readonly #ort: Ort;

  /** @throws {ConfigError} when this build lacks the provider. */
  constructor(options: RuntimeOptions = {}) {
    this.provider = options.provider ?? "cpu";
    this.#threads = options.threads ?? 0;
    this.#onRun = options.onRun;
    this.#ort = createRequire(import.meta.url)("onnxruntime-node") as Ort;
    // Asked for one that it was not built with, the runtime would say nothing and use the CPU.
    if (!this.providers.includes(this.provider)) {
      const known = this.providers.filter((name) => name !== "tensorrt").join(", ");
      throw new ConfigError("config_invalid", `the provider ${this.provider} is not in this build; it has ${known}`);
    }
  }

  /** Providers of this build that can be tried. */
  get providers(): readonly string[] {
    return this.#ort.listSupportedBackends().map(({ name }) => name);
  }

  /** @throws {EngineError} when the runtime refuses the model, or the machine lacks what the provider needs. */
  async load(model: Model): Promise<Graph> {
    try {
      const session = await this.#ort.InferenceSession.create(model.bytes, this.#options(model));
      return new Graph(this.#ort, model, session, this.#onRun);
    } catch (cause) {
      const advice =
        this.provider === "cpu" ? "" : "; this machine may lack what the provider needs: try --provider cpu";
      throw new EngineError(
        "engine",
        `${model.name}: cannot be loaded on ${this.provider}: ${messageOf(cause)}${advice}`,
        { cause },
      );
    }
  }

  /** Loads a model that others made, under its own names. @throws {EngineError} when the runtime refuses the file. */
  async loadFile(name: string, path: string): Promise<FileGraph> {
    try {
      const session = await this.#ort.InferenceSession.create(path, this.#options({ externalFolder: null }));
      return new FileGraph(this.#ort, name, session);
    } catch (cause) {
      throw new EngineError("engine", `${name}: ${path} cannot be loaded: ${messageOf(cause)}`, { cause });
    }
  }

  #options(model: Pick<Model, "externalFolder">): InferenceSession.SessionOptions {
    const folder = model.externalFolder;
    return {
      executionProviders: this.provider === "cpu" ? ["cpu"] : [this.provider, "cpu"],
      graphOptimizationLevel: "all",
      intraOpNumThreads: this.#threads,
      interOpNumThreads: 1,
      executionMode: "sequential",
      // Errors only: the warnings concern our own graphs' constant folding.
      logSeverityLevel: 3,
      extra: {
        session: {
          // Several graphs take turns on the same cores: a pool that still spins would slow the next one.
          force_spinning_stop: "1",
          ...(folder === null ? {} : { model_external_initializers_file_folder_path: folder }),
        },
      },
    };
  }
}

/** A loaded model. Owns native memory until `close`. */
export class Graph {
  readonly name: string;
  readonly #ort: Ort;
  readonly #session: InferenceSession;
  readonly #inputs: Readonly<Record<string, ValueType>>;
  readonly #outputs: Readonly<Record<string, ValueType>>;
  readonly #onRun: RuntimeOptions["onRun"];

  constructor(ort: Ort, model: Model, session: InferenceSession, onRun?: RuntimeOptions["onRun"]) {
    this.name = model.name;
    this.#ort = ort;
    this.#session = session;
    this.#inputs = model.inputs;
    this.#outputs = model.outputs;
    this.#onRun = onRun;
  }

  /**
   * Runs once. `wanted` names the outputs to give back, all by default.
   * @throws {EngineError} when the runtime fails; AssertionFault when an input does not fit its type.
   */
  async run<Names extends string = string>(feeds: Tensors, wanted?: readonly Names[]): Promise<Record<Names, Tensor>> {
    const inputs: Record<string, OrtTensor> = {};
    for (const [name, type] of Object.entries(this.#inputs)) {
      const feed = feeds[name];
      assert(feed !== undefined && fits(feed, type), `${this.name}: input ${name} is ${show(feed)}, not ${show(type)}`);
      inputs[name] = this.#toOrt(feed);
    }
    const names = wanted ?? Object.keys(this.#outputs);
    const startMs = performance.now();
    try {
      const results = await this.#session.run(
        inputs,
        names.map((name) => `out:${name}`),
      );
      this.#onRun?.(this.name, performance.now() - startMs);
      return Object.fromEntries(names.map((name) => [name, fromOrt(results[`out:${name}`] as OrtTensor)])) as Record<
        Names,
        Tensor
      >;
    } catch (cause) {
      throw new EngineError("engine", `${this.name}: the run failed: ${messageOf(cause)}`, { cause });
    }
  }

  async close(): Promise<void> {
    await this.#session.release();
  }

  #toOrt(feed: Tensor): OrtTensor {
    return toOrt(this.#ort, feed);
  }
}

/** A loaded model that others made. Owns native memory until `close`. */
export class FileGraph {
  readonly name: string;
  readonly #ort: Ort;
  readonly #session: InferenceSession;

  constructor(ort: Ort, name: string, session: InferenceSession) {
    this.name = name;
    this.#ort = ort;
    this.#session = session;
  }
  get inputNames(): readonly string[] {
    return this.#session.inputNames;
  }
  get outputNames(): readonly string[] {
    return this.#session.outputNames;
  }
  /** Runs once and gives all outputs back. @throws {EngineError} when the runtime fails or an input does not fit. */
  async run(feeds: Tensors): Promise<Tensors> {
    try {
      const inputs = Object.entries(feeds).map(([name, feed]) => [name, toOrt(this.#ort, feed)]);
      const results = await this.#session.run(Object.fromEntries(inputs) as Record<string, OrtTensor>);
      return Object.fromEntries(Object.entries(results).map(([name, result]) => [name, fromOrt(result)]));
    } catch (cause) {
      throw new EngineError("engine", `${this.name}: the run failed: ${messageOf(cause)}`, { cause });
    }
  }
  async close(): Promise<void> {
    await this.#session.release();
  }
}

function toOrt(ort: Ort, feed: Tensor): OrtTensor {
  const type = ORT_TYPES[feed.dtype as keyof typeof ORT_TYPES];
  return new ort.Tensor(type as "float32", feed.data as Float32Array, feed.shape);
}

export const tensor = <Data extends TensorData>(dtype: DType, shape: readonly number[], data: Data): Tensor<Data> => ({
  dtype,
  shape,
  data,
});

/** Float32 zeros. */
export const zeros = (...shape: number[]): FloatTensor =>
  tensor("f32", shape, new Float32Array(shape.reduce((product, size) => product * size, 1)));

function fromOrt(result: OrtTensor): Tensor {
  return { dtype: DTYPES[result.type] as DType, shape: result.dims, data: result.data as TensorData };
}

function fits(feed: Tensor, type: ValueType): boolean {
  return (
    feed.dtype === type.dtype &&
    feed.shape.length === type.shape.length &&
    type.shape.every((size, axis) => typeof size === "string" || size === feed.shape[axis]) &&
    feed.data.length === feed.shape.reduce((product, size) => product * size, 1)
  );
}

const show = (type: { dtype: DType; shape: readonly (number | string)[] } | undefined): string =>
  type === undefined ? "missing" : `${type.dtype}[${type.shape.join(", ")}]`;

/** On one line: the runtime's messages end in empty ones. */
const messageOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).trim().replace(/\s*\n\s*/g, " ");
