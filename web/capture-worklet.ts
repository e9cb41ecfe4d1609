/** The microphone as PCM16 at the wire's rate, posted in chunks. */
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: unknown): void;

/** Zero crossings of the low-pass on each side, in samples of the lower rate. */
const HALF_WIDTH = 12;

class CaptureProcessor extends AudioWorkletProcessor {
  readonly #outputHz: number;
  #chunk: Int16Array<ArrayBuffer>;
  #filled = 0;
  /** Input not yet left behind, and where in it the next output sample lies. */
  #held = new Float32Array(0);
  #position = 0;

  constructor(options: { readonly processorOptions: { readonly outputHz: number; readonly chunkSeconds: number } }) {
    super();
    this.#outputHz = options.processorOptions.outputHz;
    this.#chunk = new Int16Array(Math.round(this.#outputHz * options.processorOptions.chunkSeconds));
  }

  process([input]: Float32Array[][]): boolean {
    const samples = input?.[0];
    if (samples === undefined) return true;
    if (sampleRate === this.#outputHz) for (const sample of samples) this.#put(sample);
    else this.#resample(samples);
    return true;
  }

  /** A windowed sinc, evaluated where each output sample lies. */
  #resample(samples: Float32Array): void {
    const joined = new Float32Array(this.#held.length + samples.length);
    joined.set(this.#held);
    joined.set(samples, this.#held.length);
    const step = sampleRate / this.#outputHz;
    const cutoff = Math.min(1, 1 / step) * 0.94;
    const reach = HALF_WIDTH * Math.max(1, step);
    for (; this.#position + reach < joined.length; this.#position += step) {
      let sum = 0;
      const first = Math.max(0, Math.ceil(this.#position - reach));
      for (let i = first; i <= this.#position + reach; i++) {
        const x = i - this.#position;
        const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / reach);
        const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
        sum += (joined[i] as number) * sinc * window * cutoff;
      }
      this.#put(sum);
    }
    const done = Math.max(0, Math.floor(this.#position - reach));
    this.#held = joined.slice(done);
    this.#position -= done;
  }

  #put(sample: number): void {
    this.#chunk[this.#filled++] = Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)));
    if (this.#filled < this.#chunk.length) return;
    const next = new Int16Array(this.#chunk.length);
    this.port.postMessage(this.#chunk, [this.#chunk.buffer]);
    this.#chunk = next;
    this.#filled = 0;
  }
}

registerProcessor("capture", CaptureProcessor);
