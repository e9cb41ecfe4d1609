/** Loudness of an audio node: -60 dB is 0, -10 dB is 1. */
export class Meter {
  readonly #analyser: AnalyserNode;
  readonly #samples: Float32Array<ArrayBuffer>;

  constructor(source: AudioNode) {
    this.#analyser = source.context.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#samples = new Float32Array(this.#analyser.fftSize);
    source.connect(this.#analyser);
  }

  level(): number {
    this.#analyser.getFloatTimeDomainData(this.#samples);
    const power = this.#samples.reduce((sum, x) => sum + x * x, 0) / this.#samples.length;
    const decibels = 10 * Math.log10(power + 1e-12);
    return Math.min(1, Math.max(0, (decibels + 60) / 50));
  }
}
