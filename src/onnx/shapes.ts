/** Shape arithmetic for the operator functions, with symbols where a size is not known. */
import { type Dim, fault, type Shape, type Value } from "./value.ts";

export const addDims = (a: Dim, b: Dim): Dim => {
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (a === 0) return b;
  if (b === 0) return a;
  return `${a}+${b}`;
};

/** floor((size + offset) / step) + 1: what a window of a convolution leaves. */
export const windowDim = (size: Dim, offset: number, step: number): Dim =>
  typeof size === "number" ? Math.floor((size + offset) / step) + 1 : `floor((${size}+${offset})/${step})+1`;

export function axisOf(operator: string, value: Value, axis: number): number {
  const at = axis < 0 ? axis + value.rank : axis;
  if (!Number.isInteger(axis) || at < 0 || at >= value.rank) fault(operator, [value], `has no axis ${axis}`);
  return at;
}

/** Numpy broadcasting. A symbol meets its equal or 1. */
export function broadcast(operator: string, inputs: readonly Value[], shapes: readonly Shape[]): Dim[] {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let size: Dim = 1;
    for (const shape of shapes) {
      const other = shape[axis - rank + shape.length] ?? 1;
      if (other === 1 || other === size) continue;
      if (size !== 1) fault(operator, inputs, `${size} and ${other} do not broadcast`);
      size = other;
    }
    return size;
  });
}

/** Product of the sizes; null when a symbol is among them. */
export const elementCount = (shape: Shape): number | null =>
  shape.reduce<number | null>(
    (product, size) => (product === null || typeof size === "string" ? null : product * size),
    1,
  );

/** The shape with one axis replaced, or removed where `size` is null. */
export const withAxis = (shape: Shape, axis: number, size: Dim | null): Dim[] =>
  shape.flatMap((old, at) => (at === axis ? (size === null ? [] : [size]) : [old]));
