/**
 * From values to a model that ONNX Runtime loads.
 *
 *     import { argument } from "../onnx/value.ts";      // also: constant, external
 *     import * as ops from "../onnx/ops.ts";            // also: ops-layout.ts, ops-neural.ts
 *     import { linear, layerNorm } from "../onnx/nn.ts"; // blocks that take their weights from a checkpoint scope
 *     import { build } from "../onnx/build.ts";
 *     import { Runtime } from "../onnx/runtime.ts";
 *
 *     const x = argument("x", "f32", [1, "T", 48]);      // numbers, and symbols for what the run decides
 *     const y = add(x, linear(relu(layerNorm(x, weights.at("norm"), 48)), weights.at("proj"), 48, 48));
 *     const model = build("example", { x }, { y });      // every operator above has been type-checked already
 *     weights.finish();                                  // strict: throws with the missing and unused tensors
 *     const graph = await runtime.load(model);
 *     const { y: result } = await graph.run({ x: tensor("f32", [1, 3, 48], floats) });
 */
import { dirname, relative, sep } from "node:path";
import { GraphError } from "../errors.ts";
import { DTYPES } from "./dtype.ts";
import { encodeModel, type InitializerProto, type NodeProto, type ValueInfo } from "./proto.ts";
import { fault, type GraphNode, type Shape, type Value, type ValueType } from "./value.ts";

/** ONNX operator sets: the default domain, and ONNX Runtime's own. */
const OPSETS = { "": 21, "com.microsoft": 1 } as const;

/** A finished graph. `externalFolder` is the folder that all its external data lies in, if there is any. */
export interface Model {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly externalFolder: string | null;
  readonly inputs: Readonly<Record<string, ValueType>>;
  readonly outputs: Readonly<Record<string, ValueType>>;
}

type Named = Readonly<Record<string, Value>>;

/**
 * Collects everything that `outputs` need.
 * @throws {GraphError} when an argument is used that `inputs` does not list, or listed under another name.
 */
export function build(name: string, inputs: Named, outputs: Named): Model {
  for (const [key, value] of Object.entries(inputs)) {
    if (value.source.kind !== "argument" || value.source.name !== key)
      fault("build", [value], `${key} is not its argument`);
  }
  const collector = new Collector(new Set(Object.values(inputs)));
  for (const value of Object.values(outputs)) collector.visit(value);
  // An output has its own name: an Identity gives it, which the runtime removes again.
  const renames: NodeProto[] = Object.entries(outputs).map(([key, value]) => ({
    operator: "Identity",
    domain: "",
    inputs: [collector.nameOf(value)],
    outputs: [`out:${key}`],
    attributes: {},
  }));
  const folder = commonFolder(collector.externals);
  const bytes = encodeModel({
    name,
    inputs: Object.entries(inputs).map(([key, { type }]) => valueInfo(key, type.dtype, type.shape)),
    outputs: Object.entries(outputs).map(([key, { type }]) =>
      valueInfo(
        `out:${key}`,
        type.dtype,
        type.shape.map((size) => (typeof size === "number" ? size : null)),
      ),
    ),
    initializers: collector.initializers(folder),
    nodes: [...collector.nodes, ...renames],
    opsets: OPSETS,
  });
  const typesOf = (values: Named): Record<string, ValueType> =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value.type]));
  return { name, bytes, externalFolder: folder, inputs: typesOf(inputs), outputs: typesOf(outputs) };
}

const valueInfo = (name: string, dtype: ValueType["dtype"], shape: readonly (number | string | null)[]): ValueInfo => ({
  name,
  dtype: DTYPES[dtype].code,
  shape,
});

/** Walks from the outputs to the inputs and names what it meets; nodes come out in an order that can run. */
class Collector {
  readonly nodes: NodeProto[] = [];
  readonly #arguments: ReadonlySet<Value>;
  readonly #stored = new Map<string, { readonly value: Value; readonly name: string }>();
  readonly #constants = new Map<Value, string>();
  readonly #nodeNames = new Map<GraphNode, string>();

  constructor(known: ReadonlySet<Value>) {
    this.#arguments = known;
  }

