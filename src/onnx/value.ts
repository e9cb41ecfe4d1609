/**
 * The values that operator functions take and give: a type known at once, and where the value comes from.
 *
 * A dimension is a number, or a symbol for a size known only at run time. Arithmetic on symbols gives new symbols
 * (`T+1`), and two symbols are equal when they read the same.
 */
import { GraphError } from "../errors.ts";
import { DTYPES, type DType, isInteger } from "./dtype.ts";

export type Dim = number | string;
export type Shape = readonly Dim[];

export interface ValueType {
  readonly dtype: DType;
  readonly shape: Shape;
}

export type Attribute = number | string | readonly number[] | { readonly float: number };

/** One operator of the graph. Whole numbers become INT attributes, `{ float }` FLOAT. */
export interface GraphNode {
  readonly operator: string;
  readonly domain: string;
  readonly inputs: readonly (Value | null)[];
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly outputCount: number;
}

/** Bytes inside a file that stay where they are. */
export interface ExternalData {
  readonly file: string;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export type Source =
  | { readonly kind: "argument"; readonly name: string }
  | { readonly kind: "constant"; readonly bytes: Uint8Array }
  | { readonly kind: "external"; readonly data: ExternalData }
  | { readonly kind: "node"; readonly node: GraphNode; readonly output: number };

export class Value {
  readonly type: ValueType;
  readonly source: Source;
  constructor(type: ValueType, source: Source) {
    this.type = type;
    this.source = source;
  }
  get shape(): Shape {
    return this.type.shape;
  }
  get dtype(): DType {
    return this.type.dtype;
  }
  get rank(): number {
    return this.type.shape.length;
  }
  /** The size of one axis; negative axes count from the end. */
  dim(axis: number): Dim {
    const size = this.shape[axis < 0 ? axis + this.rank : axis];
    if (size === undefined) fault("dim", [this], `has no axis ${axis}`);
    return size;
  }
  /** As `dim`, for an axis whose size must be a number here. */
  size(axis: number): number {
    const size = this.dim(axis);
    if (typeof size !== "number") fault("size", [this], `axis ${axis} is the symbol ${size}`);
    return size;
  }
}

/** A named input of the graph. */
export const argument = (name: string, dtype: DType, shape: Shape): Value =>
  new Value({ dtype, shape }, { kind: "argument", name });

/** A tensor that lies in a file: nothing is read here. @throws {GraphError} when shape and length disagree. */
export function external(data: ExternalData, dtype: DType, shape: readonly number[]): Value {
  const expected = shape.reduce((product, size) => product * size, DTYPES[dtype].bytes);
  const value = new Value({ dtype, shape }, { kind: "external", data });
  if (expected !== data.byteLength) fault("external", [value], `needs ${expected} bytes, given ${data.byteLength}`);
  return value;
}

type Numbers = readonly number[] | Float32Array | Int32Array;

/** Numbers written into the graph itself. Shape [] with one number by default for a number. */
export function constant(numbers: number | Numbers, dtype: DType = "f32", shape?: readonly number[]): Value {
  const list = typeof numbers === "number" ? [numbers] : numbers;
  const dims = shape ?? (typeof numbers === "number" ? [] : [list.length]);
  if (isInteger(dtype)) requireWhole(list, dtype, dims);
  const value = new Value({ dtype, shape: dims }, { kind: "constant", bytes: encode(list, dtype) });
  const expected = dims.reduce((product, size) => product * size, 1);
  if (expected !== list.length) fault("constant", [value], `needs ${expected} numbers, given ${list.length}`);
  return value;
}

function requireWhole(list: Numbers, dtype: DType, shape: readonly number[]): void {
  const odd = list.find((number) => !Number.isSafeInteger(number));
  if (odd !== undefined) fault(`constant ${dtype}[${shape}]`, [], `${odd} is not a whole number`);
}

function encode(list: Numbers, dtype: DType): Uint8Array {
  const bytesOf = (array: Float32Array | Float64Array | Int32Array | BigInt64Array | Int8Array): Uint8Array =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  switch (dtype) {
    case "f32":
      return bytesOf(Float32Array.from(list));
    case "f64":
      return bytesOf(Float64Array.from(list));
    case "i32":
      return bytesOf(Int32Array.from(list));
    case "i64":
      return bytesOf(BigInt64Array.from(list, (number: number) => BigInt(number)));
    case "i8":
      return bytesOf(Int8Array.from(list));
    case "u8":
    case "bool":
      return Uint8Array.from(list);
    default:
      throw new GraphError(`constant: ${dtype} constants are not written; cast an f32 one`);
  }
}

/** The values of one operator, one per entry of `types`. Operator functions check their inputs, then call this. */
export function apply(
  operator: string,
  inputs: readonly (Value | null)[],
  attributes: GraphNode["attributes"],
  types: readonly ValueType[],
  domain: string = "",
): Value[] {
  const node: GraphNode = { operator, domain, inputs, attributes, outputCount: types.length };
  return types.map((type, output) => new Value(type, { kind: "node", node, output }));
}

const describe = (value: Value | null): string =>
  value === null ? "none" : `${value.dtype}[${value.shape.join(", ")}]`;

/** @throws {GraphError} naming the operator, its input types, the fault, and the line outside `onnx/` that called. */
export function fault(operator: string, inputs: readonly (Value | null)[], what: string): never {
  const site = callSite();
  throw new GraphError(
    `${operator}(${inputs.map(describe).join(", ")}): ${what}${site === null ? "" : ` (at ${site})`}`,
    {
      details: { operator, site },
    },
  );
}

/** `file.ts:line:column` of the nearest caller outside this folder. */
function callSite(): string | null {
  const limit = Error.stackTraceLimit;
  // The usual ten frames may all be ours.
  Error.stackTraceLimit = 40;
  const frames = (new Error().stack ?? "").split("\n").slice(2);
  Error.stackTraceLimit = limit;
  const frame = frames.find((line) => /:\d+:\d+\)?$/.test(line) && !/[/\\](src|dist)[/\\]onnx[/\\]/.test(line));
  return /([^/\\(\s]+:\d+:\d+)\)?$/.exec(frame ?? "")?.[1] ?? null;
}
