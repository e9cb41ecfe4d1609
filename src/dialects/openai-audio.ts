/** Audio between the wire's formats and plain samples, with one stateful resampler per stream. */
import { alawToFloat, floatToAlaw, floatToMulaw, mulawToFloat } from "../audio/g711.ts";
import { base64ToBytes, floatToPcm16, pcm16ToFloat } from "../audio/pcm.ts";
import { Resampler } from "../audio/resample.ts";
import type { AudioFormat } from "../conversation/settings.ts";
import { ClientError } from "../errors.ts";

/** The largest append, in bytes of audio, as OpenAI has it: 15 MiB. */
const APPEND_BYTES_MAX = 15 * 1024 * 1024;

/** The user's voice, on its way to the engine. */
export class InputAudio {
  /** A recording that stands for itself, apart from the stream. */
  static recording(base64: string, format: AudioFormat, engineHz: number): Float32Array | ClientError {
    const input = new InputAudio(engineHz);
    const decoded = input.decode(base64, format);
    if (decoded instanceof ClientError) return decoded;
    const tail = input.#resampler.flush();
    const whole = new Float32Array(decoded.pcm.length + tail.length);
    whole.set(decoded.pcm);
    whole.set(tail, decoded.pcm.length);
    return whole;
  }
  readonly #engineHz: number;
  #resampler: Resampler;
  constructor(engineHz: number) {
    this.#engineHz = engineHz;
    this.#resampler = new Resampler(engineHz, engineHz);
  }
  /** Base64 of one append. `ms` is its length before resampling. */
  decode(base64: string, format: AudioFormat): { readonly pcm: Float32Array; readonly ms: number } | ClientError {
    if (base64.length > Math.ceil(APPEND_BYTES_MAX / 3) * 4) {
      return invalid(`has more than ${APPEND_BYTES_MAX} bytes; send it in smaller pieces.`);
    }
    const bytes = base64ToBytes(base64);
    if (bytes === null) return invalid(`is not base64 with padding (${base64.length} characters).`);
    const pcm = decodeBytes(bytes, format);
    if (pcm === null) {
      return invalid(`has ${bytes.length} bytes, an odd number; 16-bit samples have two bytes each.`);
    }
    return { pcm: this.resample(pcm, format.hz), ms: (pcm.length * 1000) / format.hz };
  }
  resample(pcm: Float32Array, hz: number): Float32Array {
    if (this.#resampler.inputHz !== hz) this.#resampler = new Resampler(hz, this.#engineHz);
    return this.#resampler.push(pcm);
  }
}

const invalid = (why: string): ClientError => new ClientError("invalid_audio", `'audio' ${why}`, "audio");

function decodeBytes(bytes: Uint8Array, format: AudioFormat): Float32Array | null {
  if (format.encoding === "mulaw") return mulawToFloat(bytes);
  return format.encoding === "alaw" ? alawToFloat(bytes) : pcm16ToFloat(bytes);
}

/** The longest piece of speech in one event. */
const DELTA_MS_MAX = 200;

/** One response's voice, on its way to the client as base64. */
export class OutputAudio {
  readonly #format: AudioFormat;
  #resampler: Resampler | null = null;
  constructor(format: AudioFormat) {
    this.#format = format;
  }
  /** Base64 pieces of at most 200 ms. */
  push(pcm: Float32Array, hz: number): string[] {
    const tail = this.#resampler !== null && this.#resampler.inputHz !== hz ? this.flush() : [];
    this.#resampler ??= new Resampler(hz, this.#format.hz);
    return [...tail, ...this.#pieces(this.#resampler.push(pcm))];
  }
  /** What the resampler still holds. */
  flush(): string[] {
    const rest = this.#resampler?.flush() ?? new Float32Array(0);
    this.#resampler = null;
    return this.#pieces(rest);
  }
  #pieces(pcm: Float32Array): string[] {
    const { encoding, hz } = this.#format;
    const pieceSamples = (DELTA_MS_MAX * hz) / 1000;
    const pieces: string[] = [];
    for (let start = 0; start < pcm.length; start += pieceSamples) {
      const piece = pcm.subarray(start, start + pieceSamples);
      const bytes =
        encoding === "mulaw" ? floatToMulaw(piece) : encoding === "alaw" ? floatToAlaw(piece) : floatToPcm16(piece);
      pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"));
    }
    return pieces;
  }
}
