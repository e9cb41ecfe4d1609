import { describe, expect, it } from "vitest";
import * as ops from "../../src/onnx/ops.ts";
import type { Value } from "../../src/onnx/value.ts";
import { evaluate, integers, sample } from "../support/graph.ts";

const expectClose = (found: readonly number[], expected: readonly number[]): void => {
  expect(found.length).toBe(expected.length);
  // A few float32 roundings.
  for (const [i, value] of expected.entries())
    expect(Math.abs(found[i]! - value)).toBeLessThanOrEqual(2e-6 * Math.max(1, Math.abs(value)));
};

const truth = (flag: boolean): number => (flag ? 1 : 0);

/** Error function by its series: exact enough for arguments below 2. */
function erf(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 40; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

const UNARY: Record<string, [(x: Value) => Value, (x: number) => number]> = {
  exp: [ops.exp, Math.exp],
  log: [(x) => ops.log(ops.abs(x)), (x) => Math.log(Math.abs(x))],
  sqrt: [(x) => ops.sqrt(ops.abs(x)), (x) => Math.sqrt(Math.abs(x))],
  sin: [ops.sin, Math.sin],
  cos: [ops.cos, Math.cos],
  tanh: [ops.tanh, Math.tanh],
  erf: [ops.erf, erf],
  sigmoid: [ops.sigmoid, (x) => 1 / (1 + Math.exp(-x))],
  softplus: [ops.softplus, (x) => Math.log1p(Math.exp(x))],
  floor: [ops.floor, Math.floor],
  round: [ops.round, Math.round],
  neg: [ops.neg, (x) => -x],
  abs: [ops.abs, Math.abs],
  relu: [ops.relu, (x) => Math.max(0, x)],
  clip: [(x) => ops.clip(x, -0.5, 1), (x) => Math.min(1, Math.max(-0.5, x))],
  "clip without a top": [(x) => ops.clip(x, -0.5, Number.POSITIVE_INFINITY), (x) => Math.max(-0.5, x)],
  "cast to i32": [(x) => ops.cast(x, "i32"), Math.trunc],
};

describe("element by element", () => {
  it.each(Object.keys(UNARY))("%s", async (name) => {
    const [write, plain] = UNARY[name]!;
    const x = sample(3, 5);
    const [result] = await evaluate([x], write);
    expectClose(result!.data, [...x.data].map(plain));
  });

  it("round takes halves to the even neighbour", async () => {
    const x = sample(4);
    x.data.set([0.5, 1.5, 2.5, -0.5]);
    const [result] = await evaluate([x], ops.round);
    expect(result!.data.map((value) => value + 0)).toEqual([0, 2, 2, 0]);
  });
});

const BINARY: Record<string, [(a: Value, b: Value) => Value, (a: number, b: number) => number]> = {
  add: [ops.add, (a, b) => a + b],
  sub: [ops.sub, (a, b) => a - b],
  mul: [ops.mul, (a, b) => a * b],
  div: [ops.div, (a, b) => a / b],
  maximum: [ops.maximum, Math.max],
  minimum: [ops.minimum, Math.min],
  equal: [(a, b) => ops.equal(ops.round(a), ops.round(b)), (a, b) => truth(Math.round(a) === Math.round(b))],
  less: [ops.less, (a, b) => truth(a < b)],
  greater: [ops.greater, (a, b) => truth(a > b)],
  and: [(a, b) => ops.and(ops.less(a, 0), ops.less(b, 0)), (a, b) => truth(a < 0 && b < 0)],
  or: [(a, b) => ops.or(ops.less(a, 0), ops.less(b, 0)), (a, b) => truth(a < 0 || b < 0)],
  not: [(a, b) => ops.not(ops.less(a, b)), (a, b) => truth(!(a < b))],
  where: [(a, b) => ops.where(ops.less(a, 0), a, b), (a, b) => (a < 0 ? a : b)],
};

describe("two operands", () => {
  it.each(Object.keys(BINARY))("%s broadcasts a row over rows", async (name) => {
    const [write, plain] = BINARY[name]!;
    const [a, b] = [sample(3, 4), sample(4)];
    const [result] = await evaluate([a, b], write);
    expectClose(
      result!.data,
      [...a.data].map((value, i) => plain(value, b.data[i % 4]!)),
    );
  });

  it("take a number on either side", async () => {
    const x = sample(5);
    const [left, right] = await evaluate([x], (value) => [ops.sub(1, value), ops.sub(value, 1)]);
    expectClose(
      left!.data,
      [...x.data].map((value) => 1 - value),
    );
    expectClose(
      right!.data,
      [...x.data].map((value) => value - 1),
    );
  });
});

describe("matmul", () => {
  it("multiplies batches, broadcasting the batch axes", async () => {
    const [a, b] = [sample(2, 3, 4), sample(4, 5)];
    const [result] = await evaluate([a, b], ops.matmul);
    const expected = Array.from({ length: 30 }, (_, index) => {
      const [row, column] = [Math.floor(index / 5), index % 5];
      return [0, 1, 2, 3].reduce((sum, k) => sum + a.data[row * 4 + k]! * b.data[k * 5 + column]!, 0);
    });
    expect(result!.shape).toEqual([2, 3, 5]);
    expectClose(result!.data, expected);
  });
});

describe("along an axis", () => {
  const x = sample(2, 3, 4);
  const columns = (fold: (list: number[]) => number): number[] =>
    Array.from({ length: 8 }, (_, index) => {
      const [outer, inner] = [Math.floor(index / 4), index % 4];
      return fold([0, 1, 2].map((middle) => x.data[(outer * 3 + middle) * 4 + inner]!));
    });

  const REDUCTIONS: Record<string, [(x: Value, axis: number, keep?: boolean) => Value, (list: number[]) => number]> = {
    reduceSum: [ops.reduceSum, (list) => list.reduce((sum, value) => sum + value)],
    reduceMean: [ops.reduceMean, (list) => list.reduce((sum, value) => sum + value) / 3],
    reduceMax: [ops.reduceMax, (list) => Math.max(...list)],
    argMax: [ops.argMax, (list) => list.indexOf(Math.max(...list))],
    argMin: [ops.argMin, (list) => list.indexOf(Math.min(...list))],
  };
  it.each(Object.keys(REDUCTIONS))("%s", async (name) => {
    const [write, fold] = REDUCTIONS[name]!;
    const [kept, dropped] = await evaluate([x], (value) => [write(value, 1, true), write(value, -2, false)]);
    expect(kept!.shape).toEqual([2, 1, 4]);
    expect(dropped!.shape).toEqual([2, 4]);
    expectClose(kept!.data, columns(fold));
    expectClose(dropped!.data, columns(fold));
  });

  it("argMax takes the first of equals", async () => {
    const equal = sample(4);
    equal.data.set([1, 7, 7, 3]);
    const [result] = await evaluate([equal], (value) => ops.argMax(value, 0));
    expect(result!.data).toEqual([1]);
  });

  it.each([
    [{}, [1, 3, 6]],
    [{ exclusive: true }, [0, 1, 3]],
    [{ reverse: true }, [6, 5, 3]],
    [{ exclusive: true, reverse: true }, [5, 3, 0]],
  ])("cumSum with %j", async (options, expected) => {
    const ascending = sample(3);
    ascending.data.set([1, 2, 3]);
    const [result] = await evaluate([ascending], (value) => ops.cumSum(value, 0, options));
    expect(result!.data).toEqual(expected);
  });

  it("topK gives the largest in falling order, and where they were", async () => {
    const [values, places] = await evaluate([x], (value) => ops.topK(value, 2));
    for (let row = 0; row < 6; row++) {
      const sorted = [...x.data.slice(row * 4, row * 4 + 4).entries()].sort((a, b) => b[1] - a[1]).slice(0, 2);
      expect(values!.data.slice(row * 2, row * 2 + 2)).toEqual(sorted.map(([, value]) => value));
      expect(places!.data.slice(row * 2, row * 2 + 2)).toEqual(sorted.map(([place]) => place));
    }
  });
});

describe("by index", () => {
  const x = sample(3, 4);
  it("gather picks rows and columns", async () => {
    const [rows, columns] = await evaluate([x, integers([2], [2, 0])], (value, at) => [
      ops.gather(value, at),
      ops.gather(value, at, 1),
    ]);
    expect(rows!.data).toEqual([...x.data.slice(8, 12), ...x.data.slice(0, 4)]);
    expect(columns!.data).toEqual([0, 1, 2].flatMap((row) => [x.data[row * 4 + 2]!, x.data[row * 4]!]));
  });
  it("gatherElements picks one element per index", async () => {
    const [result] = await evaluate([x, integers([3, 2], [3, 0, 1, 1, 2, 3])], (value, at) =>
      ops.gatherElements(value, at, 1),
    );
    expect(result!.data).toEqual([3, 0, 5, 5, 10, 11].map((place) => x.data[place]!));
  });
});
