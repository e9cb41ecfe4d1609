import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { GraphError } from "../../src/errors.ts";
import { build } from "../../src/onnx/build.ts";
import * as ops from "../../src/onnx/ops.ts";
import * as layout from "../../src/onnx/ops-layout.ts";
import { conv, layerNormalization, matMulNBits, rmsNormalization } from "../../src/onnx/ops-neural.ts";
import { Runtime, tensor } from "../../src/onnx/runtime.ts";
import { argument, constant, external, type Value } from "../../src/onnx/value.ts";
import { sample } from "../support/graph.ts";
import { temporaryDirectory } from "../support/safetensors.ts";

const runtime = new Runtime({ threads: 1 });
const x = argument("x", "f32", [2, 3]);
const y = argument("y", "f32", [4, 3]);
const ids = argument("ids", "i64", [2]);
const flags = argument("flags", "bool", [2, 3]);
const open = argument("open", "f32", ["T", 3]);

describe("an ill-typed operator fails where it is written", () => {
  const ILL: Record<string, [() => unknown, string]> = {
    "shapes that do not broadcast": [() => ops.add(x, y), "Add(f32[2, 3], f32[4, 3]): 2 and 4 do not broadcast"],
    "a symbol that meets a number": [() => ops.add(open, x), "T and 2 do not broadcast"],
    "two dtypes": [() => ops.mul(x, ops.cast(x, "i32")), "the dtypes differ"],
    "booleans in arithmetic": [() => ops.add(flags, flags), "needs numbers"],
    "numbers in logic": [() => ops.and(x, x), "needs booleans"],
    "whole numbers in exp": [() => ops.exp(ids), "needs floating numbers"],
    "a condition that is none": [() => ops.where(x, x, x), "the condition is not boolean"],
    "matrices that do not meet": [() => ops.matmul(x, y), "3 columns do not meet 4 rows"],
    "a vector in matmul": [() => ops.matmul(x, constant([1, 2, 3])), "two axes"],
    "an axis that is not there": [() => ops.reduceSum(x, 2), "has no axis 2"],
    "floating indices": [() => ops.gather(x, x), "not i32 or i64"],
    "a shape that is not filled": [() => layout.reshape(x, [4, 2]), "does not fill [4,2]"],
    "two open sizes": [() => layout.reshape(x, ["A", -1]), "more than one size open"],
    "an order that misses an axis": [() => layout.transpose(x, [0, 0]), "is not an order"],
    "a squeeze of more than one": [() => layout.squeeze(x, 0), "not all of size 1"],
    "a split that does not add up": [() => layout.split(x, [1, 1], 1), "do not add up to 3"],
    "a concat of unlike values": [() => layout.concat([x, y], 1), "do not fit along axis 1"],
    "a claim that is false": [() => layout.assume(x, [2, 4]), "contradicts"],
    "channels that do not fit": [
      () => conv(argument("c", "f32", [1, 3, 9]), argument("w", "f32", [4, 2, 3]), null),
      "do not fit",
    ],
    "a quantized matrix of another size": [
      () =>
        matMulNBits(x, argument("q", "u8", [4, 1, 32]), argument("s", "f32", [4, 1]), {
          bits: 4,
          columns: 64,
          rows: 4,
          blockSize: 64,
          accuracyLevel: 4,
        }),
      "do not fit a matrix of 4 rows and 64 columns",
    ],
    "a constant of another length": [() => constant([1, 2], "f32", [3]), "needs 3 numbers, given 2"],
    "external bytes of another length": [
      () => external({ file: "/f", byteOffset: 0, byteLength: 5 }, "f32", [2]),
      "needs 8 bytes, given 5",
    ],
  };
  const signal = argument("c", "f32", [1, 4, 5]);
  const kernel = argument("w", "f32", [4, 4, 3]);
  const whole = argument("n", "i64", [3]);
  const bytes = argument("u", "u8", [3]);
  // Each of these was found by the runtime, when the model was loaded, or was a RangeError, or was not found at all.
  const LATE: Record<string, [() => unknown, string]> = {
    "an axis added twice": [() => layout.unsqueeze(x, 0, 0), "not places of 4 axes"],
    "an axis added far away": [() => layout.unsqueeze(x, 5), "not places of 3 axes"],
    "a split into less than nothing": [() => layout.split(x, [4, -1], 1), "are not sizes"],
    "a split into halves of three": [() => layout.split(x, [1.5, 1.5], 1), "are not sizes"],
    "a slice that goes nowhere": [() => layout.slice(x, 1, 0, 3, 0), "cannot go by 0"],
    "a slice from between": [() => layout.slice(x, 1, 0.5), "0.5 is not a whole number"],
    "a pad that takes more than there is": [() => layout.pad(x, 1, -4, 0), "less than nothing"],
    "a shape with a zero": [() => layout.reshape(x, [0, 6]), "not a shape of positive sizes"],
    "a shape with a half": [() => layout.reshape(x, [1.5, 4]), "not a shape of positive sizes"],
    "half a whole number": [() => ops.add(ids, 1.5), "1.5 is not a whole number"],
    "a kernel of another dtype": [() => conv(signal, argument("w", "i64", [4, 4, 3]), null), "floating numbers of one"],
    "a bias of another rank": [() => conv(signal, kernel, argument("b", "f32", [4, 1])), "the bias has another size"],
    "strides of other axes": [
      () => conv(signal, kernel, null, { strides: [1, 1] }),
      "strides, dilations and pads of 1",
    ],
    "a kernel that does not fit in": [() => conv(layout.slice(signal, 2, 0, 2), kernel, null), "does not fit in"],
    "outputs that are not groups": [
      () => conv(signal, argument("w", "f32", [3, 2, 3]), null, { groups: 2 }),
      "3 outputs are not 2 groups",
    ],
    "a norm of another dtype": [() => layerNormalization(x, whole, null, 1e-5), "floating numbers of one dtype"],
    "an RMS norm of another dtype": [() => rmsNormalization(x, whole, 1e-5), "floating numbers of one dtype"],
    "the largest one and a half": [() => ops.topK(x, 1.5), "1.5 is not a count"],
    "the largest boolean": [() => ops.argMax(flags, 0), "needs numbers"],
    "a sum of booleans": [() => ops.cumSum(flags, 0), "needs numbers"],
    "booleans in order": [() => ops.less(flags, flags), "needs numbers"],
    "bytes as indices": [() => ops.gather(x, bytes), "not i32 or i64"],
    "indices beyond another axis": [
      () => ops.gatherElements(x, argument("j", "i64", [3, 3]), 1),
      "axis 0 of the indices",
    ],
    "bytes with a sign": [() => ops.neg(bytes), "a sign"],
    "limits that cross": [() => ops.clip(x, 3, 1), "3 to 1 is no range"],
  };
  it.each(Object.keys(LATE))("%s, early", (name) => {
    const [write, message] = LATE[name]!;
    expect(write).toThrow(GraphError);
    expect(write).toThrow(message);
    expect(write).toThrow(/at build\.test\.ts:\d+:\d+/);
  });

  it.each(Object.keys(ILL))("%s", (name) => {
    const [write, message] = ILL[name]!;
    expect(write).toThrow(GraphError);
    expect(write).toThrow(message);
    // The message says which line wrote it.
    expect(write).toThrow(/at build\.test\.ts:\d+:\d+/);
  });
});

