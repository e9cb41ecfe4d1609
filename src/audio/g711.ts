/**
 * ITU-T G.711: one byte a sample, at 8 kHz. mu-law codes are 14-bit values and A-law codes 13-bit ones, here aligned to
 * 16 bits as in the ITU software tool library (G.191), whose results these are, bit for bit.
 */
import { floatToInt16 } from "./pcm.ts";

/** Codes as 16-bit samples, indexed by code. */
const MULAW_TO_INT16: Int16Array = Int16Array.from({ length: 256 }, (_, code) => expandMulaw(code));
const ALAW_TO_INT16: Int16Array = Int16Array.from({ length: 256 }, (_, code) => expandAlaw(code));

/** Codes of all 16-bit samples, indexed by sample + 32768. */
const INT16_TO_MULAW: Uint8Array = Uint8Array.from({ length: 65536 }, (_, i) => compressMulaw(i - 32768));
const INT16_TO_ALAW: Uint8Array = Uint8Array.from({ length: 65536 }, (_, i) => compressAlaw(i - 32768));

export function mulawToFloat(codes: Uint8Array): Float32Array<ArrayBuffer> {
  return decode(codes, MULAW_TO_INT16);
}

export function alawToFloat(codes: Uint8Array): Float32Array<ArrayBuffer> {
  return decode(codes, ALAW_TO_INT16);
}

/** Rounded to 16 bits first; what is beyond full scale is clipped. */
export function floatToMulaw(pcm: Float32Array): Uint8Array<ArrayBuffer> {
  return encode(pcm, INT16_TO_MULAW);
}

/** Rounded to 16 bits first; what is beyond full scale is clipped. */
export function floatToAlaw(pcm: Float32Array): Uint8Array<ArrayBuffer> {
  return encode(pcm, INT16_TO_ALAW);
}

function decode(codes: Uint8Array, table: Int16Array): Float32Array<ArrayBuffer> {
  const out = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) out[i] = table[codes[i]!]! / 32768;
  return out;
}

function encode(pcm: Float32Array, table: Uint8Array): Uint8Array<ArrayBuffer> {
  const samples = floatToInt16(pcm);
  const out = new Uint8Array(samples.length);
  for (let i = 0; i < samples.length; i++) out[i] = table[samples[i]! + 32768]!;
  return out;
}

/** A code is inverted sign, segment (3 bits), step (4 bits); the magnitudes are offset by 33. */
function expandMulaw(code: number): number {
  const bits = ~code & 0xff;
  const segment = (bits >> 4) & 7;
  const magnitude = ((((bits & 15) << 1) + 33) << segment) - 33;
  return ((bits & 0x80) !== 0 ? -magnitude : magnitude) * 4;
}

function compressMulaw(sample: number): number {
  const magnitude = Math.min(((sample < 0 ? ~sample : sample) >> 2) + 33, 0x1fff);
  const segment = 31 - Math.clz32(magnitude) - 5;
  const bits = (segment << 4) | ((magnitude >> (segment + 1)) & 15);
  return ~(sample < 0 ? bits | 0x80 : bits) & 0xff;
}

/** A code is sign, segment, step with every other bit inverted; the sign bit is 1 for positive values. */
function expandAlaw(code: number): number {
  const bits = code ^ 0x55;
  const segment = (bits >> 4) & 7;
  const step = ((bits & 15) << 4) + 8;
  const magnitude = segment === 0 ? step : (step + 256) << (segment - 1);
  return (bits & 0x80) !== 0 ? magnitude : -magnitude;
}

function compressAlaw(sample: number): number {
  const magnitude = (sample < 0 ? ~sample : sample) >> 4;
  const segment = Math.max(0, 31 - Math.clz32(magnitude) - 3);
  const step = (segment === 0 ? magnitude : magnitude >> (segment - 1)) & 15;
  const bits = (segment << 4) | step;
  return (sample < 0 ? bits : bits | 0x80) ^ 0x55;
}
