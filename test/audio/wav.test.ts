import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { concatPcm, floatToPcm16 } from "../../src/audio/pcm.ts";
import { mixToMono, readWav, WavReader, wavHeader, writeWav } from "../../src/audio/wav.ts";
import { chunkSizes, cut } from "../support/chunks.ts";
import { noise } from "../support/signals.ts";

interface FileOptions {
  tag?: number;
  channels?: number;
  hz?: number;
  bits?: number;
  data: Uint8Array;
  extensible?: boolean;
  before?: Uint8Array[];
  after?: Uint8Array[];
  dataSize?: number;
  riffSize?: number;
  riff?: string;
  blockAlign?: number;
}

function chunk(id: string, body: Uint8Array, size: number = body.length): Uint8Array {
  const head = Buffer.alloc(8);
  head.write(id, "latin1");
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
}

function wavFile(options: FileOptions): Uint8Array {
  const { tag = 1, channels = 1, hz = 16000, bits = 16, data } = options;
  const format = Buffer.alloc(options.extensible ? 40 : 16);
  format.writeUInt16LE(options.extensible ? 0xfffe : tag, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(hz, 4);
  format.writeUInt32LE((hz * channels * bits) / 8, 8);
  format.writeUInt16LE(options.blockAlign ?? (channels * bits) / 8, 12);
  format.writeUInt16LE(bits, 14);
  if (options.extensible) {
    format.writeUInt16LE(22, 16);
    format.writeUInt16LE(bits, 18);
    format.writeUInt16LE(tag, 24);
    Buffer.from("000000001000800000aa00389b71", "hex").copy(format, 26);
  }
  const body = Buffer.concat([
    ...(options.before ?? []),
    chunk("fmt ", format),
    chunk("data", data, options.dataSize),
    ...(options.after ?? []),
  ]);
  const head = Buffer.alloc(12);
  head.write(options.riff ?? "RIFF", "latin1");
  head.writeUInt32LE(options.riffSize ?? 4 + body.length, 4);
  head.write("WAVE", 8, "latin1");
  return Buffer.concat([head, body]);
}

function samplesAs(kind: string, values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc((values.length * Number(kind.replace(/\D+/, ""))) / 8);
  for (const [i, x] of values.entries()) {
    if (kind === "pcm8") bytes.writeUInt8(128 + x * 128, i);
    else if (kind === "pcm16") bytes.writeInt16LE(x * 32768, 2 * i);
    else if (kind === "pcm24") bytes.writeIntLE(x * 8388608, 3 * i, 3);
    else if (kind === "pcm32") bytes.writeInt32LE(x * 2147483648, 4 * i);
    else if (kind === "float32") bytes.writeFloatLE(x, 4 * i);
    else bytes.writeDoubleLE(x, 8 * i);
  }
  return bytes;
}

const VALUES = [0, 0.5, -0.5, -1, 0.25, -0.0078125];

describe("readWav", () => {
  it.each(["pcm8", "pcm16", "pcm24", "pcm32", "float32", "float64"])("reads %s, plain and extensible", (kind) => {
    const bits = Number(kind.replace(/\D+/, ""));
    for (const extensible of [false, true]) {
      const file = wavFile({ tag: kind.startsWith("pcm") ? 1 : 3, bits, data: samplesAs(kind, VALUES), extensible });
      const { format, samples } = readWav(file);
      expect([...samples]).toEqual(VALUES);
      expect(format).toMatchObject({ hz: 16000, channels: 1, bitsPerSample: bits });
    }
  });
  it("reads mu-law and A-law", () => {
    expect([...readWav(wavFile({ tag: 7, bits: 8, hz: 8000, data: Uint8Array.of(0xff, 0x80) })).samples]).toEqual([
      0,
      32124 / 32768,
    ]);
    expect([...readWav(wavFile({ tag: 6, bits: 8, hz: 8000, data: Uint8Array.of(0xd5, 0xaa) })).samples]).toEqual([
      8 / 32768,
      32256 / 32768,
    ]);
  });
  it("reads any rate and channel count, and mixes to mono", () => {
    const file = wavFile({ channels: 2, hz: 44100, data: samplesAs("pcm16", [0.5, -0.5, 0.25, 0.75]) });
    const { format, samples } = readWav(file);
    expect(format).toEqual({ hz: 44100, channels: 2, encoding: "pcm", bitsPerSample: 16 });
    expect([...mixToMono(samples, 2)]).toEqual([0, 0.5]);
    const six = wavFile({ channels: 6, hz: 48000, bits: 24, data: samplesAs("pcm24", [0.5, 0, 0.25, 0, 0, 0]) });
    expect([...mixToMono(readWav(six).samples, 6)]).toEqual([0.125]);
  });
  it("passes over other chunks, of odd sizes too", () => {
    const odd = chunk("LIST", Buffer.from("abc"));
    const big = chunk("junk", new Uint8Array(9001));
    const file = wavFile({ data: samplesAs("pcm16", VALUES), before: [odd, big], after: [odd] });
    expect([...readWav(file).samples]).toEqual(VALUES);
  });
  it("reads 8-bit data of odd length with its padding", () => {
    expect([...readWav(wavFile({ bits: 8, data: samplesAs("pcm8", [0, 0.5, -0.5]) })).samples]).toEqual([0, 0.5, -0.5]);
  });
  it("reads to the end where the sizes say that they are not known", () => {
    const data = samplesAs("pcm16", VALUES);
    for (const size of [0xffffffff, 0]) {
      expect([...readWav(wavFile({ data, dataSize: size, riffSize: size })).samples]).toEqual(VALUES);
    }
    expect([...readWav(wavFile({ data, dataSize: 0xffffffff })).samples]).toEqual(VALUES);
    // Honestly empty.
    expect(readWav(wavFile({ data: new Uint8Array(0) })).samples.length).toBe(0);
  });
  it("takes the size of an RF64 file from its ds64 chunk", () => {
    const ds64 = Buffer.alloc(28);
    ds64.writeBigUInt64LE(4n, 8);
    const data = samplesAs("pcm16", VALUES);
    const options = { riff: "RF64", riffSize: 0xffffffff, dataSize: 0xffffffff, before: [chunk("ds64", ds64)] };
    expect([...readWav(wavFile({ ...options, data })).samples]).toEqual(VALUES.slice(0, 2));
  });

  const good = wavFile({ data: samplesAs("pcm16", VALUES) });
  it.each([
    ["an empty file", new Uint8Array(0), "before its RIFF header"],
    ["text", Buffer.from("this is not audio at all"), "does not begin with RIFF"],
    ["an mp3", Buffer.concat([Buffer.from("ID3"), Buffer.alloc(40)]), "does not begin with RIFF"],
    ["big-endian", wavFile({ data: new Uint8Array(2), riff: "RIFX" }), "RIFX"],
    ["no chunks", good.slice(0, 12), "before its fmt chunk"],
    ["half a fmt chunk", good.slice(0, 30), "before its fmt chunk"],
    ["no data chunk", good.slice(0, 36), "before its data chunk"],
    ["cut-off samples", good.slice(0, good.length - 3), "3 bytes of samples are missing"],
    ["mp3 inside", wavFile({ tag: 0x55, data: new Uint8Array(2) }), "format 85"],
    ["12 bits", wavFile({ bits: 12, data: new Uint8Array(2), blockAlign: 2 }), "12-bit pcm"],
    ["16-bit float", wavFile({ tag: 3, bits: 16, data: new Uint8Array(2) }), "16-bit float"],
    ["no channels", wavFile({ channels: 0, data: new Uint8Array(2) }), "0 channels"],
    ["no rate", wavFile({ hz: 0, data: new Uint8Array(2) }), "at 0 Hz"],
    ["wrong block size", wavFile({ blockAlign: 3, data: new Uint8Array(2) }), "3 bytes a frame"],
    ["data before fmt", Buffer.concat([good.slice(0, 12), chunk("data", new Uint8Array(2))]), "before its fmt"],
    ["short fmt", Buffer.concat([good.slice(0, 12), chunk("fmt ", new Uint8Array(4))]), "at least 16"],
    ["huge fmt", Buffer.concat([good.slice(0, 12), chunk("fmt ", new Uint8Array(4), 4e9)]), "4000000000 bytes"],
  ])("says what is wrong with %s", (_, bytes, message) => {
    expect(() => readWav(bytes)).toThrow(expect.objectContaining({ code: "audio_unreadable" }));
    expect(() => readWav(bytes)).toThrow(message);
  });
});

describe("WavReader", () => {
  it("gives the same samples for every chunking of the file", () => {
    const data = samplesAs(
      "pcm24",
      [...noise(240)].map((x) => Math.round(x * 8388607) / 8388608),
    );
    const file = wavFile({ channels: 2, bits: 24, data, before: [chunk("LIST", new Uint8Array(37))] });
    const whole = readWav(file);
    fc.assert(
      fc.property(chunkSizes(300), (sizes) => {
        const reader = new WavReader();
        const pieces = cut(new Uint8Array(file), sizes).map((bytes) => reader.push(bytes));
        expect(reader.finish()).toEqual(whole.format);
        expect(concatPcm(pieces)).toEqual(whole.samples);
        expect(pieces.every((piece) => piece.length % 2 === 0)).toBe(true);
      }),
      { seed: 7 },
    );
  });
  it("never fails otherwise than with audio_unreadable, whatever the bytes", () => {
    const good = wavFile({ data: samplesAs("pcm16", VALUES) });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 6 }), (changes) => {
        const bad = Uint8Array.from(good);
        for (const [at, value] of changes) bad[at] = value;
        try {
          readWav(bad);
        } catch (error) {
          expect(error).toMatchObject({ code: "audio_unreadable" });
        }
      }),
      { seed: 8, numRuns: 500 },
    );
  });
});

describe("writeWav", () => {
  it("writes what readWav reads", () => {
    const pcm = Float32Array.from(VALUES);
    const bytes = writeWav(pcm, 24000);
    expect(bytes.length).toBe(44 + 2 * pcm.length);
    expect(readWav(bytes)).toEqual({
      format: { hz: 24000, channels: 1, encoding: "pcm", bitsPerSample: 16 },
      samples: pcm,
    });
  });
  it("has a header for output that is piped", () => {
    const piped = Buffer.concat([wavHeader(8000, null), floatToPcm16(Float32Array.from(VALUES))]);
    expect([...readWav(piped).samples]).toEqual(VALUES);
    expect(() => wavHeader(8000, 3e9)).toThrow("too many");
  });
});
