/** PCM16 as the events carry it: base64, little-endian. */

export function toBase64(samples: Int16Array<ArrayBuffer>): string {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  return btoa(String.fromCharCode(...bytes));
}

export function fromBase64(text: string): Float32Array<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length >> 1 }, (_, i) => view.getInt16(2 * i, true) / 32_768);
}
