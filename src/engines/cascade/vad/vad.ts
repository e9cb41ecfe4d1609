/** Voice activity: how likely each frame of 32 ms is speech. Deciding what to make of it is the segmenter's work. */

export const VAD_HZ = 16_000;
/** 32 ms. */
export const VAD_FRAME_SAMPLES = 512;

/** A loaded detector. One serves every session. */
export interface Vad extends AsyncDisposable {
  readonly name: string;
  stream(): VadStream;
}

/** One session's detector. Calls are made one after the other. */
export interface VadStream {
  /**
   * @param frames mono f32 at 16 kHz, [n * 512]
   * @returns speech probabilities, [n]
   * @throws {EngineError} vad_failed, worker_died
   */
  push(frames: Float32Array): Promise<Float32Array>;
}
