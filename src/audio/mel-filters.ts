/** Triangular filters on Slaney's mel scale: linear below 1 kHz, logarithmic above. */

/** The bins of a spectrum from `first` on that a filter weighs. */
export interface MelFilter {
  readonly first: number;
  readonly weights: Float64Array;
}

export interface MelFilterSettings {
  readonly hz: number;
  readonly fftSamples: number;
  readonly bins: number;
}

/** Hz per mel below the break; above it, a mel is a factor. */
const LINEAR_HZ = 200 / 3;
const BREAK_HZ = 1000;
const LOG_STEP = Math.log(6.4) / 27;

/**
 * Triangles between neighbouring points, equally spaced in mel from 0 to half the rate, each of area 1 (Slaney's norm).
 * `round` is applied to every intermediate result: Math.fround follows implementations that compute in float32, where it
 * shows; Number keeps double precision.
 */
export function melFilters(
  { hz, fftSamples, bins }: MelFilterSettings,
  round: (value: number) => number,
): readonly MelFilter[] {
  const points = slaneyPoints(hz / 2, bins + 2, round);
  return Array.from({ length: bins }, (_, bin) => {
    const [low, middle, high] = [points[bin]!, points[bin + 1]!, points[bin + 2]!];
    const scale = round(2 / round(high - low));
    const weights = Float64Array.from({ length: fftSamples / 2 + 1 }, (_, k) => {
      const frequency = round((k * hz) / fftSamples);
      const rising = round(round(frequency - low) / round(middle - low));
      const falling = round(round(high - frequency) / round(high - middle));
      return round(Math.max(0, Math.min(rising, falling)) * scale);
    });
    const first = weights.findIndex((weight) => weight > 0);
    const last = weights.findLastIndex((weight) => weight > 0);
    return first < 0 ? { first: 0, weights: weights.slice(0, 0) } : { first, weights: weights.slice(first, last + 1) };
  });
}

/** `count` frequencies from 0 to `topHz`, equally spaced in mel. */
function slaneyPoints(topHz: number, count: number, round: (value: number) => number): number[] {
  const breakMel = BREAK_HZ / LINEAR_HZ;
  const topMel = topHz < BREAK_HZ ? topHz / LINEAR_HZ : breakMel + Math.log(topHz / BREAK_HZ) / LOG_STEP;
  return Array.from({ length: count }, (_, index) => {
    const mel = round(round(index / (count - 1)) * round(topMel));
    if (mel < round(breakMel)) return round(round(LINEAR_HZ) * mel);
    return round(BREAK_HZ * round(Math.exp(round(round(LOG_STEP) * round(mel - round(breakMel))))));
  });
}
