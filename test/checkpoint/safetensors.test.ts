import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ELEMENT_BYTES, SafetensorsFile, type TensorDtype } from "../../src/checkpoint/safetensors.ts";
import { CheckpointError } from "../../src/errors.ts";
import { encodeSafetensors, fileOf, temporaryDirectory, type Written } from "../support/safetensors.ts";

/** A directory for a whole property: making one per run would make thousands. */
function opener(): (bytes: Uint8Array) => SafetensorsFile {
  const path = join(temporaryDirectory(), "x.safetensors");
  return (bytes) => {
    writeFileSync(path, bytes);
    return new SafetensorsFile(path);
  };
}

function refusal(open: () => unknown): CheckpointError {
  try {
    open();
  } catch (error) {
    if (error instanceof CheckpointError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

const anyTensor: fc.Arbitrary<Written> = fc
  .record({
    dtype: fc.constantFrom(...(Object.keys(ELEMENT_BYTES) as TensorDtype[])),
    shape: fc.array(fc.nat(4), { maxLength: 3 }),
    fill: fc.nat(255),
  })
  .map(({ dtype, shape, fill }) => {
    const length = shape.reduce((product, size) => product * size, ELEMENT_BYTES[dtype]);
    return { dtype, shape, bytes: Uint8Array.from({ length }, (_, i) => (fill + i) & 255) };
  });

const anyName = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((name) => name !== "__metadata__" && name !== "__proto__");

describe("SafetensorsFile", () => {
  it("gives back every tensor of every well-formed file, whole or in part", () => {
    const open = opener();
    const files = fc.dictionary(anyName, anyTensor, { maxKeys: 6 });
    fc.assert(
      fc.property(files, fc.nat(), (tensors, cut) => {
        const file = open(encodeSafetensors(tensors));
        expect([...file.tensors.keys()].sort()).toEqual(Object.keys(tensors).sort());
        for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
          const entry = file.tensors.get(name)!;
          expect([entry.dtype, entry.shape]).toEqual([dtype, shape]);
          expect(file.read(entry)).toEqual(new Uint8Array(bytes));
          const start = cut % (bytes.length + 1);
          expect(file.read(entry, start)).toEqual(new Uint8Array(bytes.subarray(start)));
        }
        file.close();
      }),
      { seed: 6, numRuns: 60 },
    );
  });

  it("refuses or reads right a file with any byte changed, and never fails otherwise", () => {
    const open = opener();
    const whole = encodeSafetensors({
      a: { dtype: "F32", shape: [2, 2], bytes: new Uint8Array(16) },
      b: { dtype: "BF16", shape: [3], bytes: new Uint8Array(6) },
    });
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (place, value) => {
        const changed = Uint8Array.from(whole);
        changed[place] = value;
        try {
          const file = open(changed);
          const covered = [...file.tensors.values()].reduce((sum, entry) => sum + entry.byteLength, 0);
          expect(covered).toBe(22);
          for (const entry of file.tensors.values()) expect(file.read(entry).length).toBe(entry.byteLength);
          file.close();
        } catch (error) {
          if (!(error instanceof CheckpointError)) throw error;
          expect(error.code).toBe("checkpoint_corrupt");
        }
      }),
      { seed: 6, numRuns: 300 },
    );
  });

  it("refuses a file cut anywhere", () => {
    const open = opener();
    const whole = encodeSafetensors({ a: { dtype: "U8", shape: [9], bytes: new Uint8Array(9) } });
    for (let length = 0; length < whole.length; length++) {
      expect(refusal(() => open(whole.subarray(0, length))).code).toBe("checkpoint_corrupt");
    }
  });

  const entry = (fields: Record<string, unknown>): string =>
    JSON.stringify({ w: { dtype: "F32", shape: [1], data_offsets: [0, 4], ...fields } });
  const pair = (first: [number, number], second: [number, number]): string =>
    JSON.stringify({
      a: { dtype: "U8", shape: [first[1] - first[0]], data_offsets: first },
      b: { dtype: "U8", shape: [second[1] - second[0]], data_offsets: second },
    });

  it.each([
    ["a header that is not JSON", "{", "not JSON"],
    ["a header that is a list", "[]", "not a JSON object"],
    ["metadata that is not text", '{"__metadata__":{"a":1}}', "__metadata__"],
    ["a tensor that is a number", '{"w":3}', "tensor w"],
    ["an unknown dtype", entry({ dtype: "F4" }), 'unknown dtype "F4"'],
    ["a dtype from the prototype", entry({ dtype: "toString" }), "unknown dtype"],
    ["a negative size", entry({ shape: [-1] }), "shape"],
    ["a size that is not whole", entry({ shape: [0.5] }), "shape"],
    ["offsets that are three", entry({ data_offsets: [0, 4, 8] }), "data_offsets"],
    ["offsets in the wrong order", entry({ data_offsets: [4, 0] }), "4..0"],
    ["offsets beyond the end", entry({ shape: [2], data_offsets: [0, 8] }), "0..8"],
    ["a size that the shape does not have", entry({ shape: [3] }), "takes 12 bytes, and has 4"],
    ["overlapping tensors", pair([0, 3], [2, 4]), "b overlaps a"],
    ["a hole between tensors", pair([0, 1], [2, 4]), "1 bytes between a and b"],
    ["bytes after the last tensor", pair([0, 1], [1, 3]), "1 bytes after"],
  ])("refuses %s", (_, header, message) => {
    const open = opener();
    const error = refusal(() => open(fileOf(header, new Uint8Array(4))));
    expect(error.code).toBe("checkpoint_corrupt");
    expect(error.message).toContain(message);
  });

  it("refuses a stated header length beyond the file or the format's limit", () => {
    const open = opener();
    for (const stated of [1000n, 1n << 40n, (1n << 64n) - 1n]) {
      const bytes = Buffer.from(fileOf("{}", new Uint8Array(0)));
      bytes.writeBigUInt64LE(stated);
      expect(refusal(() => open(bytes)).message).toContain("header of");
    }
  });

  it("says when the file is not there, and refuses to read past a tensor", () => {
    expect(refusal(() => new SafetensorsFile("/no/such/file")).code).toBe("checkpoint_unreadable");
    const file = opener()(encodeSafetensors({ a: { dtype: "U8", shape: [2], bytes: new Uint8Array(2) } }));
    expect(() => file.read(file.tensors.get("a")!, 1, 2)).toThrow(RangeError);
    file.close();
  });
});
