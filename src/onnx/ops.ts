/**
 * Operators that work element by element or along one axis, and matrix products. Names and meaning are ONNX's
 * (onnx/docs/Operators.md). Each checks its inputs where it is called and throws a GraphError there.
 */
import { type DType, isFloat, isIndex } from "./dtype.ts";
import { axisOf, broadcast, withAxis } from "./shapes.ts";
import { apply, constant, type Dim, fault, type Value } from "./value.ts";

/** A value, or a number that takes the dtype of the other operand. */
export type Operand = Value | number;

function same(operator: string, a: Operand, b: Operand): [Value, Value] {
  if (typeof a === "number") {
    if (typeof b === "number") return fault(operator, [], "needs at least one value");
    return [constant(a, b.dtype), b];
  }
  const right = typeof b === "number" ? constant(b, a.dtype) : b;
  if (a.dtype !== right.dtype) fault(operator, [a, right], "the dtypes differ; cast one");
  return [a, right];
}

function binary(operator: string, a: Operand, b: Operand, result?: DType): Value {
  const [left, right] = same(operator, a, b);
  if (operator !== "Equal" && left.dtype === "bool") fault(operator, [left, right], "needs numbers");
  const shape = broadcast(operator, [left, right], [left.shape, right.shape]);
  return apply(operator, [left, right], {}, [{ dtype: result ?? left.dtype, shape }])[0] as Value;
}

export const add = (a: Operand, b: Operand): Value => binary("Add", a, b);
export const sub = (a: Operand, b: Operand): Value => binary("Sub", a, b);
export const mul = (a: Operand, b: Operand): Value => binary("Mul", a, b);
export const div = (a: Operand, b: Operand): Value => binary("Div", a, b);
export const maximum = (a: Operand, b: Operand): Value => binary("Max", a, b);
export const minimum = (a: Operand, b: Operand): Value => binary("Min", a, b);
export const equal = (a: Operand, b: Operand): Value => binary("Equal", a, b, "bool");
export const less = (a: Operand, b: Operand): Value => binary("Less", a, b, "bool");
export const greater = (a: Operand, b: Operand): Value => binary("Greater", a, b, "bool");

function logical(operator: string, inputs: readonly Value[]): Value {
  if (inputs.some((input) => input.dtype !== "bool")) fault(operator, inputs, "needs booleans");
  const shape = broadcast(
    operator,
    inputs,
    inputs.map((input) => input.shape),
  );
  return apply(operator, inputs, {}, [{ dtype: "bool", shape }])[0] as Value;
}

export const and = (a: Value, b: Value): Value => logical("And", [a, b]);
export const or = (a: Value, b: Value): Value => logical("Or", [a, b]);
export const not = (x: Value): Value => logical("Not", [x]);

/** Element by element: `yes` where the condition holds, `no` elsewhere. */
export function where(condition: Value, yes: Operand, no: Operand): Value {
  const [a, b] = same("Where", yes, no);
  if (condition.dtype !== "bool") fault("Where", [condition, a, b], "the condition is not boolean");
  const shape = broadcast("Where", [condition, a, b], [condition.shape, a.shape, b.shape]);
  return apply("Where", [condition, a, b], {}, [{ dtype: a.dtype, shape }])[0] as Value;
}

function floating(operator: string, x: Value, attributes = {}): Value {
  if (!isFloat(x.dtype)) fault(operator, [x], "needs floating numbers");
  return apply(operator, [x], attributes, [x.type])[0] as Value;
}

export const exp = (x: Value): Value => floating("Exp", x);
export const log = (x: Value): Value => floating("Log", x);
export const sqrt = (x: Value): Value => floating("Sqrt", x);
export const sin = (x: Value): Value => floating("Sin", x);
export const cos = (x: Value): Value => floating("Cos", x);
export const tanh = (x: Value): Value => floating("Tanh", x);
export const erf = (x: Value): Value => floating("Erf", x);
export const sigmoid = (x: Value): Value => floating("Sigmoid", x);
export const softplus = (x: Value): Value => floating("Softplus", x);
export const floor = (x: Value): Value => floating("Floor", x);
/** To the nearest whole number, halves to even. */
export const round = (x: Value): Value => floating("Round", x);

function signed(operator: string, x: Value): Value {
  if (x.dtype === "bool" || x.dtype === "u8") fault(operator, [x], "needs numbers with a sign");
  return apply(operator, [x], {}, [x.type])[0] as Value;
}

export const neg = (x: Value): Value => signed("Neg", x);
export const abs = (x: Value): Value => signed("Abs", x);
export const relu = (x: Value): Value => signed("Relu", x);

/** Limits to low..high; an infinite limit is none. */
export function clip(x: Value, low: number, high: number): Value {
  if (!isFloat(x.dtype)) fault("Clip", [x], "needs floating numbers");
  if (!(low <= high)) fault("Clip", [x], `${low} to ${high} is no range`);
  const limit = (bound: number): Value | null => (Number.isFinite(bound) ? constant(bound, x.dtype) : null);
  return apply("Clip", [x, limit(low), limit(high)], {}, [x.type])[0] as Value;
}

const CAST_CODES: Readonly<Partial<Record<DType, number>>> = {
  f32: 1,
  u8: 2,
  i8: 3,
  i32: 6,
  i64: 7,
  bool: 9,
  f16: 10,
  f64: 11,
};

