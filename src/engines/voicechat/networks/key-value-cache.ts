/**
 * Keys and values of attention layers that see the same positions, in buffers that the graph reads where they are. One
 * position is added at a time; with a window, the newest takes the row of the one that no query sees any more.
 *
 * H heads of width W, C rows. Keys lie transposed, so that the scores are a plain product. C grows by STEP_ROWS up to the
 * window, each layer at positions of its own: at most a few buffers are copied at once, and few rows are read that hold
 * nothing. A mask hides those.
 */
import { type FloatTensor, type Tensors, tensor, zeros } from "../../../onnx/runtime.ts";

export interface CacheShape {
  /** The layers by number: `keys.3`, `values.3` and `mask.3` are the graph's names. */
  readonly layers: readonly number[];
  /** H, as one axis or several: sequences side by side have heads of their own. */
  readonly heads: readonly number[];
  readonly width: number;
  /** Positions that a query sees, itself included; null for all. */
  readonly window: number | null;
}

interface LayerBuffers {
  /** [...H, W, C] */
  readonly keys: FloatTensor;
  /** [...H, C, W] */
  readonly values: FloatTensor;
  readonly rows: number;
}

const STEP_ROWS = 256;

export class KeyValueCache {
  readonly #shape: CacheShape;
  readonly #layers: Map<number, LayerBuffers>;
  readonly #rowsMax: number;
  /** 0 for the rows that the next position sees, minus infinity for the rest; layers with fewer rows take its beginning. */
  #mask = new Float32Array();
  #positions = 0;

  constructor(shape: CacheShape) {
    this.#shape = shape;
    this.#rowsMax = shape.window ?? Number.POSITIVE_INFINITY;
    this.#layers = new Map(
      shape.layers.map((layer, index) => {
        const rows = Math.ceil((STEP_ROWS * (index + 1)) / shape.layers.length);
        return [layer, this.#allocate(Math.min(rows, this.#rowsMax))];
      }),
    );
    this.#extendMask();
  }

  /** How many positions were added. */
  get positions(): number {
    return this.#positions;
  }

  /** Keys, values and mask [C] of every layer. A query sees its own position besides. */
  feeds(): Tensors {
    const feeds: Record<string, FloatTensor> = {};
    for (const [layer, { keys, values, rows }] of this.#layers) {
      feeds[`keys.${layer}`] = keys;
      feeds[`values.${layer}`] = values;
      feeds[`mask.${layer}`] = tensor("f32", [rows], this.#mask.subarray(0, rows));
    }
    return feeds;
  }

  /** Takes the new position's row, f32 [...H, W], by the name of its feed. */
  append(rowOf: (name: string) => Float32Array): void {
    const row = this.#positions % this.#rowsMax;
    for (const layer of this.#shape.layers) {
      const buffers = this.#withRoom(layer, row);
      writeColumn(buffers.keys.data, rowOf(`keys.${layer}`), buffers.rows, row);
      writeRow(buffers.values.data, rowOf(`values.${layer}`), this.#shape.width, buffers.rows, row);
    }
    this.#positions += 1;
    this.#mask[row] = 0;
    // What the row after holds, if anything, is a whole window old by then.
    if (this.#positions >= this.#rowsMax) this.#mask[this.#positions % this.#rowsMax] = Number.NEGATIVE_INFINITY;
  }

  /** A cache of its own with the same content. */
  clone(): KeyValueCache {
    const copy = new KeyValueCache(this.#shape);
    copy.#positions = this.#positions;
    copy.#mask = this.#mask.slice();
    for (const [layer, { keys, values, rows }] of this.#layers) {
      copy.#layers.set(layer, {
        keys: { ...keys, data: keys.data.slice() },
        values: { ...values, data: values.data.slice() },
        rows,
      });
    }
    return copy;
  }

  #allocate(rows: number): LayerBuffers {
    const { heads, width } = this.#shape;
    return { keys: zeros(...heads, width, rows), values: zeros(...heads, rows, width), rows };
  }

  /** The buffers of a layer, grown when they end before `row`. */
  #withRoom(layer: number, row: number): LayerBuffers {
    const buffers = this.#layers.get(layer)!;
    if (row < buffers.rows) return buffers;
    const grown = this.#allocate(Math.min(buffers.rows + STEP_ROWS, this.#rowsMax));
    const { width } = this.#shape;
    spread(buffers.keys.data, grown.keys.data, buffers.rows, grown.rows);
    spread(buffers.values.data, grown.values.data, buffers.rows * width, grown.rows * width);
    this.#layers.set(layer, grown);
    this.#extendMask();
    return grown;
  }

  #extendMask(): void {
    const rows = Math.max(0, ...[...this.#layers.values()].map((buffers) => buffers.rows));
    if (rows <= this.#mask.length) return;
    const mask = new Float32Array(rows).fill(Number.NEGATIVE_INFINITY);
    mask.set(this.#mask);
    this.#mask = mask;
  }
}

/** Writes [..., W] to column `at` of [..., W, columns]. */
function writeColumn(target: Float32Array, source: Float32Array, columns: number, at: number): void {
  for (let i = 0; i < source.length; i++) target[i * columns + at] = source[i]!;
}

/** Writes [H, W] to row `at` of each head of [H, rows, W]. */
function writeRow(target: Float32Array, source: Float32Array, width: number, rows: number, at: number): void {
  for (let from = 0, head = 0; from < source.length; from += width, head++) {
    target.set(source.subarray(from, from + width), (head * rows + at) * width);
  }
}

/** Copies stretches of `from` elements to the starts of stretches of `to`. */
function spread(source: Float32Array, target: Float32Array, from: number, to: number): void {
  for (let at = 0; at * from < source.length; at++) target.set(source.subarray(at * from, (at + 1) * from), at * to);
}
