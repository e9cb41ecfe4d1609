import { describe, expect, it } from "vitest";
import { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../src/checkpoint/weights.ts";
import * as nn from "../../src/onnx/nn.ts";
import type { Precision } from "../../src/onnx/quantized.ts";
import type { Tensor } from "../../src/onnx/runtime.ts";
import type { Value } from "../../src/onnx/value.ts";
import { largestDifference } from "../support/golden.ts";
import { evaluate, sample } from "../support/graph.ts";
import { f32, type Written, writeCheckpointOf } from "../support/safetensors.ts";

async function block(
  tensors: Record<string, Written>,
  x: Tensor,
  write: (x: Value, weights: Weights) => Value,
): Promise<number[]> {
  const checkpoint = Checkpoint.open(writeCheckpointOf(tensors));
  const weights = Weights.of(checkpoint);
  const [result] = await evaluate([x], (value) => write(value, weights));
  weights.finish();
  checkpoint.close();
  return result!.data;
}

const stored = (x: Tensor<Float32Array>): Written => f32(x.shape, x.data);
const x = sample(2, 4);
const rows = [0, 1].map((row) => [...x.data.slice(row * 4, row * 4 + 4)]);
const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
const sigmoid = (value: number): number => 1 / (1 + Math.exp(-value));

describe("blocks", () => {
  it("linear multiplies by the transpose and adds the bias", async () => {
    const [weight, bias] = [sample(3, 4), sample(3)];
    const found = await block({ weight: stored(weight), bias: stored(bias) }, x, (value, weights) =>
      nn.linear(value, weights, 4, 3, { bias: true }),
    );
    const expected = rows.flatMap((row) =>
      [0, 1, 2].map((o) => row.reduce((sum, value, i) => sum + value * weight.data[o * 4 + i]!, bias.data[o]!)),
    );
    expect(largestDifference(found, expected)).toBeLessThan(1e-6);
  });
  it("layerNorm", async () => {
    const [weight, bias] = [sample(4), sample(4)];
    const found = await block({ weight: stored(weight), bias: stored(bias) }, x, (value, weights) =>
      nn.layerNorm(value, weights, 4),
    );
    const expected = rows.flatMap((row) => {
      const deviation = Math.sqrt(mean(row.map((value) => (value - mean(row)) ** 2)) + 1e-5);
      return row.map((value, i) => ((value - mean(row)) / deviation) * weight.data[i]! + bias.data[i]!);
    });
    expect(largestDifference(found, expected)).toBeLessThan(1e-5);
  });
  it.each([0, 1] as const)("rmsNorm with its weight offset by %i", async (offset) => {
    const weight = sample(4);
    const found = await block({ weight: stored(weight) }, x, (value, weights) =>
      nn.rmsNorm(value, weights, 4, 1e-6, offset),
    );
    const expected = rows.flatMap((row) =>
      row.map((value, i) => (value / Math.sqrt(mean(row.map((v) => v * v)) + 1e-6)) * (weight.data[i]! + offset)),
    );
    expect(largestDifference(found, expected)).toBeLessThan(1e-5);
  });
  it("silu and glu", async () => {
    const [silu, glu] = await evaluate([x], (value) => [nn.silu(value), nn.glu(value)]);
    expect(
      largestDifference(
        silu!.data,
        rows.flat().map((v) => v * sigmoid(v)),
      ),
    ).toBeLessThan(1e-6);
    expect(
      largestDifference(
        glu!.data,
        rows.flatMap(([a, b, c, d]) => [a! * sigmoid(c!), b! * sigmoid(d!)]),
      ),
    ).toBeLessThan(1e-6);
  });
});

describe.each([4, 8] as const)("a matrix of %i bits", (bits) => {
  const [outputs, inputs] = [5, 128];
  const q = Array.from({ length: outputs * inputs }, (_, i) => (i * 7919 + (i >> 3)) % 2 ** bits);
  const packed = new Uint32Array((q.length * bits) / 32);
  for (const [i, value] of q.entries()) packed[Math.floor((i * bits) / 32)]! |= value << ((i * bits) % 32);
  const [scales, biases] = [sample(outputs, 2), sample(outputs, 2)];
  const tensors = {
    weight: { dtype: "U32", shape: [outputs, packed.length / outputs], bytes: new Uint8Array(packed.buffer) },
    scales: stored(scales),
    biases: stored(biases),
  };
  const input = sample(1, inputs);
  const expected = Array.from({ length: outputs }, (_, o) =>
    input.data.reduce((sum, value, i) => {
      const group = o * 2 + Math.floor(i / 64);
      return sum + value * (q[o * inputs + i]! * scales.data[group]! + biases.data[group]!);
    }, 0),
  );
  const size = Math.max(...expected.map(Math.abs));
  const multiply = (x: Tensor, precision: Precision): Promise<number[]> =>
    block(tensors, x, (value, weights) => nn.linear(value, weights, inputs, outputs, { precision }));

  it("is multiplied to float32's precision by three rows of int8", async () => {
    expect(largestDifference(await multiply(input, "exact"), expected) / size).toBeLessThan(3e-6);
  });
  it("is multiplied to float32's precision by a kernel for floats", async () => {
    expect(largestDifference(await multiply(input, "float"), expected) / size).toBeLessThan(3e-6);
  });
  it("is multiplied roughly by one row", async () => {
    const error = largestDifference(await multiply(input, "fast"), expected) / size;
    expect(error).toBeLessThan(0.05);
    expect(error).toBeGreaterThan(1e-5);
  });
  it("gives zeros for zeros", async () => {
    const zeros = { ...input, data: new Float32Array(inputs) };
    expect((await multiply(zeros, "exact")).every((value) => value === 0)).toBe(true);
  });
  it("takes one row only", async () => {
    await expect(multiply(sample(2, inputs), "exact")).rejects.toThrow("takes one row");
  });
});
