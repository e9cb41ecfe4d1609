/**
 * PCM16 on the wire and in files against f32 in [-1, 1) inside. In: divided by 32768, exact. Out: clipped, scaled and
 * rounded to the nearest integer, ties to even; NaN becomes 0. Two scales are in use, so the names say which:
 * `32768` undoes the way in and is what files and OpenAI audio get; `32767` is the VoiceChat wire's.
 */

/** Adding and taking away 1.5 * 2^52 rounds a double of small magnitude to an integer, ties to even. */
const ROUNDER = 6755399441055744;

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Little-endian PCM16 as f32. Null for an odd byte count: half a sample is missing. */
export function pcm16ToFloat(bytes: Uint8Array): Float32Array<ArrayBuffer> | null {
  if (bytes.length % 2 !== 0) return null;
  const samples = bytes.length / 2;
  const out = new Float32Array(samples);
  if (LITTLE_ENDIAN && bytes.byteOffset % 2 === 0) {
    const view = new Int16Array(bytes.buffer, bytes.byteOffset, samples);
    for (let i = 0; i < samples; i++) out[i] = view[i]! / 32768;
    return out;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < samples; i++) out[i] = view.getInt16(2 * i, true) / 32768;
  return out;
}

/** f32 as little-endian PCM16: round(32768 x), clamped to [-32768, 32767]. Undoes `pcm16ToFloat` exactly. */
export function floatToPcm16(pcm: Float32Array): Uint8Array<ArrayBuffer> {
  return littleEndianBytes(floatToInt16(pcm));
}

/** f32 as little-endian PCM16: round(32767 clip(x, -1, 1)), as the VoiceChat wire has it. */
export function floatToPcm16By32767(pcm: Float32Array): Uint8Array<ArrayBuffer> {
  const out = new Int16Array(pcm.length);
  for (let i = 0; i < pcm.length; i++) {
    const scaled = Math.fround(Math.min(1, Math.max(-1, pcm[i]!)) * 32767);
    out[i] = scaled + ROUNDER - ROUNDER;
  }
  return littleEndianBytes(out);
}

/** 16-bit samples in the machine's byte order as f32, divided by 32768. */
export function int16ToFloat(samples: Int16Array): Float32Array<ArrayBuffer> {
  const out = new Float32Array(samples.length);
  for (let i = 0; i < samples.length; i++) out[i] = samples[i]! / 32768;
  return out;
}

/** f32 as 16-bit samples in the machine's byte order: round(32768 x), clamped to [-32768, 32767]. */
export function floatToInt16(pcm: Float32Array): Int16Array<ArrayBuffer> {
  const out = new Int16Array(pcm.length);
  for (let i = 0; i < pcm.length; i++) {
    out[i] = Math.min(32767, Math.max(-32768, pcm[i]! * 32768)) + ROUNDER - ROUNDER;
  }
  return out;
}

/** Null unless `text` is base64 with its padding and nothing else: no line breaks, no other alphabet. */
export function base64ToBytes(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  return Buffer.from(text, "base64");
}

export function bytesToBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** True if every sample is a number: neither NaN nor infinite. */
export function allFinite(pcm: Float32Array): boolean {
  for (let i = 0; i < pcm.length; i++) if (!Number.isFinite(pcm[i]!)) return false;
  return true;
}

/** The chunks one after another. */
export function concatPcm(chunks: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const out = new Float32Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    out.set(chunk, offset);
    offset += chunk.length;
  }
  return out;
}

/** The samples' own bytes where the machine is little-endian, else swapped in place. */
function littleEndianBytes(samples: Int16Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(samples.buffer);
  if (!LITTLE_ENDIAN) Buffer.from(samples.buffer).swap16();
  return bytes;
}
