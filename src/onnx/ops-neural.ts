/** Operators of neural networks: convolutions, normalizations, softmax, quantized products. */
import { isFloat } from "./dtype.ts";
import { axisOf, windowDim, withAxis } from "./shapes.ts";
import { apply, type Dim, fault, type Value } from "./value.ts";

/** ONNX Runtime's own operators. */
const MICROSOFT = "com.microsoft";

export interface ConvOptions {
  /** Per spatial axis. */
  readonly strides?: readonly number[];
  readonly dilations?: readonly number[];
  /** [before, after] per spatial axis. */
  readonly pads?: readonly (readonly [number, number])[];
  readonly groups?: number;
}

/** x [B, I, ..spatial], weight [O, I / groups, ..kernel], bias [O]. */
export function conv(x: Value, weight: Value, bias: Value | null, options: ConvOptions = {}): Value {
  const inputs = bias === null ? [x, weight] : [x, weight, bias];
  const spatial = x.rank - 2;
  const { strides = fill(spatial, 1), dilations = fill(spatial, 1), groups = 1 } = options;
  const pads = options.pads ?? Array.from({ length: spatial }, () => [0, 0] as const);
  requireFloats("Conv", inputs);
  if (weight.rank !== x.rank || spatial < 1) fault("Conv", inputs, "needs two axes and the spatial ones on both");
  if ([strides, dilations, pads].some((list) => list.length !== spatial))
    fault("Conv", inputs, `needs strides, dilations and pads of ${spatial} axes`);
  if (x.size(1) !== weight.size(1) * groups)
    fault("Conv", inputs, `${x.dim(1)} channels in ${groups} groups do not fit`);
  if (weight.size(0) % groups !== 0) fault("Conv", inputs, `${weight.dim(0)} outputs are not ${groups} groups`);
  if (bias !== null && (bias.rank !== 1 || bias.dim(0) !== weight.dim(0)))
    fault("Conv", inputs, "the bias has another size");
  const sizes = Array.from({ length: spatial }, (_, axis): Dim => {
    const [before, after] = pads[axis] as readonly [number, number];
    const reach = (dilations[axis] as number) * (weight.size(axis + 2) - 1) + 1;
    return windowDim(x.shape[axis + 2] as Dim, before + after - reach, strides[axis] as number);
  });
  if (sizes.some((size) => typeof size === "number" && size < 1)) fault("Conv", inputs, "the kernel does not fit in");
  const attributes = { strides, dilations, group: groups, pads: onnxPads(pads) };
  return apply("Conv", inputs, attributes, [
    { dtype: x.dtype, shape: [x.shape[0] as Dim, weight.shape[0] as Dim, ...sizes] },
  ])[0] as Value;
}

function requireFloats(operator: string, inputs: readonly Value[]): void {
  const dtype = inputs[0]?.dtype ?? "f32";
  if (!isFloat(dtype) || inputs.some((input) => input.dtype !== dtype))
    fault(operator, inputs, "needs floating numbers of one dtype");
}

const fill = (length: number, value: number): number[] => new Array<number>(length).fill(value);

/** ONNX wants all the befores, then all the afters. */
const onnxPads = (pads: readonly (readonly [number, number])[]): number[] => [
  ...pads.map(([before]) => before),
  ...pads.map(([, after]) => after),
];

export function softmax(x: Value, axis: number = -1): Value {
  if (!isFloat(x.dtype)) fault("Softmax", [x], "needs floating numbers");
  return apply("Softmax", [x], { axis: axisOf("Softmax", x, axis) }, [x.type])[0] as Value;
}

/** (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis. */
export function layerNormalization(x: Value, scale: Value, bias: Value | null, epsilon: number): Value {
  const inputs = bias === null ? [x, scale] : [x, scale, bias];
  requireFloats("LayerNormalization", inputs);
  if (inputs.some((input) => input.dim(-1) !== x.dim(-1))) fault("LayerNormalization", inputs, "the last axes differ");
  return apply("LayerNormalization", inputs, { axis: -1, epsilon: { float: epsilon } }, [x.type])[0] as Value;
}

/** x / sqrt(mean(x^2) + epsilon) * scale over the last axis. */
export function rmsNormalization(x: Value, scale: Value, epsilon: number): Value {
  const inputs = [x, scale];
  requireFloats("SimplifiedLayerNormalization", inputs);
  if (scale.rank !== 1 || scale.dim(0) !== x.dim(-1))
    fault("SimplifiedLayerNormalization", inputs, "the last axes differ");
  const attributes = { axis: -1, epsilon: { float: epsilon }, stash_type: 1 };
  return apply("SimplifiedLayerNormalization", inputs, attributes, [x.type])[0] as Value;
}

/** x/2 (1 + erf(x / sqrt 2)), or its approximation by tanh. */
export function gelu(x: Value, approximate: "none" | "tanh" = "none"): Value {
  if (!isFloat(x.dtype)) fault("Gelu", [x], "needs floating numbers");
  return apply("Gelu", [x], { approximate }, [x.type])[0] as Value;
}

/**
 * x [.., columns] times the transpose of a matrix [rows, columns], as weights are stored: [.., rows]. A constant matrix is
 * held once, packed for the product; transposing it first would leave the runtime with a second copy.
 */
export function matmulTransposed(x: Value, matrix: Value): Value {
  const inputs = [x, matrix];
  if (x.dtype !== "f32" || matrix.dtype !== "f32") fault("FusedMatMul", inputs, "needs float32");
  if (x.rank < 2 || matrix.rank !== 2) fault("FusedMatMul", inputs, "needs rows and a matrix");
  if (x.dim(-1) !== matrix.dim(1))
    fault("FusedMatMul", inputs, `${x.dim(-1)} columns do not meet ${matrix.dim(1)} columns`);
  const shape = withAxis(x.shape, x.rank - 1, matrix.dim(0));
  return apply("FusedMatMul", inputs, { transB: 1 }, [{ dtype: "f32", shape }], MICROSOFT)[0] as Value;
}

export interface MatMulNBitsOptions {
  readonly bits: 4 | 8;
  readonly columns: number;
  readonly rows: number;
  readonly blockSize: number;
  /** 4 lets the runtime quantize the activations to int8; 0 keeps them. */
  readonly accuracyLevel: 0 | 4;
}

/**
 * x [.., columns] times the transpose of a quantized matrix: packed u8 [rows, columns / block, block * bits / 8] and
 * scales f32 [rows, columns / block]; the zero point is 8 for 4 bits and 128 for 8.
 */
export function matMulNBits(x: Value, packed: Value, scales: Value, options: MatMulNBitsOptions): Value {
  const { bits, columns, rows, blockSize, accuracyLevel } = options;
  const inputs = [x, packed, scales];
  const blocks = columns / blockSize;
  const fits =
    x.dim(-1) === columns &&
    String(packed.shape) === String([rows, blocks, (blockSize * bits) / 8]) &&
    x.dtype === "f32" &&
    packed.dtype === "u8" &&
    scales.dtype === "f32" &&
    String(scales.shape) === String([rows, blocks]);
  if (!fits) fault("MatMulNBits", inputs, `do not fit a matrix of ${rows} rows and ${columns} columns`);
  const attributes = { K: columns, N: rows, bits, block_size: blockSize, accuracy_level: accuracyLevel };
  const shape = withAxis(x.shape, x.rank - 1, rows);
  return apply("MatMulNBits", inputs, attributes, [{ dtype: x.dtype, shape }], MICROSOFT)[0] as Value;
}
