/**
 * WAV files. Reads PCM of 8, 16, 24 and 32 bits, float of 32 and 64, A-law and mu-law, plain or WAVE_FORMAT_EXTENSIBLE, at
 * any rate and channel count, RIFF or RF64, with any other chunks around; writes PCM16 mono.
 */
import { AppError } from "../errors.ts";
import { assert } from "../util/assert.ts";
import { alawToFloat, mulawToFloat } from "./g711.ts";
import { floatToPcm16, pcm16ToFloat } from "./pcm.ts";

export interface WavFormat {
  readonly hz: number;
  readonly channels: number;
  readonly encoding: "pcm" | "float" | "alaw" | "mulaw";
  readonly bitsPerSample: number;
}

export interface WavAudio {
  readonly format: WavFormat;
  /** Interleaved, [frames, channels], full scale at 1. */
  readonly samples: Float32Array<ArrayBuffer>;
}

const ENCODINGS: Readonly<Record<number, WavFormat["encoding"]>> = { 1: "pcm", 3: "float", 6: "alaw", 7: "mulaw" };
const EXTENSIBLE = 0xfffe;
const BITS: Readonly<Record<WavFormat["encoding"], readonly number[]>> = {
  pcm: [8, 16, 24, 32],
  float: [32, 64],
  alaw: [8],
  mulaw: [8],
};
/** The tail of the sub-format id of WAVE_FORMAT_EXTENSIBLE; its first two bytes are the format tag. */
const SUBFORMAT_TAIL = "000000001000800000aa00389b71";
/** In a size field: not known when the header was written. */
const SIZE_UNKNOWN = 0xffffffff;
/** Far above any recorder's rate; what is beyond is a damaged header. */
const HZ_MAX = 1_000_000;
/** No chunk in front of the samples that we must hold whole is larger. */
const HEADER_BYTES_MAX = 4096;

/** @throws {AppError} audio_unreadable, with what is wrong. */
export function readWav(bytes: Uint8Array): WavAudio {
  const reader = new WavReader();
  const samples = reader.push(bytes);
  return { format: reader.finish(), samples };
}

/** The mean of the channels. `samples` is [frames, channels]; a rest of less than one frame is left out. */
export function mixToMono(samples: Float32Array, channels: number): Float32Array<ArrayBuffer> {
  if (channels === 1) return samples.slice();
  const out = new Float32Array(Math.floor(samples.length / channels));
  for (let frame = 0; frame < out.length; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += samples[frame * channels + channel]!;
    out[frame] = sum / channels;
  }
  return out;
}

/** A PCM16 mono file; samples beyond full scale are clipped, scale 32768. */
export function writeWav(pcm: Float32Array, hz: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(44 + 2 * pcm.length);
  out.set(wavHeader(hz, pcm.length));
  out.set(floatToPcm16(pcm), 44);
  return out;
}

