import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  allFinite,
  base64ToBytes,
  bytesToBase64,
  concatPcm,
  floatToInt16,
  floatToPcm16,
  floatToPcm16By32767,
  int16ToFloat,
  pcm16ToFloat,
} from "../../src/audio/pcm.ts";
import { sameBits } from "../support/signals.ts";

const everyInt16 = Int16Array.from({ length: 65536 }, (_, i) => i - 32768);
const int16Of = (bytes: Uint8Array): number[] =>
  Array.from({ length: bytes.length / 2 }, (_, i) =>
    new DataView(bytes.buffer, bytes.byteOffset).getInt16(2 * i, true),
  );

describe("pcm16ToFloat", () => {
  it("divides little-endian samples by 32768", () => {
    const bytes = new Uint8Array([0x00, 0x00, 0x00, 0x40, 0xff, 0x7f, 0x00, 0x80, 0xff, 0xff]);
    expect([...pcm16ToFloat(bytes)!]).toEqual([0, 0.5, 32767 / 32768, -1, -1 / 32768]);
  });
  it("reads from any offset", () => {
    const bytes = new Uint8Array([9, 0x00, 0x40, 0x00, 0xc0]).subarray(1);
    expect([...pcm16ToFloat(bytes)!]).toEqual([0.5, -0.5]);
  });
  it("refuses an odd byte count, as a value", () => {
    expect(pcm16ToFloat(new Uint8Array(3))).toBeNull();
    expect(pcm16ToFloat(new Uint8Array(0))).toEqual(new Float32Array(0));
  });
});

describe("floatToPcm16", () => {
  it("undoes pcm16ToFloat for all 65536 samples", () => {
    const bytes = new Uint8Array(everyInt16.slice().buffer);
    expect(sameBits(floatToPcm16(pcm16ToFloat(bytes)!), bytes)).toBe(true);
    expect(sameBits(floatToInt16(int16ToFloat(everyInt16)), everyInt16)).toBe(true);
  });
  it("clips, rounds to the nearest with ties to even, and makes NaN silence", () => {
    const inputs = [1, 2, -1, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
    expect(int16Of(floatToPcm16(Float32Array.from(inputs)))).toEqual([32767, 32767, -32768, -32768, 32767, -32768, 0]);
    const halves = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49, -0.51].map((x) => x / 32768);
    expect(int16Of(floatToPcm16(Float32Array.from(halves)))).toEqual([0, 2, 2, 0, -2, 0, -1]);
  });
});

describe("floatToPcm16By32767", () => {
  it("is symmetric at full scale", () => {
    expect(int16Of(floatToPcm16By32767(Float32Array.of(1, -1, 1.5, -1.5, 0.5, Number.NaN)))).toEqual([
      32767, -32767, 32767, -32767, 16384, 0,
    ]);
  });
  it("differs from the 32768 scale by at most one step", () => {
    fc.assert(
      fc.property(fc.float32Array({ min: -1, max: 1, noNaN: true, maxLength: 50 }), (pcm) => {
        const a = int16Of(floatToPcm16By32767(pcm));
        const b = int16Of(floatToPcm16(pcm));
        for (let i = 0; i < pcm.length; i++) {
          expect(Math.abs(a[i]! - b[i]!)).toBeLessThanOrEqual(1);
          expect(Math.abs(a[i]! - pcm[i]! * 32767)).toBeLessThanOrEqual(0.502);
        }
      }),
      { seed: 1 },
    );
  });
});

describe("base64", () => {
  it("comes back as it was", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(Uint8Array.from(base64ToBytes(bytesToBase64(bytes))!)).toEqual(bytes);
      }),
      { seed: 2 },
    );
  });
  it("encodes a view, not the memory behind it", () => {
    expect(bytesToBase64(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).toBe("AgM=");
  });
  it.each(["A", "AA", "AAA", "AA=A", "AA-_", "AAAA\n", " AAAA", "A===", "====", "ÄAAA"])("refuses %j", (text) => {
    expect(base64ToBytes(text)).toBeNull();
  });
});

it("finds samples that are not numbers", () => {
  expect(allFinite(Float32Array.of(0, 1, -5))).toBe(true);
  expect(allFinite(Float32Array.of(0, Number.NaN))).toBe(false);
  expect(allFinite(Float32Array.of(Number.NEGATIVE_INFINITY, 0))).toBe(false);
  expect(allFinite(new Float32Array(0))).toBe(true);
});

it("joins chunks", () => {
  expect(concatPcm([])).toEqual(new Float32Array(0));
  expect(concatPcm([Float32Array.of(1), new Float32Array(0), Float32Array.of(2, 3)])).toEqual(Float32Array.of(1, 2, 3));
});
