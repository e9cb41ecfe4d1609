/** Turn end: has the user finished, or only paused? Asked at a pause, answered from the last eight seconds. */

/** 8 s at 16,000 Hz. */
export const TURN_SAMPLES = 128_000;

export interface TurnModel extends AsyncDisposable {
  readonly name: string;
  /**
   * @param pcm mono f32 at 16 kHz, what was heard up to the pause, at most 8 s
   * @returns the probability that the turn is complete
   * @throws {EngineError} turn_failed, worker_died
   */
  complete(pcm: Float32Array, signal?: AbortSignal): Promise<number>;
}
