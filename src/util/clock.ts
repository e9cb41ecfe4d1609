/** Wall time as a dependency. Media time is counted in samples and never read from here. */
export interface Clock {
  /** Milliseconds from an arbitrary origin; never goes back. */
  nowMs(): number;
  /** Seconds since 1970, for fields such as `expires_at`. */
  unixSeconds(): number;
  /** Calls `run` once after `delayMs`; the returned function cancels it. */
  schedule(delayMs: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  unixSeconds: () => Math.floor(Date.now() / 1000),
  schedule(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

interface Alarm {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock that moves only when told. Alarms run in order of time, then of creation. */
export class ManualClock implements Clock {
  #nowMs = 0;
  #order = 0;
  #alarms: Alarm[] = [];

  nowMs(): number {
    return this.#nowMs;
  }
  unixSeconds(): number {
    return Math.floor(this.#nowMs / 1000);
  }
  schedule(delayMs: number, run: () => void): () => void {
    const alarm: Alarm = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#alarms.push(alarm);
    return () => {
      this.#alarms = this.#alarms.filter((other) => other !== alarm);
    };
  }
  /** Moves time forward by `byMs`, running each alarm that falls due at its own time. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = this.#alarms
        .filter((alarm) => alarm.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#alarms = this.#alarms.filter((alarm) => alarm !== next);
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = untilMs;
  }
  get pendingCount(): number {
    return this.#alarms.length;
  }
}

export const samplesToMs = (samples: number, hz: number): number => (samples * 1000) / hz;
export const msToSamples = (ms: number, hz: number): number => Math.round((ms * hz) / 1000);
