import type { Clock } from "./clock.ts";

/** Named marks on one time line, in milliseconds since the first. */
export class Stopwatch {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #marks = new Map<string, number>();
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.nowMs();
  }
  /** Records `name` now; the first time stands. */
  mark(name: string): void {
    if (!this.#marks.has(name)) this.#marks.set(name, this.elapsedMs);
  }
  get elapsedMs(): number {
    return this.#clock.nowMs() - this.#startMs;
  }
  at(name: string): number | undefined {
    return this.#marks.get(name);
  }
  marks(): Record<string, number> {
    return Object.fromEntries(this.#marks);
  }
}