describe("build", () => {
  it("refuses an argument that is not among the inputs, or goes by another name", () => {
    expect(() => build("g", {}, { out: ops.neg(x) })).toThrow("argument x is used");
    expect(() => build("g", { other: x }, { out: ops.neg(x) })).toThrow("other is not its argument");
  });

  it("takes a graph that is deeper than any stack", async () => {
    let value: Value = x;
    for (let depth = 0; depth < 20_000; depth++) value = ops.add(value, value);
    expect(build("deep", { x }, { out: value }).bytes.length).toBeGreaterThan(20_000);
  });

  it("gives one value under two names, and an input as an output", async () => {
    const sum = ops.add(x, 1);
    const graph = await runtime.load(build("g", { x }, { a: sum, b: sum, same: x }));
    const feed = sample(2, 3);
    const results = await graph.run({ x: feed });
    expect(results["a"]).toEqual(results["b"]);
    expect(results["same"]).toEqual(feed);
    await graph.close();
  });

  it("reads external tensors in place, at any offset, each file once however often it is named", async () => {
    const file = join(temporaryDirectory(), "weights.bin");
    writeFileSync(file, Buffer.concat([Buffer.from([9, 9, 9]), Buffer.from(Uint16Array.of(0x3f80, 0xc000).buffer)]));
    const stored = (): Value => ops.cast(external({ file, byteOffset: 3, byteLength: 4 }, "bf16", [2]), "f32");
    const model = build("g", {}, { out: ops.add(stored(), stored()) });
    expect(Buffer.from(model.bytes).toString("latin1").split("weights.bin").length).toBe(2);
    const graph = await runtime.load(model);
    expect([...((await graph.run({}))["out"]!.data as Float32Array)]).toEqual([2, -4]);
    await graph.close();
  });

  // A user moves one shard to another disk and leaves a link: the graph was refused for weights in two folders.
  it("reads weights from several folders", async () => {
    const directory = temporaryDirectory();
    const at = (folder: string, number: number): Value => {
      mkdirSync(join(directory, folder), { recursive: true });
      const file = join(directory, folder, "weights.bin");
      writeFileSync(file, Buffer.from(Float32Array.of(number).buffer));
      return external({ file, byteOffset: 0, byteLength: 4 }, "f32", [1]);
    };
    const sum = ops.add(ops.add(at("a", 1), at("ab", 2)), at(join("a", "deep"), 4));
    const model = build("g", {}, { out: sum });
    expect(model.externalFolder).toBe(directory);
    const graph = await runtime.load(model);
    expect([...((await graph.run({}))["out"]!.data as Float32Array)]).toEqual([7]);
    await graph.close();
  });
});

describe("Runtime", () => {
  it("gives only the outputs that are asked for", async () => {
    const graph = await runtime.load(build("g", { x }, { a: ops.neg(x), b: ops.abs(x) }));
    expect(Object.keys(await graph.run({ x: sample(2, 3) }, ["b"]))).toEqual(["b"]);
    await graph.close();
  });

  it("refuses a feed that does not fit, and says what it is", async () => {
    const graph = await runtime.load(build("g", { open }, { a: ops.neg(open) }));
    await expect(graph.run({})).rejects.toThrow("input open is missing, not f32[T, 3]");
    await expect(graph.run({ open: sample(3, 2) })).rejects.toThrow("is f32[3, 2]");
    await expect(graph.run({ open: tensor("f32", [2, 3], new Float32Array(5)) })).rejects.toThrow("input open");
    expect((await graph.run({ open: sample(7, 3) }))["a"]!.shape).toEqual([7, 3]);
    await graph.close();
  });

  it("reports a provider that this build lacks", () => {
    const absent = (["webgpu", "cuda", "coreml"] as const).filter((provider) => !runtime.providers.includes(provider));
    expect(absent.length).toBeGreaterThan(0);
    for (const provider of absent)
      expect(() => new Runtime({ provider })).toThrow(`the provider ${provider} is not in`);
  });
});
