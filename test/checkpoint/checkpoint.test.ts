import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { dequantizeRow, isQuantized, quantizedMatrix } from "../../src/checkpoint/mlx-quant.ts";
import { bf16ToFloat, f16ToFloat } from "../../src/checkpoint/numbers.ts";
import { Weights } from "../../src/checkpoint/weights.ts";
import { goldenFloats, goldenIds, largestDifference, readGolden } from "../support/golden.ts";
import { encodeSafetensors, f32, temporaryDirectory, writeCheckpointOf } from "../support/safetensors.ts";

const FIXTURES = "test/fixtures/voicechat";

/** Two shards, and an index that places `a` in the first and `b` in the second unless told otherwise. */
function shards(weightMap: unknown = { a: "one.safetensors", b: "two.safetensors" }): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "one.safetensors"), encodeSafetensors({ a: f32([1], [1]) }));
  writeFileSync(join(directory, "two.safetensors"), encodeSafetensors({ b: f32([2], [2, 3]) }));
  writeFileSync(join(directory, "model.safetensors.index.json"), JSON.stringify({ weight_map: weightMap }));
  return directory;
}

describe("Checkpoint", () => {
  it("joins shards by their index", () => {
    const checkpoint = Checkpoint.open(shards());
    expect([...Weights.of(checkpoint).floats("b", [2])]).toEqual([2, 3]);
    checkpoint.close();
  });

  it("follows links, as a hub cache keeps its files", () => {
    const directory = temporaryDirectory();
    const blobs = join(directory, "blobs");
    const snapshot = join(directory, "snapshots");
    mkdirSync(blobs);
    mkdirSync(snapshot);
    writeFileSync(join(blobs, "0123abcd"), encodeSafetensors({ a: f32([1], [4]) }));
    symlinkSync(join("..", "blobs", "0123abcd"), join(snapshot, "model.safetensors"));
    const checkpoint = Checkpoint.open(snapshot);
    expect(Weights.of(checkpoint).tensor("a", [1]).file).toContain(join("blobs", "0123abcd"));
    checkpoint.close();
  });

  it.each([
    ["a .nemo archive", () => "/models/voicechat.nemo", "checkpoint_unsupported", ".nemo"],
    ["a directory that is not there", () => "/no/such/directory", "checkpoint_unreadable", "no such"],
    ["a directory without weights", () => temporaryDirectory(), "checkpoint_unreadable", "model.safetensors"],
    [
      "a missing shard",
      () => shards({ a: "one.safetensors", b: "three.safetensors" }),
      "checkpoint_unreadable",
      "three",
    ],
    ["a shard outside", () => shards({ a: "../one.safetensors" }), "checkpoint_corrupt", "no file of its directory"],
    [
      "a tensor in the wrong shard",
      () => shards({ a: "two.safetensors", b: "one.safetensors" }),
      "checkpoint_corrupt",
      "does not have it",
    ],
    ["an index without a map", () => shards(null), "checkpoint_corrupt", "weight_map"],
    ["an index with a list", () => shards(["one.safetensors"]), "checkpoint_corrupt", "weight_map"],
    // Each folder in the place of a file ended in the system's own EISDIR, as a fault of antiphon.
    ["a shard without a name", () => shards({ a: "" }), "checkpoint_corrupt", 'the shard ""'],
    ["the folder above as a shard", () => shards({ a: ".." }), "checkpoint_corrupt", 'the shard ".."'],
    [
      "a folder as a shard",
      () => {
        const directory = shards({ a: "one.safetensors", b: "folder" });
        mkdirSync(join(directory, "folder"));
        return directory;
      },
      "checkpoint_unreadable",
      "not a file",
    ],
    [
      "a folder as the index",
      () => {
        const directory = temporaryDirectory();
        mkdirSync(join(directory, "model.safetensors.index.json"));
        return directory;
      },
      "checkpoint_unreadable",
      "EISDIR",
    ],
    [
      "a pointer of Git LFS",
      () => {
        const directory = shards();
        writeFileSync(
          join(directory, "two.safetensors"),
          "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
        );
        return directory;
      },
      "checkpoint_unreadable",
      "git lfs pull",
    ],
    [
      "a folder with a .nemo archive in it",
      () => {
        const directory = temporaryDirectory();
        writeFileSync(join(directory, "voicechat.nemo"), "");
        return directory;
      },
      "checkpoint_unsupported",
      "voicechat.nemo",
    ],
    [
      "a file instead of a directory",
      () => join(shards(), "one.safetensors"),
      "checkpoint_unreadable",
      "name the checkpoint's directory",
    ],
  ])("refuses %s", (_, directory, code, message) => {
    expect(() => Checkpoint.open(directory())).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  it("refuses a shard with a tensor that the index does not place there", () => {
    const directory = shards({ a: "one.safetensors" });
    writeFileSync(join(directory, "one.safetensors"), encodeSafetensors({ a: f32([1], [1]), stray: f32([1], [1]) }));
    expect(() => Checkpoint.open(directory)).toThrow(/stray/);
  });
});

describe("Weights", () => {
  it("lists all missing, misshapen and unused tensors at once", () => {
    const checkpoint = Checkpoint.open(
      writeCheckpointOf({
        "m.a": f32([2], [1, 2]),
        "m.b": f32([3], [1, 2, 3]),
        "m.x": f32([], [1]),
        "old.y": f32([], [1]),
      }),
    );
    const weights = Weights.of(checkpoint);
    const module = weights.at("m");
    expect([...module.floats("a", [null])]).toEqual([1, 2]);
    module.tensor("b", [4]);
    module.tensor("c", [5, null]);
    weights.ignore("old.");
    expect(() => weights.finish()).toThrow(
      expect.objectContaining({
        code: "checkpoint_tensor",
        message: expect.stringMatching(
          /m\.b: expected F32 or BF16 or F16 \[4\], found F32 \[3\]\n {2}m\.c: missing, expected F32 \[5,\?\]\n {2}unused: m\.x$/,
        ),
      }),
    );
    checkpoint.close();
  });

  it("names a few of many, and what is unused only when all has been asked for", () => {
    const checkpoint = Checkpoint.open(writeCheckpointOf({ x: f32([], [1]) }));
    const weights = Weights.of(checkpoint);
    expect(() => weights.finishEarly()).not.toThrow();
    for (let i = 0; i < 30; i++) weights.tensor(`t${i}`, [1]);
    expect(() => weights.finishEarly()).toThrow(/t19: missing, expected F32 \[1\]\n {2}and 10 more$/);
    expect(() => weights.finish()).toThrow(/and 10 more\n {2}unused: x$/);
    checkpoint.close();
  });

  it("stands in for what is missing, so that all faults come out together", () => {
    const checkpoint = Checkpoint.open(writeCheckpointOf({ a: f32([1], [1]) }));
    const weights = Weights.of(checkpoint);
    expect([...weights.floats("gone", [2, 2])]).toEqual([0, 0, 0, 0]);
    expect([...weights.integers("ids", [2])]).toEqual([0, 0]);
    expect(() => weights.finish()).toThrow(/gone.*\n.*ids.*\n.*unused: a/);
    checkpoint.close();
  });

  it("reads integers of every width as int32", () => {
    const checkpoint = Checkpoint.open(
      writeCheckpointOf({
        i64: { dtype: "I64", shape: [2], bytes: new Uint8Array(BigInt64Array.of(-1n, 7n).buffer) },
        i32: { dtype: "I32", shape: [1], bytes: new Uint8Array(Int32Array.of(-9).buffer) },
        u8: { dtype: "U8", shape: [1], bytes: Uint8Array.of(200) },
        i8: { dtype: "I8", shape: [1], bytes: Uint8Array.of(200) },
      }),
    );
    const weights = Weights.of(checkpoint);
    const read = (name: string): number[] => [...weights.integers(name, [null])];
    expect(["i64", "i32", "u8", "i8"].map(read)).toEqual([[-1, 7], [-9], [200], [-56]]);
    weights.finish();
    checkpoint.close();
  });
});

describe("numbers", () => {
  it("widens every half-precision number exactly", () => {
    const pairs = [
      [0x3c00, 1],
      [0xc000, -2],
      [0x7bff, 65504],
      [0x0001, 2 ** -24],
      [0x03ff, 1023 * 2 ** -24],
      [0x0400, 2 ** -14],
      [0x7c00, Number.POSITIVE_INFINITY],
      [0x8000, -0],
    ] as const;
    const found = f16ToFloat(Uint16Array.from(pairs, ([bits]) => bits));
    for (const [i, [, value]] of pairs.entries()) expect(Object.is(found[i], value)).toBe(true);
    expect(f16ToFloat(Uint16Array.of(0x7e00))[0]).toBeNaN();
  });
  it("takes bf16 as the upper half of a float32", () => {
    expect([...bf16ToFloat(Uint16Array.of(0x3f80, 0xc040, 0x0000))]).toEqual([1, -3, 0]);
  });
});

describe.each([
  ["tiny-4bit", 4],
  ["tiny-8bit", 8],
] as const)("MLX quantization of %s", (name, bits) => {
  it("unpacks rows as the reference does", () => {
    const golden = readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`);
    const checkpoint = Checkpoint.open(`${FIXTURES}/${name}/checkpoint`);
    const module = Weights.of(checkpoint).at("stt_model.embed_tokens");
    expect(isQuantized(module)).toBe(true);
    const matrix = quantizedMatrix(module, 329, 128);
    expect(matrix.bits).toBe(bits);
    const rows = goldenIds(golden, "llm_ids").flatMap((id) => [...dequantizeRow(module, matrix, id)]);
    expect(largestDifference(rows, goldenFloats(golden, "llm_embeddings"))).toBeLessThan(1e-7);
    checkpoint.close();
  });
});
