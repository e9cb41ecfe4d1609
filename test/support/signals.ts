/** Signals for tests: the same at every run. */

/** `amplitude` * sin(2 pi hz t), from t = 0. */
export function tone(hz: number, rateHz: number, samples: number, amplitude = 0.5): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: samples }, (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / rateHz));
}

/** Uniform in [-amplitude, amplitude), from a linear congruential generator. */
export function noise(samples: number, amplitude = 0.5, seed = 1): Float32Array<ArrayBuffer> {
  let state = seed >>> 0;
  return Float32Array.from({ length: samples }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return amplitude * (state / 2147483648 - 1);
  });
}

export function rms(pcm: Float32Array): number {
  return Math.sqrt(pcm.reduce((sum, x) => sum + x * x, 0) / Math.max(1, pcm.length));
}

export function decibels(ratio: number): number {
  return 20 * Math.log10(ratio);
}

/** Equal to the last bit; much faster than comparing elements one by one. */
export function sameBits(
  a: Float32Array | Int16Array | Uint8Array,
  b: Float32Array | Int16Array | Uint8Array,
): boolean {
  const bytes = (array: Float32Array | Int16Array | Uint8Array): Buffer =>
    Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  return bytes(a).equals(bytes(b));
}
