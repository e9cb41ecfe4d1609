/** Recognizers and voices of sherpa-onnx: the only file that imports it. Both compute off the event loop. */
import sherpa, { type OfflineRecognizer, type OfflineTts } from "sherpa-onnx-node";

/** Absolute paths by role, as the model catalog names them. */
export type ModelRoles = Readonly<Record<string, string>>;

export type RecognizerKind = "moonshine" | "parakeet-tdt" | "whisper" | "paraformer";
export type VoiceKind = "piper" | "kokoro" | "kitten";

export interface RecognizerOptions {
  readonly kind: RecognizerKind;
  readonly roles: ModelRoles;
  readonly threads: number;
}

export interface VoiceOptions {
  readonly kind: VoiceKind;
  readonly roles: ModelRoles;
  readonly threads: number;
}

const HZ = 16_000;

export class Recognizer {
  readonly #options: RecognizerOptions;
  readonly #inner: OfflineRecognizer;
  #language = "";

  private constructor(options: RecognizerOptions, inner: OfflineRecognizer) {
    this.#options = options;
    this.#inner = inner;
  }
  static async load(options: RecognizerOptions): Promise<Recognizer> {
    return new Recognizer(options, await sherpa.OfflineRecognizer.createAsync(recognizerConfig(options, "")));
  }
  /** @param pcm mono f32 at 16 kHz */
  async transcribe(pcm: Float32Array, language: string | null): Promise<string> {
    // Whisper alone can be told the language; the others speak the ones that they were made for.
    if (this.#options.kind === "whisper" && (language ?? "") !== this.#language) {
      this.#language = language ?? "";
      this.#inner.setConfig(recognizerConfig(this.#options, this.#language));
    }
    const stream = this.#inner.createStream();
    stream.acceptWaveform({ samples: pcm, sampleRate: HZ });
    return (await this.#inner.decodeAsync(stream)).text.trim();
  }
}

export class Voice {
  readonly #inner: OfflineTts;
  private constructor(inner: OfflineTts) {
    this.#inner = inner;
  }
  static async load({ kind, roles, threads }: VoiceOptions): Promise<Voice> {
    const { model, voices, tokens, dataDir } = roles;
    const files = { model, tokens, dataDir };
    const config = kind === "piper" ? { vits: files } : { [kind]: { ...files, voices } };
    const settings = { model: { ...config, numThreads: threads, provider: "cpu" }, maxNumSentences: 1 };
    return new Voice(await sherpa.OfflineTts.createAsync(settings));
  }
  get hz(): number {
    return this.#inner.sampleRate;
  }
  get speakers(): number {
    return this.#inner.numSpeakers;
  }
  /** @returns mono f32 at `hz`, cut short once `aborted` says so */
  async speak(text: string, speaker: number, speed: number, aborted: () => boolean): Promise<Float32Array> {
    const { samples } = await this.#inner.generateAsync({
      text,
      sid: speaker,
      speed,
      enableExternalBuffer: false,
      onProgress: () => !aborted(),
    });
    return samples;
  }
}

function recognizerConfig({ kind, roles, threads }: RecognizerOptions, language: string): unknown {
  return {
    featConfig: { sampleRate: HZ, featureDim: 80 },
    modelConfig: {
      ...modelConfig(kind, roles, language),
      tokens: roles["tokens"],
      numThreads: threads,
      provider: "cpu",
      debug: 0,
    },
  };
}

function modelConfig(kind: RecognizerKind, roles: ModelRoles, language: string): Record<string, unknown> {
  const { model, encoder, decoder, joiner, preprocessor, uncachedDecoder, cachedDecoder } = roles;
  if (kind === "moonshine") {
    const merged = { encoder, mergedDecoder: decoder };
    return { moonshine: decoder === undefined ? { preprocessor, encoder, uncachedDecoder, cachedDecoder } : merged };
  }
  if (kind === "parakeet-tdt") return { transducer: { encoder, decoder, joiner }, modelType: "nemo_transducer" };
  if (kind === "whisper") return { whisper: { encoder, decoder, language, task: "transcribe" } };
  return { paraformer: { model } };
}
