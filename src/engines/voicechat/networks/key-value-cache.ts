/**
 * Keys and values of attention layers that see the same positions, in buffers that the graph reads where they are. One
 * position is added at a time; with a window, the newest takes the row of the one that no query sees any more.
 *
 * B sequences side by side, H heads, W the width of a head, C rows. Keys lie transposed, so that the scores are a plain
 * product. C grows by doubling up to the window: a mask hides the rows that hold nothing.
 */
import { type FloatTensor, type Tensors, tensor, zeros } from "../../../onnx/runtime.ts";

export interface CacheShape {
  /** The layers by number: `keys.3` and `values.3` are the graph's names. */
  readonly layers: readonly number[];
  readonly batch: number;
  readonly heads: number;
  readonly width: number;
  /** Positions that a query sees, itself included; null for all. */
  readonly window: number | null;
}

interface LayerBuffers {
  /** [B, H, W, C] */
  readonly keys: FloatTensor;
  /** [B, H, C, W] */
  readonly values: FloatTensor;
}

const ROWS_MIN = 64;

export class KeyValueCache {
  readonly #shape: CacheShape;
  #rows: number;
  #positions = 0;
  #layers: Map<number, LayerBuffers>;

  constructor(shape: CacheShape) {
    this.#shape = shape;
    this.#rows = Math.min(ROWS_MIN, this.#rowsMax);
    this.#layers = this.#allocate();
  }

  /** How many positions were added. */
  get positions(): number {
    return this.#positions;
  }

  /** `keys.N` and `values.N` of every layer. */
  feeds(): Tensors {
    const feeds: Record<string, FloatTensor> = {};
    for (const [layer, { keys, values }] of this.#layers) {
      feeds[`keys.${layer}`] = keys;
      feeds[`values.${layer}`] = values;
    }
    return feeds;
  }

  /** f32 [C]: 0 for the rows that the next position sees, minus infinity for the rest. It sees itself besides. */
  mask(): FloatTensor {
    const mask = new Float32Array(this.#rows);
    const next = this.#nextRow;
    // Rows before the next one were filled in this round, the others in the round before, if there was one.
    for (let row = 0; row < this.#rows; row++) {
      const age = row < next ? next - row : next - row + this.#rows;
      if (age > this.#positions || age >= this.#rowsMax) mask[row] = Number.NEGATIVE_INFINITY;
    }
    return tensor("f32", [this.#rows], mask);
  }

  /** Takes the new position's keys and values, f32 [B, H, W] under the names of `feeds`. */
  append(results: Tensors): void {
    if (this.#positions === this.#rows && this.#rows < this.#rowsMax) this.#grow();
    const { batch, heads, width } = this.#shape;
    const row = this.#nextRow;
    for (const [layer, { keys, values }] of this.#layers) {
      const newKeys = results[`keys.${layer}`]!.data as Float32Array;
      const newValues = results[`values.${layer}`]!.data as Float32Array;
      for (let i = 0; i < batch * heads * width; i++) keys.data[i * this.#rows + row] = newKeys[i]!;
      for (let head = 0; head < batch * heads; head++) {
        values.data.set(newValues.subarray(head * width, (head + 1) * width), (head * this.#rows + row) * width);
      }
    }
    this.#positions += 1;
  }

  /** A cache of its own with the same content. */
  clone(): KeyValueCache {
    const copy = new KeyValueCache(this.#shape);
    copy.#rows = this.#rows;
    copy.#positions = this.#positions;
    copy.#layers = new Map(
      [...this.#layers].map(([layer, { keys, values }]) => [
        layer,
        { keys: { ...keys, data: keys.data.slice() }, values: { ...values, data: values.data.slice() } },
      ]),
    );
    return copy;
  }

  get #rowsMax(): number {
    return this.#shape.window ?? Number.POSITIVE_INFINITY;
  }
  /** Where the next position goes; `#rows` when the buffers must grow first. */
  get #nextRow(): number {
    return this.#rows === this.#rowsMax ? this.#positions % this.#rows : this.#positions;
  }

  #allocate(): Map<number, LayerBuffers> {
    const { layers, batch, heads, width } = this.#shape;
    return new Map(
      layers.map((layer) => [
        layer,
        { keys: zeros(batch, heads, width, this.#rows), values: zeros(batch, heads, this.#rows, width) },
      ]),
    );
  }

  #grow(): void {
    const before = this.#rows;
    const old = this.#layers;
    this.#rows = Math.min(2 * before, this.#rowsMax);
    this.#layers = this.#allocate();
    for (const [layer, { keys, values }] of this.#layers) {
      const previous = old.get(layer)!;
      spread(previous.keys.data, keys.data, before, this.#rows);
      spread(previous.values.data, values.data, before * this.#shape.width, this.#rows * this.#shape.width);
    }
  }
}

/** Copies stretches of `from` elements to the starts of stretches of `to`. */
function spread(source: Float32Array, target: Float32Array, from: number, to: number): void {
  for (let at = 0; at * from < source.length; at++) target.set(source.subarray(at * from, (at + 1) * from), at * to);
}
