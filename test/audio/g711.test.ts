import { describe, expect, it } from "vitest";
import { alawToFloat, floatToAlaw, floatToMulaw, mulawToFloat } from "../../src/audio/g711.ts";
import { floatToInt16, int16ToFloat } from "../../src/audio/pcm.ts";

const everyCode = Uint8Array.from({ length: 256 }, (_, code) => code);
const everySample = Int16Array.from({ length: 65536 }, (_, i) => i - 32768);

/**
 * The decision values of G.711, tables 1 and 2: a positive segment's first output value and its distance to the next,
 * aligned to 16 bits.
 */
const MULAW_SEGMENTS = [
  [0, 8],
  [132, 16],
  [396, 32],
  [924, 64],
  [1980, 128],
  [4092, 256],
  [8316, 512],
  [16764, 1024],
] as const;
const ALAW_SEGMENTS = [
  [8, 16],
  [264, 16],
  [528, 32],
  [1056, 64],
  [2112, 128],
  [4224, 256],
  [8448, 512],
  [16896, 1024],
] as const;

describe("mu-law", () => {
  it("decodes all 256 codes as G.711 table 2 says", () => {
    const decoded = floatToInt16(mulawToFloat(everyCode));
    for (const [segment, [first, step]] of MULAW_SEGMENTS.entries()) {
      for (let i = 0; i < 16; i++) {
        const code = 0xff - (segment * 16 + i);
        expect(decoded[code]).toBe(first + i * step);
        expect(decoded[code & 0x7f]).toBe(0 - (first + i * step));
      }
    }
  });
  it("encodes each decoded code to itself, but for the two zeros", () => {
    const again = floatToMulaw(mulawToFloat(everyCode));
    expect([...again].map((code, i) => (i === 0x7f ? 0x7f : code))).toEqual([...everyCode]);
    expect(again[0x7f]).toBe(0xff);
  });
  it("encodes every sample to a nearest value, within half a step of its segment", () => {
    const decoded = floatToInt16(mulawToFloat(floatToMulaw(int16ToFloat(everySample))));
    const farOff = everySample.filter((sample, i) => {
      const clipped = Math.max(-32635, Math.min(32635, sample));
      const segment = Math.max(0, Math.floor(Math.log2(Math.abs(clipped) + 132)) - 7);
      return Math.abs(decoded[i]! - clipped) > 4 * 2 ** segment + 4;
    });
    expect([...farOff]).toEqual([]);
  });
});

describe("A-law", () => {
  it("decodes all 256 codes as G.711 table 1 says", () => {
    const decoded = floatToInt16(alawToFloat(everyCode));
    for (const [segment, [first, step]] of ALAW_SEGMENTS.entries()) {
      for (let i = 0; i < 16; i++) {
        const code = (0x80 | (segment * 16 + i)) ^ 0x55;
        expect(decoded[code]).toBe(first + i * step);
        expect(decoded[code ^ 0x80]).toBe(-(first + i * step));
      }
    }
  });
  it("encodes each decoded code to itself", () => {
    expect(floatToAlaw(alawToFloat(everyCode))).toEqual(everyCode);
  });
  it("encodes every sample to a nearest value, within half a step of its segment", () => {
    const decoded = floatToInt16(alawToFloat(floatToAlaw(int16ToFloat(everySample))));
    const farOff = everySample.filter((sample, i) => {
      const segment = Math.max(1, Math.floor(Math.log2(Math.max(1, Math.abs(sample)))) - 7);
      return Math.abs(decoded[i]! - sample) > 8 * 2 ** (segment - 1);
    });
    expect([...farOff]).toEqual([]);
  });
});

it("clips, and takes empty input", () => {
  expect(floatToMulaw(Float32Array.of(3, -3))).toEqual(Uint8Array.of(0x80, 0x00));
  expect(floatToAlaw(Float32Array.of(3, -3))).toEqual(Uint8Array.of(0xaa, 0x2a));
  expect(mulawToFloat(new Uint8Array(0))).toEqual(new Float32Array(0));
  expect(floatToAlaw(new Float32Array(0))).toEqual(new Uint8Array(0));
});
