/** Operators that move elements without changing them. */
import { addDims, axisOf, broadcast, elementCount, withAxis } from "./shapes.ts";
import { apply, constant, type Dim, fault, type Shape, type Value } from "./value.ts";

/**
 * The same elements in another shape. At most one size may be a symbol or -1; a symbol stands for whatever the run
 * finds there, and -1 is computed when all else is numbers.
 */
export function reshape(x: Value, shape: Shape): Value {
  const isSize = (size: Dim): boolean =>
    typeof size === "string" || size === -1 || (Number.isInteger(size) && size > 0);
  if (!shape.every(isSize)) fault("Reshape", [x], `[${shape}] is not a shape of positive sizes`);
  const open = shape.filter((size) => typeof size === "string" || size === -1).length;
  if (open > 1) fault("Reshape", [x], `to [${shape}] leaves more than one size open`);
  const from = elementCount(x.shape);
  const known = shape.reduce<number>(
    (product, size) => (typeof size === "number" && size !== -1 ? product * size : product),
    1,
  );
  if (from !== null && (open === 0 ? known !== from : from % known !== 0))
    fault("Reshape", [x], `does not fill [${shape}]`);
  const sizes = shape.map((size) => (size === -1 ? (from === null ? openDim(x, known) : from / known) : size));
  const target = constant(
    shape.map((size) => (typeof size === "string" ? -1 : size)),
    "i64",
  );
  return apply("Reshape", [x, target], {}, [{ dtype: x.dtype, shape: sizes }])[0] as Value;
}

const openDim = (x: Value, known: number): Dim => `${x.shape.join("*")}/${known}`;

/** Axes in a new order, or the last two swapped when no order is given. */
export function transpose(x: Value, order?: readonly number[]): Value {
  const axes = order ?? [...Array.from({ length: x.rank - 2 }, (_, axis) => axis), x.rank - 1, x.rank - 2];
  if ([...axes].sort((a, b) => a - b).some((axis, at) => axis !== at) || axes.length !== x.rank) {
    fault("Transpose", [x], `[${axes}] is not an order of its axes`);
  }
  const shape = axes.map((axis) => x.shape[axis] as Dim);
  return apply("Transpose", [x], { perm: axes }, [{ dtype: x.dtype, shape }])[0] as Value;
}

/** New axes of size 1, at these places of the result. */
export function unsqueeze(x: Value, ...axes: readonly number[]): Value {
  const rank = x.rank + axes.length;
  const at = axes.map((axis) => (axis < 0 ? axis + rank : axis)).sort((a, b) => a - b);
  if (new Set(at).size !== at.length || at.some((axis) => !Number.isInteger(axis) || axis < 0 || axis >= rank))
    fault("Unsqueeze", [x], `[${axes}] are not places of ${rank} axes`);
  const shape = [...x.shape];
  for (const axis of at) shape.splice(axis, 0, 1);
  return apply("Unsqueeze", [x, constant(at, "i64")], {}, [{ dtype: x.dtype, shape }])[0] as Value;
}

/** Removes axes of size 1. */
export function squeeze(x: Value, ...axes: readonly number[]): Value {
  const at = axes.map((axis) => axisOf("Squeeze", x, axis));
  if (at.some((axis) => x.shape[axis] !== 1)) fault("Squeeze", [x], `the axes ${axes} are not all of size 1`);
  const shape = x.shape.filter((_, axis) => !at.includes(axis));
  return apply("Squeeze", [x, constant(at, "i64")], {}, [{ dtype: x.dtype, shape }])[0] as Value;
}

export function concat(values: readonly Value[], axis: number): Value {
  const first = values[0] ?? fault("Concat", [], "needs at least one value");
  const at = axisOf("Concat", first, axis);
  for (const value of values) {
    const fits =
      value.rank === first.rank && value.shape.every((size, other) => other === at || size === first.shape[other]);
    if (value.dtype !== first.dtype || !fits) fault("Concat", values, `do not fit along axis ${axis}`);
  }
  const size = values.map((value) => value.shape[at] as Dim).reduce(addDims);
  return apply("Concat", values, { axis: at }, [
    { dtype: first.dtype, shape: withAxis(first.shape, at, size) },
  ])[0] as Value;
}

