/** The progress of downloads: a bar for each that runs, redrawn on a terminal; a few plain lines elsewhere. */
import type { ModelProgress } from "../models/progress.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import type { CliOutput } from "./context.ts";
import { formatBytes, formatDuration } from "./terminal.ts";

const REDRAW_MS = 100;
/** Elsewhere than on a terminal, one line per this share of a file. */
const PLAIN_STEP = 0.25;
const BAR_COLUMNS = 16;

interface Download {
  /** Before its bar: the model, or the file of a repository. */
  readonly title: string;
  readonly startMs: number;
  /** Bytes that were there before: they do not count as speed. */
  readonly startBytes: number;
  doneBytes: number;
  totalBytes: number | null;
}

export class ProgressView {
  readonly #output: CliOutput;
  readonly #clock: Clock;
  /** Those that run, the oldest first. */
  readonly #downloads = new Map<string, Download>();
  #drawnRows = 0;
  #drawnMs = Number.NEGATIVE_INFINITY;

  constructor(output: CliOutput, clock: Clock = systemClock) {
    this.#output = output;
    this.#clock = clock;
  }

  /** Takes every event of a pull; pass it as `onProgress`. */
  readonly show = (progress: ModelProgress): void => {
    switch (progress.kind) {
      case "started":
        this.#start(progress);
        break;
      case "bytes":
        this.#advance(labelOf(progress), progress.doneBytes, progress.totalBytes);
        break;
      case "finished":
        this.#finish(labelOf(progress), progress.doneBytes);
        break;
      case "retrying":
        this.line(`${progress.reason}; trying again in ${formatDuration(progress.delayMs)}`);
        break;
      case "source.failed":
        this.#forget(progress.model);
        this.line(`${progress.source} did not give ${progress.model}: ${progress.reason}`);
        break;
      case "waiting":
        this.line(`${progress.model} is in use by ${progress.owner}; waiting for it`);
        break;
      case "preparing":
        break;
    }
  };

  /** A line of its own, above the bars. */
  line(text: string): void {
    this.#clear();
    this.#output.write(`${text}\n`);
    this.#draw();
  }

  /** Leaves the bars as they are, so that what follows starts on a line of its own. */
  close(): void {
    if (this.#drawnRows > 0) this.#output.write("\n");
    this.#drawnRows = 0;
    this.#downloads.clear();
  }

  #start(progress: Extract<ModelProgress, { kind: "started" }>): void {
    const { model, item, doneBytes, totalBytes } = progress;
    const title = model.includes("/") ? item : model;
    const startMs = this.#clock.nowMs();
    const label = labelOf(progress);
    this.#downloads.set(label, { title, startMs, startBytes: doneBytes, doneBytes, totalBytes });
    const size = totalBytes === null ? "" : `, ${formatBytes(totalBytes)}`;
    const from = doneBytes === 0 ? "" : `, going on from ${formatBytes(doneBytes)}`;
    if (this.#output.isTty) this.#redraw();
    else this.#output.write(`${label}${size}${from}\n`);
  }

  #advance(label: string, doneBytes: number, totalBytes: number | null): void {
    const download = this.#downloads.get(label);
    if (download === undefined) return;
    const before = download.doneBytes;
    download.doneBytes = doneBytes;
    download.totalBytes = totalBytes;
    if (this.#output.isTty) {
      if (this.#clock.nowMs() - this.#drawnMs >= REDRAW_MS) this.#redraw();
    } else if (totalBytes !== null) {
      const step = (bytes: number): number => Math.floor(bytes / totalBytes / PLAIN_STEP);
      if (step(doneBytes) > step(before) && doneBytes < totalBytes) {
        this.#output.write(`  ${Math.floor((doneBytes / totalBytes) * 100)} % of ${label}\n`);
      }
    }
  }

  #finish(label: string, doneBytes: number): void {
    const download = this.#downloads.get(label);
    if (download === undefined) return;
    this.#downloads.delete(label);
    const elapsedMs = Math.max(1, this.#clock.nowMs() - download.startMs);
    const speed = `${formatBytes(Math.round(((doneBytes - download.startBytes) * 1000) / elapsedMs))}/s`;
    const done = `${label}: ${formatBytes(doneBytes)} in ${formatDuration(elapsedMs)}, ${speed}`;
    this.line(this.#output.isTty ? done : `  ${done}`);
  }

  /** What a source that failed had begun. */
  #forget(model: string): void {
    for (const label of this.#downloads.keys()) if (label.startsWith(`${model} `)) this.#downloads.delete(label);
  }

  #redraw(): void {
    this.#clear();
    this.#draw();
  }

  /** Takes the bars off the terminal; the cursor is where the first one began. */
  #clear(): void {
    if (this.#drawnRows === 0) return;
    this.#output.write(`\r${this.#drawnRows > 1 ? `\x1b[${this.#drawnRows - 1}A` : ""}\x1b[J`);
    this.#drawnRows = 0;
  }

  #draw(): void {
    if (!this.#output.isTty || this.#downloads.size === 0) return;
    this.#drawnMs = this.#clock.nowMs();
    // A pseudo terminal may say that it has no columns at all.
    const columns = this.#output.columns > 1 ? this.#output.columns : 80;
    const downloads = [...this.#downloads.values()];
    const titleColumns = Math.max(...downloads.map(({ title }) => title.length));
    const rows = downloads.map((download) => row(download, this.#drawnMs, titleColumns, columns - 1));
    this.#output.write(rows.join("\n"));
    this.#drawnRows = rows.length;
  }
}

/** Several models may come out of one package, and a repository has many files: both names tell them apart. */
const labelOf = ({ model, item }: { readonly model: string; readonly item: string }): string => `${model} ${item}`;

/** At most `columns` wide, so that it never wraps: the title gives way first. */
function row(download: Download, nowMs: number, titleColumns: number, columns: number): string {
  const text = progressText(download, nowMs);
  const room = Math.max(8, columns - text.length - 2);
  const title = shortened(download.title, room).padEnd(Math.min(room, titleColumns));
  return `${title}  ${text}`.slice(0, columns);
}

/** Without its beginning: the end tells the files of a repository apart. */
const shortened = (text: string, columns: number): string =>
  text.length <= columns ? text : `…${text.slice(text.length - columns + 1)}`;

/** `[#######---------] 45 %  12.0 MB of 28.0 MB  3.1 MB/s  6 s left`. */
function progressText({ startMs, startBytes, doneBytes, totalBytes }: Download, nowMs: number): string {
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