/** The 44 bytes in front of PCM16 mono samples. Without a count, the sizes say "not known", for output that is piped. */
export function wavHeader(hz: number, samples: number | null): Uint8Array<ArrayBuffer> {
  const dataBytes = samples === null ? SIZE_UNKNOWN : 2 * samples;
  assert(dataBytes <= SIZE_UNKNOWN - 36 || samples === null, `${samples} samples are too many for one WAV file`);
  const header = Buffer.from(new ArrayBuffer(44));
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(samples === null ? SIZE_UNKNOWN : 36 + dataBytes, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(hz, 24);
  header.writeUInt32LE(2 * hz, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(dataBytes, 40);
  return new Uint8Array(header.buffer, 0, 44);
}

type ReaderState =
  /** Before "WAVE". */
  | { readonly at: "riff" }
  | { readonly at: "chunk" }
  /** `bytes` of a chunk (with its padding) still to pass over. */
  | { readonly at: "skip"; bytes: number }
  /** `bytes` of samples still to come; infinite if the size is not known. */
  | { readonly at: "data"; bytes: number }
  | { readonly at: "end" };

/** Reads a file as it arrives: `push` its bytes in chunks of any size, then `finish`. */
export class WavReader {
  #state: ReaderState = { at: "riff" };
  #held: Buffer = Buffer.alloc(0);
  #format: WavFormat | null = null;
  /** From a ds64 chunk: the size of the data chunk where its own field cannot hold it. */
  #dataBytes: number | null = null;
  #riffSize = 0;

  /** Known once the header is in. */
  get format(): WavFormat | null {
    return this.#format;
  }
  /**
   * The samples that `bytes` completes, interleaved, whole frames only.
   * @throws {AppError} audio_unreadable, with what is wrong.
   */
  push(bytes: Uint8Array): Float32Array<ArrayBuffer> {
    const added = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#held = this.#held.length === 0 ? added : Buffer.concat([this.#held, added]);
    while (this.#state.at !== "data" && this.#readHeader());
    const samples = this.#readSamples();
    // What is held is a few bytes; a view would keep the caller's memory.
    this.#held = Buffer.from(this.#held);
    return samples;
  }
  /** @throws {AppError} audio_unreadable if the file ends before its samples do. */
  finish(): WavFormat {
    const state = this.#state;
    if (state.at === "riff") throw unreadable("not a WAV file: it ends before its RIFF header");
    if (this.#format === null) throw unreadable("the WAV file ends before its fmt chunk");
    if (state.at === "chunk" || state.at === "skip") throw unreadable("the WAV file ends before its data chunk");
    if (state.at === "data" && Number.isFinite(state.bytes) && state.bytes - this.#held.length > 0) {
      throw unreadable(`the WAV file is cut off: ${state.bytes - this.#held.length} bytes of samples are missing`);
    }
    return this.#format;
  }
  /** One step through the header. False when more bytes are needed, or the end is reached. */
  #readHeader(): boolean {
    switch (this.#state.at) {
      case "riff":
        return this.#readRiff();
      case "chunk":
        return this.#readChunk();
      case "skip": {
        const passed = Math.min(this.#state.bytes, this.#held.length);
        this.#held = this.#held.subarray(passed);
        this.#state.bytes -= passed;
        if (this.#state.bytes > 0) return false;
        this.#state = { at: "chunk" };
        return true;
      }
      default:
        return false;
    }
  }
  #readRiff(): boolean {
    const head = this.#held;
    if (head.length < 12) return false;
    const id = head.toString("latin1", 0, 4);
    if (id === "RIFX") throw unreadable("the WAV file is big-endian (RIFX); convert it to RIFF");
    if ((id !== "RIFF" && id !== "RF64" && id !== "BW64") || head.toString("latin1", 8, 12) !== "WAVE") {
      throw unreadable("not a WAV file: it does not begin with RIFF and WAVE");
    }
    this.#riffSize = head.readUInt32LE(4);
    this.#held = head.subarray(12);
    this.#state = { at: "chunk" };
    return true;
  }
  #readChunk(): boolean {
    const head = this.#held;
    if (head.length < 8) return false;
    const id = head.toString("latin1", 0, 4);
    const size = head.readUInt32LE(4);
    if (id === "data") {
      if (this.#format === null) throw unreadable("the WAV file has its data chunk before its fmt chunk");
      this.#held = head.subarray(8);
      this.#state = { at: "data", bytes: this.#sampleBytes(size, this.#format) };
      return true;
    }
    const padded = size + (size % 2);
    if (id !== "fmt " && id !== "ds64") {
      this.#held = head.subarray(8);
      this.#state = { at: "skip", bytes: padded };
      return true;
    }
    if (size > HEADER_BYTES_MAX) throw unreadable(`the ${id.trim()} chunk of the WAV file has ${size} bytes`);
    if (head.length < 8 + padded) return false;
    const body = head.subarray(8, 8 + size);
    if (id === "fmt ") this.#format = parseFormat(body);
    else if (size >= 16) this.#dataBytes = Number(body.readBigUInt64LE(8));
    this.#held = head.subarray(8 + padded);
    return true;
  }
  /** A size of 0 in a header that was never completed means "until the end", as 0xFFFFFFFF does. */
  #sampleBytes(field: number, format: WavFormat): number {
    const unfinished = field === 0 && (this.#riffSize === 0 || this.#riffSize === SIZE_UNKNOWN);
    const size = field === SIZE_UNKNOWN ? this.#dataBytes : unfinished ? null : field;
    return size === null ? Number.POSITIVE_INFINITY : size - (size % frameBytes(format));
  }
  #readSamples(): Float32Array<ArrayBuffer> {
    const state = this.#state;
    if (state.at !== "data" || this.#format === null) {
      if (state.at === "end") this.#held = Buffer.alloc(0);
      return new Float32Array(0);
    }
    const available = Math.min(this.#held.length, state.bytes);
    const taken = available - (available % frameBytes(this.#format));
    const samples = decodeSamples(this.#held.subarray(0, taken), this.#format);
    state.bytes -= taken;
    this.#held = this.#held.subarray(taken);
    if (state.bytes === 0) {
      this.#state = { at: "end" };
      this.#held = Buffer.alloc(0);
    }
    return samples;
  }
}

function parseFormat(body: Buffer): WavFormat {
  if (body.length < 16)
    throw unreadable(`the fmt chunk of the WAV file has ${body.length} bytes, expected at least 16`);
  let tag = body.readUInt16LE(0);
  const channels = body.readUInt16LE(2);
  const hz = body.readUInt32LE(4);
  const bytesPerFrame = body.readUInt16LE(12);
  const bitsPerSample = body.readUInt16LE(14);
  if (tag === EXTENSIBLE) {
    if (body.length < 40 || body.toString("hex", 26, 40) !== SUBFORMAT_TAIL) {
      throw unreadable("the WAV file has an extensible format of an unknown kind");
    }
    tag = body.readUInt16LE(24);
  }
  const encoding = ENCODINGS[tag];
  if (encoding === undefined) {
    throw unreadable(`the WAV file has format ${tag}; this version reads PCM (1), float (3), A-law (6) and mu-law (7)`);
  }
  if (!BITS[encoding].includes(bitsPerSample)) {
    throw unreadable(
      `the WAV file has ${bitsPerSample}-bit ${encoding} samples; expected ${BITS[encoding].join(", ")}`,
    );
  }
  if (channels === 0 || hz === 0 || hz > HZ_MAX) throw unreadable(`the WAV file has ${channels} channels at ${hz} Hz`);
  const format: WavFormat = { hz, channels, encoding, bitsPerSample };
  if (bytesPerFrame !== frameBytes(format)) {
    throw unreadable(`the WAV file has ${bytesPerFrame} bytes a frame, expected ${frameBytes(format)}`);
  }
  return format;
}

function frameBytes(format: WavFormat): number {
  return (format.channels * format.bitsPerSample) / 8;
}

/** `bytes` is a whole number of samples. */
function decodeSamples(bytes: Buffer, format: WavFormat): Float32Array<ArrayBuffer> {
  if (format.encoding === "alaw") return alawToFloat(bytes);
  if (format.encoding === "mulaw") return mulawToFloat(bytes);
  const key = `${format.encoding}${format.bitsPerSample}`;
  if (key === "pcm16") return pcm16ToFloat(bytes)!;
  const width = format.bitsPerSample / 8;
  const out = new Float32Array(bytes.length / width);
  const read = SAMPLE_READERS[key]!;
  for (let i = 0; i < out.length; i++) out[i] = read(bytes, i * width);
  return out;
}

const SAMPLE_READERS: Readonly<Record<string, (bytes: Buffer, at: number) => number>> = {
  pcm8: (bytes, at) => (bytes.readUInt8(at) - 128) / 128,
  pcm24: (bytes, at) => bytes.readIntLE(at, 3) / 8388608,
  pcm32: (bytes, at) => bytes.readInt32LE(at) / 2147483648,
  float32: (bytes, at) => bytes.readFloatLE(at),
  float64: (bytes, at) => bytes.readDoubleLE(at),
};

function unreadable(message: string): AppError {
  return new AppError("audio_unreadable", message);
}
