/**
 * Log-mel features as Whisper's extractor makes them, for Smart Turn: 80 bins, 400-sample periodic Hann windows every 160
 * samples, Slaney's filters, base-10 logarithm, clamped 8 below the greatest, shifted to about -1 to 1. The signal is
 * first brought to mean 0 and variance 1.
 */
const FFT = 400;
const HOP = 160;
const BINS = 80;
const HZ = 16_000;
const SPECTRUM = FFT / 2 + 1;
const POWER_MIN = 1e-10;
const VARIANCE_GUARD = 1e-7;

/** 400 = 16 * 25: sixteen-point transforms of every 25th sample, then 25-point transforms across them. */
const SHORT = 16;
const LONG = 25;

/** @returns [80, samples / 160], bin by bin */
export function whisperMel(samples: Float32Array): Float32Array<ArrayBuffer> {
  const signal = normalized(samples);
  const frames = Math.floor(samples.length / HOP);
  const out = new Float32Array(BINS * frames);
  const windowed = new Float64Array(FFT);
  const power = new Float64Array(SPECTRUM);
  let greatest = -Infinity;
  for (let frame = 0; frame < frames; frame++) {
    const first = frame * HOP - FFT / 2;
    for (let n = 0; n < FFT; n++) windowed[n] = at(signal, first + n) * WINDOW[n]!;
    powerSpectrum(windowed, power);
    for (let bin = 0; bin < BINS; bin++) {
      const { start, weights } = FILTERS[bin]!;
      let energy = 0;
      for (let i = 0; i < weights.length; i++) energy += weights[i]! * power[start + i]!;
      const level = Math.log10(Math.max(energy, POWER_MIN));
      greatest = Math.max(greatest, level);
      out[bin * frames + frame] = level;
    }
  }
  for (let i = 0; i < out.length; i++) out[i] = (Math.max(out[i]!, greatest - 8) + 4) / 4;
  return out;
}

function normalized(samples: Float32Array): Float64Array {
  const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
  const variance = samples.reduce((sum, sample) => sum + (sample - mean) ** 2, 0) / samples.length;
  const scale = 1 / Math.sqrt(variance + VARIANCE_GUARD);
  return Float64Array.from(samples, (sample) => (sample - mean) * scale);
}

/** The signal, reflected at its ends. */
function at(signal: Float64Array, place: number): number {
  const last = signal.length - 1;
  return signal[place < 0 ? -place : place > last ? 2 * last - place : place]!;
}

const WINDOW = Float64Array.from({ length: FFT }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / FFT));
const COSINES = Float64Array.from({ length: FFT }, (_, n) => Math.cos((2 * Math.PI * n) / FFT));
const SINES = Float64Array.from({ length: FFT }, (_, n) => Math.sin((2 * Math.PI * n) / FFT));

const shortReal = new Float64Array(FFT);
const shortImaginary = new Float64Array(FFT);

/** |X[k]|^2 for k = 0 to 200. With n = 25 a + b and k = c + 16 d: over a first, then over b. */
function powerSpectrum(x: Float64Array, power: Float64Array): void {
  for (let c = 0; c < SHORT; c++) {
    for (let b = 0; b < LONG; b++) {
      let re = 0;
      let im = 0;
      for (let a = 0; a < SHORT; a++) {
        const turn = ((a * c) % SHORT) * LONG;
        re += x[LONG * a + b]! * COSINES[turn]!;
        im -= x[LONG * a + b]! * SINES[turn]!;
      }
      const cos = COSINES[b * c]!;
      const sin = SINES[b * c]!;
      shortReal[c * LONG + b] = re * cos + im * sin;
      shortImaginary[c * LONG + b] = im * cos - re * sin;
    }
  }
  for (let k = 0; k < SPECTRUM; k++) {
    const row = (k % SHORT) * LONG;
    const d = Math.floor(k / SHORT);
    let re = 0;
    let im = 0;
    for (let b = 0; b < LONG; b++) {
      const turn = ((b * d) % LONG) * SHORT;
      const cos = COSINES[turn]!;
      const sin = SINES[turn]!;
      re += shortReal[row + b]! * cos + shortImaginary[row + b]! * sin;
      im += shortImaginary[row + b]! * cos - shortReal[row + b]! * sin;
    }
    power[k] = re * re + im * im;
  }
}

interface Filter {
  readonly start: number;
  readonly weights: Float64Array;
}

/** Triangles equally spaced in mel from 0 to 8 kHz, each of area 1. */
const FILTERS: readonly Filter[] = (() => {
  const top = melOf(HZ / 2);
  const points = Array.from({ length: BINS + 2 }, (_, i) => hzOf((top * i) / (BINS + 1)));
  return Array.from({ length: BINS }, (_, bin): Filter => {
    const [low, middle, high] = [points[bin]!, points[bin + 1]!, points[bin + 2]!];
    const all = Float64Array.from({ length: SPECTRUM }, (_, k) => {
      const hz = (k * HZ) / FFT;
      const height = Math.max(0, Math.min((hz - low) / (middle - low), (high - hz) / (high - middle)));
      return (height * 2) / (high - low);
    });
    const start = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    );
    const end = all.findLastIndex((weight) => weight > 0) + 1;
    return { start, weights: all.slice(start, end) };
  });
})();

/** Slaney's scale: linear below 1 kHz, logarithmic above. */
function melOf(hz: number): number {
  return hz < 1_000 ? (3 * hz) / 200 : 15 + Math.log(hz / 1_000) * (27 / Math.log(6.4));
}
function hzOf(mel: number): number {
  return mel < 15 ? (200 * mel) / 3 : 1_000 * Math.exp((mel - 15) * (Math.log(6.4) / 27));
}
