/** Whether a full-duplex model keeps up with a person, who speaks 80 ms every 80 ms. */

/** Behind by this much, people notice that the model answers late. */
const BEHIND_MS = 1000;

export class Pace {
  readonly #frameMs: number;
  #lagMs = 0;
  #behind = false;

  constructor(frameMs: number) {
    this.#frameMs = frameMs;
  }
  /** How late the answers are to whoever speaks without a pause; 0 for a model that waits for its input. */
  get lagMs(): number {
    return this.#lagMs;
  }
  /** Takes what one frame took. "behind" when the lag has grown to a second, "caught-up" when it is gone again. */
  frame(totalMs: number): "behind" | "caught-up" | null {
    this.#lagMs = Math.max(0, this.#lagMs + totalMs - this.#frameMs);
    if (!this.#behind && this.#lagMs >= BEHIND_MS) {
      this.#behind = true;
      return "behind";
    }
    if (this.#behind && this.#lagMs === 0) {
      this.#behind = false;
      return "caught-up";
    }
    return null;
  }
}
