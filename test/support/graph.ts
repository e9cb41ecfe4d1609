/** Runs a small graph in the real runtime. */
import { build } from "../../src/onnx/build.ts";
import { Runtime, type Tensor, tensor } from "../../src/onnx/runtime.ts";
import { argument, type Value } from "../../src/onnx/value.ts";

const runtime = new Runtime({ threads: 1 });

/** Feeds f32 tensors of these shapes by position, and gives back the numbers and the shape of each output. */
export async function evaluate(
  inputs: readonly Tensor[],
  write: (...values: Value[]) => Value | readonly Value[],
): Promise<{ data: number[]; shape: readonly number[] }[]> {
  const values = inputs.map((input, index) => argument(`in${index}`, input.dtype, input.shape));
  const written = write(...values);
  const outputs = Array.isArray(written) ? (written as Value[]) : [written as Value];
  const model = build(
    "test",
    Object.fromEntries(values.map((value, index) => [`in${index}`, value])),
    Object.fromEntries(outputs.map((value, index) => [`out${index}`, value])),
  );
  const graph = await runtime.load(model);
  const results = await graph.run(Object.fromEntries(inputs.map((input, index) => [`in${index}`, input])));
  await graph.close();
  return outputs.map((value, index) => {
    const result = results[`out${index}`]!;
    // The shape that was inferred is the one that came out, wherever it was a number.
    const differs = value.shape.some((size, axis) => typeof size === "number" && size !== result.shape[axis]);
    if (differs || value.dtype !== result.dtype || value.rank !== result.shape.length) {
      throw new Error(`inferred ${value.dtype}[${value.shape}], ran ${result.dtype}[${result.shape}]`);
    }
    return { data: Array.from(result.data as ArrayLike<number>, Number), shape: result.shape };
  });
}

/** Numbers in -1.5..1.5 that repeat never and are the same in every run. */
export function sample(...shape: number[]): Tensor<Float32Array> {
  const size = shape.reduce((product, length) => product * length, 1);
  return tensor(
    "f32",
    shape,
    Float32Array.from({ length: size }, (_, i) => 1.5 * Math.sin(12.9898 * (i + 1) + size)),
  );
}

export const integers = (shape: number[], numbers: readonly number[]): Tensor =>
  tensor(
    "i64",
    shape,
    BigInt64Array.from(numbers, (number) => BigInt(number)),
  );