  get externals(): string[] {
    return [...this.#stored.values()].flatMap(({ value: { source } }) =>
      source.kind === "external" ? [source.data.file] : [],
    );
  }

  /** Depth first without recursion: networks are thousands of nodes deep. */
  visit(root: Value): void {
    const stack: Value[] = [root];
    while (stack.length > 0) {
      const value = stack[stack.length - 1] as Value;
      const { source } = value;
      if (source.kind !== "node" || this.#nodeNames.has(source.node)) {
        this.#visitLeaf(value);
        stack.pop();
        continue;
      }
      const waiting = source.node.inputs.filter((input) => input !== null && !this.#isDone(input)) as Value[];
      if (waiting.length > 0) stack.push(...waiting);
      else {
        this.#emit(source.node);
        stack.pop();
      }
    }
  }

  nameOf(value: Value): string {
    const { source } = value;
    switch (source.kind) {
      case "argument":
        return source.name;
      case "node":
        return `${this.#nodeNames.get(source.node)}:${source.output}`;
      case "constant":
        return this.#constants.get(value) as string;
      case "external":
        return (this.#stored.get(storageKey(value)) as { name: string }).name;
    }
  }

  initializers(folder: string | null): InitializerProto[] {
    const constants = [...this.#constants].map(([value, name]) => initializer(value, name, folder));
    return [...constants, ...[...this.#stored.values()].map(({ value, name }) => initializer(value, name, folder))];
  }

  #isDone(value: Value): boolean {
    if (value.source.kind === "node") return this.#nodeNames.has(value.source.node);
    this.#visitLeaf(value);
    return true;
  }

  #visitLeaf(value: Value): void {
    const { source } = value;
    if (source.kind === "argument" && !this.#arguments.has(value)) {
      fault("build", [value], `the argument ${source.name} is used and is not among the inputs`);
    }
    if (source.kind === "constant" && !this.#constants.has(value)) {
      this.#constants.set(value, `constant:${this.#constants.size}`);
    }
    if (source.kind === "external" && !this.#stored.has(storageKey(value))) {
      this.#stored.set(storageKey(value), { value, name: `stored:${this.#stored.size}` });
    }
  }

  #emit(node: GraphNode): void {
    const name = `${node.operator}:${this.#nodeNames.size}`;
    this.#nodeNames.set(node, name);
    const outputs = Array.from({ length: node.outputCount }, (_, output) => `${name}:${output}`);
    const inputs = node.inputs.map((input) => (input === null ? "" : this.nameOf(input)));
    this.nodes.push({ operator: node.operator, domain: node.domain, inputs, outputs, attributes: node.attributes });
  }
}

/** The same bytes read as the same type are one initializer. */
function storageKey(value: Value): string {
  if (value.source.kind !== "external") throw new GraphError(`storageKey: ${value.source.kind} is not external`);
  const { file, byteOffset } = value.source.data;
  return `${file}:${byteOffset}:${value.dtype}:${value.shape.join(",")}`;
}

function initializer(value: Value, name: string, folder: string | null): InitializerProto {
  const shape = value.shape as Shape as readonly number[];
  const dtype = DTYPES[value.dtype].code;
  if (value.source.kind === "external" && folder !== null) {
    const { file, byteOffset, byteLength } = value.source.data;
    return { name, dtype, shape, data: { location: relative(folder, file), byteOffset, byteLength } };
  }
  if (value.source.kind !== "constant") throw new GraphError(`initializer: ${value.source.kind} holds no data`);
  return { name, dtype, shape, data: { bytes: value.source.bytes } };
}

/** The deepest folder that holds all files, at whatever depth: ONNX Runtime reads external data below one folder only. */
function commonFolder(files: readonly string[]): string | null {
  const [first, ...others] = new Set(files.map((file) => dirname(file)));
  if (first === undefined) return null;
  let folder = first;
  const holds = (path: string): boolean =>
    path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
  while (!others.every(holds)) {
    if (dirname(folder) === folder) throw new GraphError(`build: weights lie on different drives: ${files.join(", ")}`);
    folder = dirname(folder);
  }
  return folder;
}