export function cast(x: Value, dtype: DType): Value {
  if (x.dtype === dtype) return x;
  const to = CAST_CODES[dtype] ?? fault("Cast", [x], `to ${dtype} is not offered`);
  return apply("Cast", [x], { to }, [{ dtype, shape: x.shape }])[0] as Value;
}

/** Sums of products over the last axis of `a` and the second last of `b`, batched and broadcast over the axes before. */
export function matmul(a: Value, b: Value): Value {
  const inputs = [a, b];
  if (a.dtype !== b.dtype || !isFloat(a.dtype)) fault("MatMul", inputs, "needs floating numbers of one dtype");
  if (a.rank < 2 || b.rank < 2) fault("MatMul", inputs, "needs at least two axes on both sides");
  if (a.dim(-1) !== b.dim(-2)) fault("MatMul", inputs, `${a.dim(-1)} columns do not meet ${b.dim(-2)} rows`);
  const batch = broadcast("MatMul", inputs, [a.shape.slice(0, -2), b.shape.slice(0, -2)]);
  return apply("MatMul", inputs, {}, [{ dtype: a.dtype, shape: [...batch, a.dim(-2), b.dim(-1)] }])[0] as Value;
}

function reduce(operator: string, x: Value, axis: number, keep: boolean): Value {
  if (x.dtype === "bool") fault(operator, [x], "needs numbers");
  const at = axisOf(operator, x, axis);
  const shape = withAxis(x.shape, at, keep ? 1 : null);
  const axes = constant([at], "i64");
  return apply(operator, [x, axes], { keepdims: keep ? 1 : 0 }, [{ dtype: x.dtype, shape }])[0] as Value;
}

/** Along one axis, which stays with size 1 unless `keep` is false. */
export const reduceSum = (x: Value, axis: number, keep = true): Value => reduce("ReduceSum", x, axis, keep);
export const reduceMean = (x: Value, axis: number, keep = true): Value => reduce("ReduceMean", x, axis, keep);
export const reduceMax = (x: Value, axis: number, keep = true): Value => reduce("ReduceMax", x, axis, keep);

function arg(operator: string, x: Value, axis: number, keep: boolean): Value {
  if (x.dtype === "bool") fault(operator, [x], "needs numbers");
  const at = axisOf(operator, x, axis);
  const shape = withAxis(x.shape, at, keep ? 1 : null);
  return apply(operator, [x], { axis: at, keepdims: keep ? 1 : 0 }, [{ dtype: "i64", shape }])[0] as Value;
}

/** Index of the largest (smallest) along one axis, the first of equals; the axis goes unless `keep` is true. */
export const argMax = (x: Value, axis: number, keep = false): Value => arg("ArgMax", x, axis, keep);
export const argMin = (x: Value, axis: number, keep = false): Value => arg("ArgMin", x, axis, keep);

/** Running sum along one axis. */
export function cumSum(x: Value, axis: number, options: { exclusive?: boolean; reverse?: boolean } = {}): Value {
  if (x.dtype === "bool") fault("CumSum", [x], "needs numbers");
  const at = constant(axisOf("CumSum", x, axis), "i64");
  const attributes = { exclusive: options.exclusive ? 1 : 0, reverse: options.reverse ? 1 : 0 };
  return apply("CumSum", [x, at], attributes, [x.type])[0] as Value;
}

/** The `count` largest along the last axis in falling order: values, and their i64 indices. */
export function topK(x: Value, count: number, options: { largest?: boolean } = {}): [Value, Value] {
  const size = x.dim(-1);
  if (x.dtype === "bool") fault("TopK", [x], "needs numbers");
  if (!Number.isInteger(count) || count < 1) fault("TopK", [x], `${count} is not a count`);
  if (typeof size === "number" && count > size) fault("TopK", [x], `has no ${count} along its last axis`);
  const shape: Dim[] = withAxis(x.shape, x.rank - 1, count);
  const attributes = { axis: -1, largest: options.largest === false ? 0 : 1, sorted: 1 };
  const types = [
    { dtype: x.dtype, shape },
    { dtype: "i64", shape },
  ] as const;
  return apply("TopK", [x, constant([count], "i64")], attributes, types) as [Value, Value];
}

/** Rows of `x` along `axis`, picked by indices of any shape. */
export function gather(x: Value, indices: Value, axis: number = 0): Value {
  if (!isIndex(indices.dtype)) fault("Gather", [x, indices], "the indices are not i32 or i64");
  const at = axisOf("Gather", x, axis);
  const shape = [...x.shape.slice(0, at), ...indices.shape, ...x.shape.slice(at + 1)];
  return apply("Gather", [x, indices], { axis: at }, [{ dtype: x.dtype, shape }])[0] as Value;
}

/** One element per index: `x[.., indices[..i..], ..]` along `axis`; the shape is that of the indices. */
export function gatherElements(x: Value, indices: Value, axis: number): Value {
  if (!isIndex(indices.dtype)) fault("GatherElements", [x, indices], "the indices are not i32 or i64");
  if (x.rank !== indices.rank) fault("GatherElements", [x, indices], "the ranks differ");
  const at = axisOf("GatherElements", x, axis);
  const beyond = indices.shape.findIndex((size, other) => {
    const room = x.shape[other];
    return other !== at && typeof size === "number" && typeof room === "number" && size > room;
  });
  if (beyond !== -1) fault("GatherElements", [x, indices], `axis ${beyond} of the indices is longer`);
  const attributes = { axis: at };
  return apply("GatherElements", [x, indices], attributes, [{ dtype: x.dtype, shape: indices.shape }])[0] as Value;
}
