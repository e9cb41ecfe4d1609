/**
 * Log-mel features as Whisper's extractor makes them, which Smart Turn v3 hears: 80 bins, periodic Hann windows of 400
 * samples every 160, Slaney's filters, base-10 logarithm, clamped 8 below the greatest, shifted to about -1 to 1. The
 * signal is first brought to mean 0 and variance 1. In double precision within.
 */
import { PowerSpectrum } from "./fourier.ts";
import { melFilters } from "./mel-filters.ts";

const HZ = 16_000;
const WINDOW_SAMPLES = 400;
const HOP_SAMPLES = 160;
const BINS = 80;
const ENERGY_MIN = 1e-10;
const VARIANCE_GUARD = 1e-7;

const WINDOW: Float64Array = Float64Array.from(
  { length: WINDOW_SAMPLES },
  (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / WINDOW_SAMPLES),
);
const FILTERS = melFilters({ hz: HZ, fftSamples: WINDOW_SAMPLES, bins: BINS }, Number);
const SPECTRUM = new PowerSpectrum(WINDOW_SAMPLES);

/**
 * [80, samples / 160], bin by bin, of a signal at 16 kHz, which is mirrored at its ends. Frame i is centred on sample
 * 160 i. Of fewer than 201 samples there are no features.
 */
export function whisperMel(samples: Float32Array): Float32Array<ArrayBuffer> {
  if (samples.length <= WINDOW_SAMPLES / 2) return new Float32Array(0);
  const frames = Math.floor(samples.length / HOP_SAMPLES);
  const out = new Float32Array(BINS * frames);
  const signal = prepared(samples);
  const power = new Float64Array(SPECTRUM.bins);
  let greatest = Number.NEGATIVE_INFINITY;
  for (let frame = 0; frame < frames; frame++) {
    const windowed = SPECTRUM.samples;
    for (let n = 0; n < WINDOW_SAMPLES; n++) windowed[n] = signal[frame * HOP_SAMPLES + n]! * WINDOW[n]!;
    SPECTRUM.write(power);
    for (let bin = 0; bin < BINS; bin++) {
      const { first, weights } = FILTERS[bin]!;
      let energy = 0;
      for (let i = 0; i < weights.length; i++) energy += weights[i]! * power[first + i]!;
      const level = Math.log10(Math.max(energy, ENERGY_MIN));
      greatest = Math.max(greatest, level);
      out[bin * frames + frame] = level;
    }
  }
  for (let i = 0; i < out.length; i++) out[i] = (Math.max(out[i]!, greatest - 8) + 4) / 4;
  return out;
}

/** Brought to mean 0 and variance 1, with half a window more at both ends, mirrored. */
function prepared(samples: Float32Array): Float64Array {
  let sum = 0;
  for (let n = 0; n < samples.length; n++) sum += samples[n]!;
  const mean = sum / samples.length;
  let squares = 0;
  for (let n = 0; n < samples.length; n++) squares += (samples[n]! - mean) ** 2;
  const scale = 1 / Math.sqrt(squares / samples.length + VARIANCE_GUARD);
  const half = WINDOW_SAMPLES / 2;
  const last = half + samples.length - 1;
  const out = new Float64Array(samples.length + 2 * half);
  for (let n = 0; n < samples.length; n++) out[half + n] = (samples[n]! - mean) * scale;
  for (let n = 1; n <= half; n++) {
    out[half - n] = out[half + n]!;
    out[last + n] = out[last - n]!;
  }
  return out;
}
