import { describe, expect, it } from "vitest";
import * as neural from "../../src/onnx/ops-neural.ts";
import { largestDifference } from "../support/golden.ts";
import { evaluate, sample } from "../support/graph.ts";

it("matmulTransposed multiplies rows with rows", async () => {
  const [rows, outputs, columns] = [3, 4, 5];
  const [x, matrix] = [sample(2, rows, columns), sample(outputs, columns)];
  const [result] = await evaluate([x, matrix], neural.matmulTransposed);
  const expected: number[] = [];
  for (let row = 0; row < 2 * rows; row++) {
    for (let o = 0; o < outputs; o++) {
      let sum = 0;
      for (let i = 0; i < columns; i++) sum += x.data[row * columns + i]! * matrix.data[o * columns + i]!;
      expected.push(sum);
    }
  }
  expect(result!.shape).toEqual([2, rows, outputs]);
  expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
});

describe("conv", () => {
  it.each([
    { groups: 1, stride: 1, dilation: 1, pads: [0, 0] as const },
    { groups: 2, stride: 2, dilation: 1, pads: [2, 1] as const },
    { groups: 4, stride: 1, dilation: 2, pads: [4, 0] as const },
  ])("of one axis: %j", async ({ groups, stride, dilation, pads }) => {
    const [inputs, outputs, kernel, time] = [4, 4, 3, 9];
    const [x, weight, bias] = [sample(1, inputs, time), sample(outputs, inputs / groups, kernel), sample(outputs)];
    const [result] = await evaluate([x, weight, bias], (a, w, b) =>
      neural.conv(a, w, b, { strides: [stride], dilations: [dilation], pads: [pads], groups }),
    );
    const length = Math.floor((time + pads[0] + pads[1] - dilation * (kernel - 1) - 1) / stride) + 1;
    const expected: number[] = [];
    for (let o = 0; o < outputs; o++) {
      for (let t = 0; t < length; t++) {
        let sum = bias.data[o]!;
        for (let i = 0; i < inputs / groups; i++) {
          const channel = Math.floor(o / (outputs / groups)) * (inputs / groups) + i;
          for (let k = 0; k < kernel; k++) {
            const place = t * stride + k * dilation - pads[0];
            if (place >= 0 && place < time)
              sum += x.data[channel * time + place]! * weight.data[(o * (inputs / groups) + i) * kernel + k]!;
          }
        }
        expected.push(sum);
      }
    }
    expect(result!.shape).toEqual([1, outputs, length]);
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
  });

  it("of two axes, padded unevenly", async () => {
    const [x, weight] = [sample(1, 1, 5, 4), sample(2, 1, 3, 3)];
    const [result] = await evaluate([x, weight], (a, w) =>
      neural.conv(a, w, null, {
        strides: [2, 2],
        pads: [
          [2, 1],
          [2, 1],
        ],
      }),
    );
    const expected: number[] = [];
    for (let o = 0; o < 2; o++) {
      for (let r = 0; r < 3; r++) {
        for (let c = 0; c < 3; c++) {
          let sum = 0;
          for (let i = 0; i < 3; i++) {
            for (let j = 0; j < 3; j++) {
              const [row, column] = [2 * r + i - 2, 2 * c + j - 2];
              if (row >= 0 && row < 5 && column >= 0 && column < 4)
                sum += x.data[row * 4 + column]! * weight.data[o * 9 + i * 3 + j]!;
            }
          }
          expected.push(sum);
        }
      }
    }
    expect(result!.shape).toEqual([1, 2, 3, 3]);
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
  });
});

describe("over the last axis", () => {
  const x = sample(3, 6);
  const rows = [0, 1, 2].map((row) => [...x.data.slice(row * 6, row * 6 + 6)]);
  const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;

  it("softmax", async () => {
    const [result] = await evaluate([x], (value) => neural.softmax(value));
    const expected = rows.flatMap((row) =>
      row.map((value) => Math.exp(value) / row.reduce((sum, other) => sum + Math.exp(other), 0)),
    );
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-6);
  });
  it("layerNormalization", async () => {
    const [scale, bias] = [sample(6), sample(6)];
    const [result] = await evaluate([x, scale, bias], (value, s, b) => neural.layerNormalization(value, s, b, 1e-3));
    const expected = rows.flatMap((row) => {
      const deviation = Math.sqrt(mean(row.map((value) => (value - mean(row)) ** 2)) + 1e-3);
      return row.map((value, i) => ((value - mean(row)) / deviation) * scale.data[i]! + bias.data[i]!);
    });
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
  });
  it("rmsNormalization", async () => {
    const scale = sample(6);
    const [result] = await evaluate([x, scale], (value, s) => neural.rmsNormalization(value, s, 1e-3));
    const expected = rows.flatMap((row) =>
      row.map((value, i) => (value / Math.sqrt(mean(row.map((v) => v * v)) + 1e-3)) * scale.data[i]!),
    );
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
  });
  it("gelu by tanh", async () => {
    const [result] = await evaluate([x], (value) => neural.gelu(value, "tanh"));
    const expected = rows
      .flat()
      .map((v) => 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3))));
    expect(largestDifference(result!.data, expected)).toBeLessThan(1e-5);
  });
});
