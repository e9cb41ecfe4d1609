/** How commands look: colour, sizes, durations, tables. */
import { stripVTControlCharacters, styleText } from "node:util";
import type { CliContext, CliOutput } from "./context.ts";

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
