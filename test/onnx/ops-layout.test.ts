import { describe, expect, it } from "vitest";
import { build } from "../../src/onnx/build.ts";
import * as layout from "../../src/onnx/ops-layout.ts";
import { Runtime, tensor } from "../../src/onnx/runtime.ts";
import { argument } from "../../src/onnx/value.ts";
import { evaluate, integers, sample } from "../support/graph.ts";

describe("layout", () => {
  const x = sample(2, 3, 4);
  const at = (i: number, j: number, k: number): number => x.data[(i * 3 + j) * 4 + k]!;

  it("reshape keeps the order, and computes what is left open", async () => {
    const [result] = await evaluate([x], (value) => layout.reshape(value, [4, -1]));
    expect(result).toEqual({ shape: [4, 6], data: [...x.data] });
  });
  it("transpose reorders axes, or swaps the last two", async () => {
    const [moved, swapped] = await evaluate([x], (value) => [
      layout.transpose(value, [2, 0, 1]),
      layout.transpose(value),
    ]);
    const each = <T>(a: number, b: number, c: number, give: (i: number, j: number, k: number) => T): T[] =>
      Array.from({ length: a * b * c }, (_, index) =>
        give(Math.floor(index / (b * c)), Math.floor(index / c) % b, index % c),
      );
    expect(moved!.data).toEqual(each(4, 2, 3, (k, i, j) => at(i, j, k)));
    expect(swapped!.data).toEqual(each(2, 4, 3, (i, k, j) => at(i, j, k)));
  });
  it("unsqueeze and squeeze are each other's inverse", async () => {
    const [wide, narrow] = await evaluate([x], (value) => {
      const added = layout.unsqueeze(value, 0, -1);
      return [added, layout.squeeze(added, 0, 4)];
    });
    expect(wide!.shape).toEqual([1, 2, 3, 4, 1]);
    expect(narrow).toEqual({ shape: [2, 3, 4], data: [...x.data] });
  });
  it("split cuts what concat joins", async () => {
    const [left, right, whole] = await evaluate([x], (value) => {
      const pieces = layout.split(value, [1, 3], 2);
      return [...pieces, layout.concat(pieces, -1)];
    });
    expect(left!.data).toEqual([0, 1].flatMap((i) => [0, 1, 2].map((j) => at(i, j, 0))));
    expect(right!.shape).toEqual([2, 3, 3]);
    expect(whole!.data).toEqual([...x.data]);
  });
  it.each([
    [1, 3, 1],
    [-2, undefined, 1],
    [0, -1, 1],
    [0, undefined, 2],
    [2, 99, 1],
  ])("slice %s..%s by %s", async (start, end, step) => {
    const line = sample(4);
    const [result] = await evaluate([line], (value) => layout.slice(value, 0, start, end, step));
    expect(result!.data).toEqual([...line.data].slice(start, end).filter((_, i) => i % step === 0));
  });
  it("expand repeats axes of size 1", async () => {
    const row = sample(1, 3);
    const [result] = await evaluate([row], (value) => layout.expand(value, [2, 3]));
    expect(result!.data).toEqual([...row.data, ...row.data]);
  });
  it("pad adds zeros or copies of the edge", async () => {
    const row = sample(3);
    const [zeros, edges] = await evaluate([row], (value) => [
      layout.pad(value, 0, 1, 2),
      layout.pad(value, 0, 1, 2, "edge"),
    ]);
    const [a, b, c] = [...row.data];
    expect(zeros!.data).toEqual([0, a, b, c, 0, 0]);
    expect(edges!.data).toEqual([a, a, b, c, c, c]);
  });
  it("range counts as far as an axis is long", async () => {
    const [result] = await evaluate([integers([5], [9, 9, 9, 9, 9])], (value) =>
      layout.range(layout.sizeOf(value, 0), "n"),
    );
    expect(result!.data).toEqual([0, 1, 2, 3, 4]);
  });
  it("joins and cuts an axis whose size only the run knows", async () => {
    const [past, now] = [argument("past", "f32", [3, 2]), argument("now", "f32", ["T", 2])];
    const whole = layout.concat([past, now], 0);
    const [first, rest] = [layout.slice(whole, 0, 0, 3), layout.slice(whole, 0, 3)];
    expect([whole.shape, first.shape, rest.shape]).toEqual([
      ["3+T", 2],
      [3, 2],
      ["T", 2],
    ]);
    const graph = await new Runtime({ threads: 1 }).load(build("dynamic", { past, now }, { first, rest }));
    const [a, b] = [sample(3, 2), sample(4, 2)];
    const results = await graph.run({ past: a, now: tensor("f32", [4, 2], b.data) });
    expect(results["first"]!.data).toEqual(a.data);
    expect(results["rest"]).toEqual({ dtype: "f32", shape: [4, 2], data: b.data });
    await graph.close();
  });
});
