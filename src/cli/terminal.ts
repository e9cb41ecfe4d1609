/** How commands look: sizes, tables, and the progress of downloads on a terminal and elsewhere. */
import { stripVTControlCharacters, styleText } from "node:util";
import type { ModelProgress } from "../models/progress.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import type { CliContext, CliOutput } from "./context.ts";

const REDRAW_MS = 100;
/** Elsewhere than on a terminal, one line per this share of a file. */
const PLAIN_STEP = 0.25;
const BAR_COLUMNS = 24;

export type Style = Parameters<typeof styleText>[0];

/** `text` in a style where the output is a terminal and colour is welcome. */
export function styled(output: CliOutput, context: Pick<CliContext, "color">, style: Style, text: string): string {
  return output.isTty && context.color ? styleText(style, text, { validateStream: false }) : text;
}

/** Decimal units, as disks and downloads are sold: `98.4 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return `${value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${unit}`;
}

/** `45 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Columns as wide as their widest cell, colour not counted. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = (cell: string): number => stripVTControlCharacters(cell).length;
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, width(cell));
  }
  const pad = (cell: string, column: number): string => cell + " ".repeat(widths[column]! - width(cell));
  return rows.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

interface Item {
  readonly item: string;
  readonly startMs: number;
  /** Bytes that were there before: they do not count as speed. */
  readonly startBytes: number;
  doneBytes: number;
  totalBytes: number | null;
  drawnMs: number;
}

/** Shows the progress of pulls: a bar that is redrawn on a terminal, plain lines elsewhere. */
export class ProgressView {
  readonly #output: CliOutput;
  readonly #clock: Clock;
  #current: Item | null = null;

  constructor(output: CliOutput, clock: Clock = systemClock) {
    this.#output = output;
    this.#clock = clock;
  }

  /** Takes every event of a pull; pass it as `onProgress`. */
  readonly show = (progress: ModelProgress): void => {
    switch (progress.kind) {
      case "started":
        this.#start(progress.item, progress.doneBytes, progress.totalBytes);
        break;
      case "bytes":
        this.#advance(progress.doneBytes, progress.totalBytes);
        break;
      case "finished":
        this.#finish(progress.doneBytes);
        break;
      case "retrying":
        this.#line(`${progress.reason}; trying again in ${formatDuration(progress.delayMs)}`);
        break;
      case "source.failed":
        this.#line(`${progress.source} did not give ${progress.model}: ${progress.reason}`);
        break;
      case "waiting":
        this.#line(`${progress.model} is in use by ${progress.owner}; waiting for it`);
        break;
      case "preparing":
        break;
    }
  };

  /** Ends a bar that was left in the middle, so that an error starts on a line of its own. */
  close(): void {
    if (this.#current !== null && this.#output.isTty) this.#output.write("\n");
    this.#current = null;
  }

  #start(item: string, doneBytes: number, totalBytes: number | null): void {
    const nowMs = this.#clock.nowMs();
    this.#current = { item, startMs: nowMs, startBytes: doneBytes, doneBytes, totalBytes, drawnMs: nowMs };
    const size = totalBytes === null ? "" : `, ${formatBytes(totalBytes)}`;
    const from = doneBytes === 0 ? "" : `, going on from ${formatBytes(doneBytes)}`;
    if (this.#output.isTty) this.#draw(this.#current);
    else this.#output.write(`${item}${size}${from}\n`);
  }

  #advance(doneBytes: number, totalBytes: number | null): void {
    const current = this.#current;
    if (current === null) return;
    const before = current.doneBytes;
    current.doneBytes = doneBytes;
    current.totalBytes = totalBytes;
    if (this.#output.isTty) {
      if (this.#clock.nowMs() - current.drawnMs >= REDRAW_MS) this.#draw(current);
    } else if (totalBytes !== null) {
      const step = (bytes: number): number => Math.floor(bytes / totalBytes / PLAIN_STEP);
      if (step(doneBytes) > step(before) && doneBytes < totalBytes) {
        this.#output.write(`  ${Math.floor((doneBytes / totalBytes) * 100)} % of ${current.item}\n`);
      }
    }
  }

  #finish(doneBytes: number): void {
    const current = this.#current;
    if (current === null) return;
    const elapsedMs = Math.max(1, this.#clock.nowMs() - current.startMs);
    const speed = `${formatBytes(Math.round(((doneBytes - current.startBytes) * 1000) / elapsedMs))}/s`;
    const done = `${current.item}: ${formatBytes(doneBytes)} in ${formatDuration(elapsedMs)}, ${speed}`;
    this.#current = null;
    this.#output.write(this.#output.isTty ? `${this.#whole(done)}\n` : `  ${done}\n`);
  }

  /** A message between bars; a bar in progress is drawn again under it. */
  #line(text: string): void {
    this.#output.write(this.#output.isTty && this.#current !== null ? `\r\x1b[K${text}\n` : `${text}\n`);
    if (this.#output.isTty && this.#current !== null) this.#draw(this.#current);
  }

  #draw(current: Item): void {
    current.drawnMs = this.#clock.nowMs();
    this.#output.write(this.#whole(`${current.item}  ${progressText(current, current.drawnMs)}`));
  }

  /** One line that replaces the one before it and never wraps. */
  #whole(text: string): string {
    // A pseudo terminal may say that it has no columns at all.
    const columns = this.#output.columns > 1 ? this.#output.columns : 80;
    return `\r${text.slice(0, columns - 1)}\x1b[K`;
  }
}

/** `[#######-----] 45 %  12.0 of 28.0 MB  3.1 MB/s  6 s left`. */
function progressText({ startMs, startBytes, doneBytes, totalBytes }: Item, nowMs: number): string {
  const elapsedMs = Math.max(1, nowMs - startMs);
  const bytesPerMs = (doneBytes - startBytes) / elapsedMs;
  const speed = bytesPerMs > 0 ? `  ${formatBytes(Math.round(bytesPerMs * 1000))}/s` : "";
  if (totalBytes === null || totalBytes === 0) return `${formatBytes(doneBytes)}${speed}`;
  const share = Math.min(1, doneBytes / totalBytes);
  const filled = Math.round(share * BAR_COLUMNS);
  const bar = `[${"#".repeat(filled)}${"-".repeat(BAR_COLUMNS - filled)}]`;
  const left = bytesPerMs > 0 ? `  ${formatDuration((totalBytes - doneBytes) / bytesPerMs)} left` : "";
  return `${bar} ${Math.floor(share * 100)} %  ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}${speed}${left}`;
}
