/**
 * Voice activity by loudness alone: no model, for quiet rooms and small machines. The noise floor is learned only from
 * frames that are not speech, so that a long talk never becomes the new silence.
 */
import { VAD_FRAME_SAMPLES, type Vad, type VadStream } from "./vad.ts";

/** Loudness over the floor that is as likely speech as not, and how fast it becomes certain. */
const MARGIN_DB = 9;
const SLOPE_DB = 2.5;
/** Nothing quieter than this is speech, whatever the floor. */
const LEVEL_MIN_DB = -55;
const FLOOR_START_DB = -60;
const FLOOR_MIN_DB = -80;
/** Share of the way that the floor goes in one frame: down at once, up slowly. */
const FLOOR_RISE = 0.02;
const FLOOR_FALL = 0.2;
const SILENCE_PROBABILITY = 0.3;

export class EnergyVad implements Vad {
  readonly name = "energy";
  stream(): VadStream {
    return new EnergyVadStream();
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export class EnergyVadStream implements VadStream {
  #floorDb = FLOOR_START_DB;
  async push(frames: Float32Array): Promise<Float32Array> {
    const probabilities = new Float32Array(frames.length / VAD_FRAME_SAMPLES);
    for (let i = 0; i < probabilities.length; i++) {
      probabilities[i] = this.#frame(frames.subarray(i * VAD_FRAME_SAMPLES, (i + 1) * VAD_FRAME_SAMPLES));
    }
    return probabilities;
  }
  #frame(frame: Float32Array): number {
    let sum = 0;
    for (const sample of frame) sum += sample * sample;
    const levelDb = 10 * Math.log10(sum / frame.length + 1e-10);
    const overDb = Math.min(levelDb - this.#floorDb - MARGIN_DB, levelDb - LEVEL_MIN_DB);
    const probability = 1 / (1 + Math.exp(-overDb / SLOPE_DB));
    if (probability < SILENCE_PROBABILITY) {
      const share = levelDb > this.#floorDb ? FLOOR_RISE : FLOOR_FALL;
      this.#floorDb = Math.max(FLOOR_MIN_DB, this.#floorDb + share * (levelDb - this.#floorDb));
    }
    return probability;
  }
}
