/** Cuts a signal, text or byte string into arbitrary chunks, for streaming == offline properties. */
import fc from "fast-check";

export interface Sliceable<T> {
  readonly length: number;
  slice(start: number, end: number): T;
}

/** `whole` cut at the given sizes, taken round and round; a size of 0 makes an empty chunk (once round at least one is positive). */
export function cut<T extends Sliceable<T>>(whole: T, sizes: readonly number[]): T[] {
  const chunks: T[] = [];
  const usable = sizes.some((size) => size > 0) ? sizes : [1];
  for (let at = 0, i = 0; at < whole.length; i++) {
    const size = usable[i % usable.length]!;
    chunks.push(whole.slice(at, at + size));
    at += size;
  }
  return chunks;
}

/** Sizes for `cut`: often tiny, sometimes large. */
export const chunkSizes = (sizeMax: number): fc.Arbitrary<number[]> =>
  fc.array(fc.oneof(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 0, max: sizeMax })), {
    minLength: 1,
    maxLength: 8,
  });
