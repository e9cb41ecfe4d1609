import fc from "fast-check";
import { expect, test } from "vitest";
import { type CacheShape, KeyValueCache } from "../../../src/engines/voicechat/networks/key-value-cache.ts";
import type { FloatTensor } from "../../../src/onnx/runtime.ts";

const [BATCH, HEADS, WIDTH] = [2, 3, 4];
const SIZE = BATCH * HEADS * WIDTH;

const shape = (window: number | null): CacheShape => ({
  layers: [1, 4],
  heads: [BATCH, HEADS],
  width: WIDTH,
  window,
});

/** Numbers that say where they come from. */
function append(cache: KeyValueCache, position: number): void {
  cache.append((name) => {
    const [kind, layer] = name.split(".");
    const sign = kind === "keys" ? 1 : -1;
    return Float32Array.from({ length: SIZE }, (_, i) => sign * (position * 1000 + Number(layer) * 100 + i));
  });
}

/** The positions that the mask shows, each with keys and values in their place. */
function visible(cache: KeyValueCache, layer: number): number[] {
  const feeds = cache.feeds() as Record<string, FloatTensor>;
  const [keys, values] = [feeds[`keys.${layer}`]!, feeds[`values.${layer}`]!];
  const rows = keys.shape[3]!;
  const positions: number[] = [];
  for (const [at, hidden] of feeds[`mask.${layer}`]!.data.entries()) {
    if (hidden !== 0) continue;
    const position = Math.floor(keys.data[at]! / 1000);
    for (let i = 0; i < SIZE; i++) {
      const head = Math.floor(i / WIDTH);
      expect(keys.data[i * rows + at]).toBe(position * 1000 + layer * 100 + i);
      expect(values.data[(head * rows + at) * WIDTH + (i % WIDTH)]).toBe(-(position * 1000 + layer * 100 + i));
    }
    positions.push(position);
  }
  return positions.sort((a, b) => a - b);
}

test("a query sees the positions of its window, itself excepted, however the buffers grow and turn", () => {
  fc.assert(
    fc.property(fc.option(fc.integer({ min: 1, max: 600 })), fc.integer({ min: 0, max: 1000 }), (window, count) => {
      const cache = new KeyValueCache(shape(window));
      for (let position = 0; position < count; position++) append(cache, position);
      expect(cache.positions).toBe(count);
      const oldest = window === null ? 0 : Math.max(0, count - window + 1);
      const expected = Array.from({ length: count - oldest }, (_, i) => oldest + i);
      for (const layer of [1, 4]) expect(visible(cache, layer)).toEqual(expected);
    }),
    { numRuns: 40, seed: 3 },
  );
});

test("a copy goes its own way", () => {
  const cache = new KeyValueCache(shape(null));
  for (let position = 0; position < 70; position++) append(cache, position);
  const copy = cache.clone();
  for (let position = 70; position < 140; position++) append(copy, position);
  expect(visible(cache, 1)).toHaveLength(70);
  expect(visible(copy, 1)).toHaveLength(140);
});
