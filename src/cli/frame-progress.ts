/** The progress of a run that counts frames: a bar that is redrawn on a terminal, a line at each quarter elsewhere. */
import { type Clock, systemClock } from "../util/clock.ts";
import type { CliOutput } from "./context.ts";
import { formatDuration } from "./terminal.ts";

const REDRAW_MS = 100;
const BAR_COLUMNS = 24;
const PLAIN_STEPS = 4;

export class FrameProgress {
  readonly #output: CliOutput;
  readonly #clock: Clock;
  readonly #startMs: number;
  #done = 0;
  #drawnMs = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(output: CliOutput, clock: Clock = systemClock) {
    this.#output = output;
    this.#clock = clock;
    this.#startMs = clock.nowMs();
  }

  show(done: number, total: number): void {
    const before = this.#done;
    this.#done = done;
    const nowMs = this.#clock.nowMs();
    if (this.#output.isTty) {
      if (nowMs - this.#drawnMs < REDRAW_MS && done < total) return;
      this.#drawnMs = nowMs;
      this.#drawn = true;
      this.#output.write(`\r${this.#line(done, total, nowMs).slice(0, Math.max(20, this.#output.columns - 1))}\x1b[K`);
      return;
    }
    const step = (count: number): number => Math.floor((count * PLAIN_STEPS) / total);
    if (step(done) > step(before)) this.#output.write(`${this.#line(done, total, nowMs)}\n`);
  }

  /** Clears the bar: what follows starts on a line of its own. */
  close(): void {
    if (this.#drawn) this.#output.write("\r\x1b[K");
    this.#drawn = false;
  }

  /** `[####----] 45 %  117 of 260 frames  3.1 frames/s  46 s left`. */
  #line(done: number, total: number, nowMs: number): string {
    const share = done / total;
    const filled = Math.round(share * BAR_COLUMNS);
    const perMs = done / Math.max(1, nowMs - this.#startMs);
    const left = done < total ? `  ${formatDuration((total - done) / perMs)} left` : "";
    const bar = this.#output.isTty ? `[${"#".repeat(filled)}${"-".repeat(BAR_COLUMNS - filled)}] ` : "";
    const speed = `${(perMs * 1000).toFixed(1)} frames/s`;
    return `${bar}${Math.floor(share * 100)} %  ${done} of ${total} frames  ${speed}${left}`;
  }
}
