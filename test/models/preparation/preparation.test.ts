import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  moonshineTokens,
  piecesOfBin,
  piecesOfJson,
  prepareMoonshine,
} from "../../../src/models/preparation/moonshine.ts";
import { metadataProps, preparePiper } from "../../../src/models/preparation/piper.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "antiphon-preparation-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** `tokenizer.bin` as the Moonshine packages write it. */
function binOf(pieces: readonly Uint8Array[]): Buffer {
  const parts = pieces.map((piece) => {
    const { length } = piece;
    return Buffer.concat([Buffer.from(length < 128 ? [length] : [(length % 128) + 128, length >> 7]), piece]);
  });
  return Buffer.concat(parts);
}

describe("moonshine", () => {
  test("any pieces are read back as they were written", () => {
    const piece = fc.uint8Array({ maxLength: 300 });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 50 }), (pieces) => {
        expect(piecesOfBin(binOf(pieces)).map((read) => [...read])).toEqual(pieces.map((p) => [...p]));
      }),
      { seed: 7, numRuns: 50 },
    );
  });

  test("both vocabularies give the same lines, bytes included", () => {
    const vocab = { "<unk>": 0, "<s>": 1, "<0x0A>": 2, "▁the": 3, é: 4 };
    const json = JSON.stringify({ model: { vocab }, added_tokens: [{ id: 5, content: "<<ST_0>>" }] });
    const bin = binOf(["<unk>", "<s>", "\n", "▁the", "é", "<<ST_0>>"].map((text) => Buffer.from(text)));
    expect(moonshineTokens(piecesOfJson(json))).toBe(moonshineTokens(piecesOfBin(bin)));
    expect(moonshineTokens(piecesOfBin(bin)).split("\n")[3]).toBe("4paBdGhl 3");
  });

  test("only tokens.txt stays", async () => {
    writeFileSync(join(directory, "tokenizer.bin"), binOf([Buffer.from("a"), Buffer.from("b")]));
    await prepareMoonshine(directory);
    expect(readFileSync(join(directory, "tokens.txt"), "utf8")).toBe("YQ== 0\nYg== 1\n");
    expect(() => readFileSync(join(directory, "tokenizer.bin"))).toThrow(/ENOENT/);
  });

  test("a vocabulary that is cut short or has a hole is refused", () => {
    expect(() => piecesOfBin(Buffer.from([3, 65]))).toThrow(/ends inside piece 0/);
    expect(() => piecesOfJson('{"model":{"vocab":{"a":0,"c":2}}}')).toThrow(/no piece 1/);
  });
});

/** Fields of one protobuf message that has only length-delimited fields. */
function fieldsOf(bytes: Buffer): [number, Buffer][] {
  const fields: [number, Buffer][] = [];
  for (let at = 0; at < bytes.length; ) {
    const field = bytes[at++]! >> 3;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    fields.push([field, bytes.subarray(at, at + length)]);
    at += length;
  }
  return fields;
}

describe("piper", () => {
  test("metadata are entries of field 14 with key 1 and value 2", () => {
    const entries = { short: "x", empty: "", long: "é".repeat(200) };
    const read = fieldsOf(Buffer.from(metadataProps(entries))).map(([field, entry]) => {
      const [key, value] = fieldsOf(entry);
      return [field, key![0], String(key![1]), value![0], String(value![1])];
    });
    expect(read).toEqual(Object.entries(entries).map(([key, value]) => [14, 1, key, 2, value]));
  });

  test("the model keeps its bytes and gains what sherpa-onnx reads", async () => {
    const config = {
      audio: { sample_rate: 22_050 },
      espeak: { voice: "en-us" },
      phoneme_id_map: { _: [0], " ": [3], "1": [9], ˈ: [120] },
    };
    writeFileSync(join(directory, "model.onnx"), "MODEL");
    writeFileSync(join(directory, "model.onnx.json"), JSON.stringify(config));
    await preparePiper(directory);
    const model = readFileSync(join(directory, "model.onnx"));
    expect(model.subarray(0, 5).toString()).toBe("MODEL");
    const metadata = fieldsOf(model.subarray(5)).map(([, entry]) => fieldsOf(entry).map(([, text]) => String(text)));
    expect(Object.fromEntries(metadata)).toEqual({
      model_type: "vits",
      comment: "piper",
      language: "English",
      voice: "en-us",
      has_espeak: "1",
      n_speakers: "1",
      sample_rate: "22050",
      add_blank: "1",
    });
    const tokens = readFileSync(join(directory, "tokens.txt"), "utf8").trimEnd().split("\n");
    expect(tokens.sort()).toEqual(["  3", "1 9", "_ 0", "ˈ 120"].sort());
  });

  test("a json that describes no voice is refused", async () => {
    writeFileSync(join(directory, "model.onnx"), "MODEL");
    writeFileSync(join(directory, "model.onnx.json"), "{}");
    await expect(preparePiper(directory)).rejects.toMatchObject({ code: "download_failed" });
  });
});
