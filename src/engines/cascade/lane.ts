/** A queue in front of a model that does one thing at a time: urgent work first, otherwise first come, first served. */
import { EngineError, type EngineStage } from "../../errors.ts";

interface Waiter {
  readonly urgent: boolean;
  readonly start: () => void;
}

export class Lane {
  readonly #stage: EngineStage;
  readonly #waitersMax: number;
  readonly #concurrent: number;
  #running = 0;
  #waiters: Waiter[] = [];

  /** @param concurrent how many tasks run at once */
  constructor(stage: EngineStage, concurrent = 1, waitersMax = 1_024) {
    this.#stage = stage;
    this.#concurrent = concurrent;
    this.#waitersMax = waitersMax;
  }
  get waiting(): number {
    return this.#waiters.length;
  }
  /** Runs `task` when its turn has come. @throws the signal's reason, if it aborts before. */
  async run<T>(urgent: boolean, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    if (this.#running >= this.#concurrent) await this.#wait(urgent, signal);
    else this.#running += 1;
    try {
      signal?.throwIfAborted();
      return await task();
    } finally {
      this.#next();
    }
  }
  #wait(urgent: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiters.length >= this.#waitersMax) {
      throw new EngineError(this.#stage, `${this.#waitersMax} tasks wait already; try again later`, {
        retryable: true,
      });
    }
    return new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        urgent,
        start: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiters.push(waiter);
    });
  }
  /** Hands the free place on without giving it up in between. */
  #next(): void {
    const index = Math.max(
      0,
      this.#waiters.findIndex((waiter) => waiter.urgent),
    );
    const [waiter] = this.#waiters.splice(index, 1);
    if (waiter === undefined) this.#running -= 1;
    else waiter.start();
  }
}