/** Cuts an axis into pieces of these sizes. */
export function split(x: Value, sizes: readonly number[], axis: number): Value[] {
  const at = axisOf("Split", x, axis);
  const whole = x.shape[at];
  if (sizes.length === 0 || sizes.some((size) => !Number.isInteger(size) || size < 0))
    fault("Split", [x], `[${sizes}] are not sizes`);
  const sum = sizes.reduce((total, size) => total + size, 0);
  if (typeof whole === "number" && whole !== sum) fault("Split", [x], `[${sizes}] do not add up to ${whole}`);
  const types = sizes.map((size) => ({ dtype: x.dtype, shape: withAxis(x.shape, at, size) }));
  return apply("Split", [x, constant(sizes, "i64")], { axis: at }, types);
}

const TO_END = 2 ** 52;

/**
 * Elements start..end of one axis, `step` apart; negative places count from the end. When the axis is a
 * symbol, and both places count from the same end, it is taken to be long enough.
 */
export function slice(x: Value, axis: number, start: number, end: number = TO_END, step: number = 1): Value {
  const at = axisOf("Slice", x, axis);
  if (!Number.isInteger(step) || step < 1) fault("Slice", [x], `cannot go by ${step}`);
  const size = slicedDim(x.shape[at] as Dim, start, end, step);
  if (typeof size === "number" && size < 0) fault("Slice", [x], `${start}..${end} of axis ${axis} is empty`);
  const inputs = [x, constant([start], "i64"), constant([end], "i64"), constant([at], "i64"), constant([step], "i64")];
  return apply("Slice", inputs, {}, [{ dtype: x.dtype, shape: withAxis(x.shape, at, size) }])[0] as Value;
}

function slicedDim(size: Dim, start: number, end: number, step: number): Dim {
  if (typeof size === "number") {
    const place = (index: number): number => Math.min(Math.max(index < 0 ? index + size : index, 0), size);
    return Math.ceil((place(end) - place(start)) / step);
  }
  if (start === 0 && end === TO_END && step === 1) return size;
  if (start < 0 && (end === TO_END || end < 0)) return Math.ceil(((end === TO_END ? 0 : end) - start) / step);
  if (start >= 0 && end >= 0 && end !== TO_END) return Math.ceil((end - start) / step);
  // What `concat` has joined: `10+T` from 10 on is T.
  if (end === TO_END && step === 1 && size.startsWith(`${start}+`)) return size.slice(`${start}+`.length);
  return `${size}[${start}:${end === TO_END ? "" : end}:${step}]`;
}

/** Repeats axes of size 1 until the shape is `shape`, which holds numbers only. */
export function expand(x: Value, shape: readonly number[]): Value {
  const sizes = broadcast("Expand", [x], [x.shape, shape]);
  return apply("Expand", [x, constant(shape, "i64")], {}, [{ dtype: x.dtype, shape: sizes }])[0] as Value;
}

/** `before` and `after` elements added to one axis: zeros, or copies of the edge. */
export function pad(
  x: Value,
  axis: number,
  before: number,
  after: number,
  mode: "constant" | "edge" = "constant",
): Value {
  const at = axisOf("Pad", x, axis);
  const size = addDims(x.shape[at] as Dim, before + after);
  if (typeof size === "number" && size < 0) fault("Pad", [x], `${before} and ${after} leave less than nothing`);
  const shape = withAxis(x.shape, at, size);
  const inputs = [x, constant([before, after], "i64"), null, constant([at], "i64")];
  return apply("Pad", inputs, { mode }, [{ dtype: x.dtype, shape }])[0] as Value;
}

/** The size of one axis as an i64 scalar, known only when the graph runs. */
export function sizeOf(x: Value, axis: number): Value {
  const at = axisOf("Shape", x, axis);
  const vector = apply("Shape", [x], { start: at, end: at + 1 }, [{ dtype: "i64", shape: [1] }])[0] as Value;
  return squeeze(vector, 0);
}

/** 0, 1 .. count - 1 as i64, for an i64 scalar. `as` names the size. */
export function range(count: Value, as: string): Value {
  if (count.dtype !== "i64" || count.rank !== 0) fault("Range", [count], "needs an i64 scalar");
  return apply("Range", [constant(0, "i64"), count, constant(1, "i64")], {}, [
    { dtype: "i64", shape: [as] },
  ])[0] as Value;
}

/** The same value with one axis renamed: for an axis whose size is known to the author and not to the shape rules. */
export function assume(x: Value, shape: Shape): Value {
  if (shape.length !== x.rank) fault("assume", [x], `[${shape}] has another rank`);
  const wrong = shape.some(
    (size, axis) => typeof size === "number" && typeof x.shape[axis] === "number" && size !== x.shape[axis],
  );
  if (wrong) fault("assume", [x], `[${shape}] contradicts it`);
  return apply("Identity", [x], {}, [{ dtype: x.dtype, shape }])[0] as Value;
}
