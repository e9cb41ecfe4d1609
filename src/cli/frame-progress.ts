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
      // A pseudo terminal may say that it has no columns at all.
      const columns = this.#output.columns > 1 ? this.#output.columns - 1 : 79;
      this.#output.write(`\r${this.#line(done, total, nowMs, columns).slice(0, columns)}\x1b[K`);
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
  #line(done: number, total: number, nowMs: number, columns: number = Number.POSITIVE_INFINITY): string {
    const share = done / total;
    const perMs = done / Math.max(1, nowMs - this.#startMs);
    const left = done < total ? `  ${formatDuration((total - done) / perMs)} left` : "";
    const speed = `${(perMs * 1000).toFixed(1)} frames/s`;
    const text = `${Math.floor(share * 100)} %  ${done} of ${total} frames  ${speed}${left}`;
    // On a narrow terminal the bar gives way to the words.
    const room = Math.min(BAR_COLUMNS, columns - text.length - "[] ".length);
    if (!this.#output.isTty || room < 1) return text;
    const filled = Math.round(share * room);
    return `[${"#".repeat(filled)}${"-".repeat(room - filled)}] ${text}`;
  }
}
