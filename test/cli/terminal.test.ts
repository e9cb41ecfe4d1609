import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { CliOutput } from "../../src/cli/context.ts";
import { formatBytes, formatDuration, ProgressView, styled, table } from "../../src/cli/terminal.ts";
import type { ModelProgress } from "../../src/models/progress.ts";
import { ManualClock } from "../../src/util/clock.ts";

class Screen implements CliOutput {
  readonly isTty: boolean;
  readonly columns: number;
  text = "";
  constructor(isTty: boolean, columns = 100) {
    this.isTty = isTty;
    this.columns = columns;
  }
  write(text: string): void {
    this.text += text;
  }
  /** What a terminal shows: each line as it was last drawn. */
  get lines(): string[] {
    return this.text.split("\n").map((line) => line.split("\r").at(-1)!.replaceAll("\x1b[K", ""));
  }
}

const MB = 1_000_000;
const about = { model: "toy", item: "weights.onnx" };

function showPull(screen: Screen): void {
  const clock = new ManualClock();
  const view = new ProgressView(screen, clock);
  const show = (progress: ModelProgress): void => view.show(progress);
  show({ kind: "started", ...about, doneBytes: 0, totalBytes: 40 * MB });
  for (let done = 1; done <= 40; done++) {
    clock.advance(50);
    show({ kind: "bytes", ...about, doneBytes: done * MB, totalBytes: 40 * MB });
    if (done === 20) show({ kind: "retrying", ...about, reason: "the connection broke", delayMs: 500 });
  }
  show({ kind: "finished", ...about, doneBytes: 40 * MB });
}

test("a terminal shows one line per file, redrawn, with speed and time left", () => {
  const screen = new Screen(true);
  showPull(screen);
  expect(screen.lines).toEqual([
    "the connection broke; trying again in 1 s",
    "weights.onnx: 40.0 MB in 2 s, 20.0 MB/s",
    "",
  ]);
  expect(screen.text).toContain(
    "weights.onnx  [############------------] 50 %  20.0 MB of 40.0 MB  20.0 MB/s  1 s left",
  );
});

test("a narrow terminal never wraps, and one of unknown width is taken for 80", () => {
  for (const [columns, most] of [
    [30, 29],
    [0, 79],
  ] as const) {
    const screen = new Screen(true, columns);
    showPull(screen);
    const drawn = screen.text.split(/[\r\n]/).filter((line) => line.startsWith("weights"));
    expect(Math.max(...drawn.map((line) => line.replaceAll("\x1b[K", "").length))).toBeLessThanOrEqual(most);
  }
});

test("elsewhere there are a few plain lines", () => {
  const screen = new Screen(false);
  showPull(screen);
  expect(screen.text).toBe(
    "weights.onnx, 40.0 MB\n" +
      "  25 % of weights.onnx\n" +
      "  50 % of weights.onnx\n" +
      "the connection broke; trying again in 1 s\n" +
      "  75 % of weights.onnx\n" +
      "  weights.onnx: 40.0 MB in 2 s, 20.0 MB/s\n",
  );
});

test("what was there before does not count as speed", () => {
  const screen = new Screen(false);
  const clock = new ManualClock();
  const view = new ProgressView(screen, clock);
  view.show({ kind: "started", ...about, doneBytes: 39 * MB, totalBytes: 40 * MB });
  clock.advance(1000);
  view.show({ kind: "finished", ...about, doneBytes: 40 * MB });
  expect(screen.text).toBe("weights.onnx, 40.0 MB, going on from 39.0 MB\n  weights.onnx: 40.0 MB in 1 s, 1.0 MB/s\n");
});

test("sizes and durations as people say them", () => {
  expect([0, 999, 1000, 98_362_432, 999_999, 2_497_000_000].map(formatBytes)).toEqual([
    "0 B",
    "999 B",
    "1.0 kB",
    "98.4 MB",
    "1.0 MB",
    "2.5 GB",
  ]);
  expect([1, 59_999, 61_000, 7_500_000].map(formatDuration)).toEqual(["1 s", "1 min 0 s", "1 min 1 s", "2 h 5 min"]);
});

test("columns line up, with and without colour, and colour needs a terminal that wants it", () => {
  const green = styled(new Screen(true), { color: true }, "green", "here");
  expect(green).toBe("\x1b[32mhere\x1b[39m");
  expect(styled(new Screen(true), { color: false }, "green", "here")).toBe("here");
  expect(styled(new Screen(false), { color: true }, "green", "here")).toBe("here");
  const rows = [
    [green, "a", "x"],
    ["-", "long", ""],
  ];
  expect(stripVTControlCharacters(table(rows))).toBe("here  a     x\n-     long\n");
});
