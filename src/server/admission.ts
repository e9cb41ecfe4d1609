/** How many sessions there are, and when there may be no more. */
import { CapacityError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";

/** A session, as far as its beginning and end go. */
export interface Guest {
  /** Takes no new turns; a running response finishes, then the session ends. */
  drain(): void;
  /** Ends the session now. */
  close(code: number, reason: string): void;
}

export class Admission {
  readonly #sessionsMax: () => number;
  readonly #clock: Clock;
  readonly #guests = new Set<Guest>();
  #draining = false;
  #onEmpty: (() => void)[] = [];
  constructor(sessionsMax: () => number, clock: Clock) {
    this.#sessionsMax = sessionsMax;
    this.#clock = clock;
  }
  get sessionCount(): number {
    return this.#guests.size;
  }
  get draining(): boolean {
    return this.#draining;
  }
  /** @throws {CapacityError} session_limit_reached or server_draining, and what `sessionsMax` throws. */
  check(): void {
    if (this.#draining) throw new CapacityError("server_draining", undefined, { retryable: true });
    const sessionsMax = this.#sessionsMax();
    if (this.#guests.size >= sessionsMax) {
      const taken =
        sessionsMax === 1 ? "The one session of this server is" : `All ${sessionsMax} sessions of this server are`;
      throw new CapacityError("session_limit_reached", `${taken} in use; try again later.`, { retryable: true });
    }
  }
  /** Call `check` first. The returned function gives the place back; idempotent. */
  enter(guest: Guest): () => void {
    this.#guests.add(guest);
    return () => {
      this.#guests.delete(guest);
      if (this.#guests.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
    };
  }
  /** No new sessions; those there are get `timeoutMs` to finish what they say. Resolves when all have ended. */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    for (const guest of this.#guests) guest.drain();
    const cancel = this.#clock.schedule(timeoutMs, () => {
      for (const guest of this.#guests) guest.close(1012, "the server is shutting down");
    });
    await this.#empty();
    cancel();
  }
  #empty(): Promise<void> {
    if (this.#guests.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onEmpty.push(resolve));
  }
}
