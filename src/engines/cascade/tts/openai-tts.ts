/** Any service with OpenAI's `/v1/audio/speech`, streamed as PCM at 24 kHz. */
import { pcm16ToFloat } from "../../../audio/pcm.ts";
import { Remote, type RemoteOptions } from "../remote.ts";
import type { SpokenChunk, Tts, TtsRequest } from "./tts.ts";

export interface OpenAiTtsOptions extends RemoteOptions {
  readonly model: string | null;
}

const MODEL = "gpt-4o-mini-tts";
const VOICES = [
  "alloy",
  "ash",
  "ballad",
  "coral",
  "echo",
  "fable",
  "marin",
  "cedar",
  "nova",
  "onyx",
  "sage",
  "shimmer",
  "verse",
];
const HZ = 24_000;
/** 80 ms: small enough to begin at once, large enough not to flood. */
const CHUNK_BYTES = 3_840;

export class OpenAiTts implements Tts {
  readonly name: string;
  readonly voices: readonly string[] = VOICES;
  readonly hz: number = HZ;
  readonly #remote: Remote;

  constructor({ model, ...options }: OpenAiTtsOptions) {
    this.name = model ?? MODEL;
    this.#remote = new Remote(options);
  }
  async *speak({ text, voice, speed, signal }: TtsRequest): AsyncIterable<SpokenChunk> {
    const body = { model: this.name, input: text, voice: voice ?? VOICES[0], speed, response_format: "pcm" };
    const response = await this.#remote.post({ path: "/audio/speech", body, signal });
    let held = new Uint8Array(0);
    for await (const bytes of this.#remote.chunks(response, signal)) {
      held = joined(held, bytes);
      const whole = held.length - (held.length % CHUNK_BYTES);
      if (whole === 0) continue;
      yield chunk(held.subarray(0, whole));
      held = held.slice(whole);
    }
    const rest = held.length - (held.length % 2);
    if (rest > 0) yield chunk(held.subarray(0, rest));
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

/** @param bytes an even number of them */
const chunk = (bytes: Uint8Array): SpokenChunk => ({ pcm: pcm16ToFloat(bytes) ?? new Float32Array(0), hz: HZ });

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
