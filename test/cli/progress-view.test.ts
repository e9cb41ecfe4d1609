import { expect, test } from "vitest";
import type { CliOutput } from "../../src/cli/context.ts";
import { ProgressView } from "../../src/cli/progress-view.ts";
import type { ModelProgress } from "../../src/models/progress.ts";
import { ManualClock } from "../../src/util/clock.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: the control characters of terminals are what it is about
const STEPS = /(\r|\n|\x1b\[\d*[AJ])/;

/** As much of a terminal as the view uses: carriage return, line feed, cursor up, erase to the end. */
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
  /** What a terminal shows. */
  get lines(): string[] {
    let rows = [""];
    let row = 0;
    for (const part of this.text.split(STEPS)) {
      if (part === "\n") rows[++row] ??= "";
      else if (part.endsWith("A") && part.startsWith("\x1b")) row -= Number(part.slice(2, -1));
      else if (part === "\x1b[J") rows = [...rows.slice(0, row), ""];
      else if (part !== "\r") rows[row] += part;
    }
    return rows;
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
    "toy weights.onnx: 40.0 MB in 2 s, 20.0 MB/s",
    "",
  ]);
  expect(screen.text).toContain("toy  [########--------] 50 %  20.0 MB of 40.0 MB  20.0 MB/s  1 s left");
});

test("downloads that run together have a bar each, and their own size and speed at the end", () => {
  // The view once knew one download at a time: the line of the first to end had the name of the last to begin.
  const screen = new Screen(true);
  const clock = new ManualClock();
  const view = new ProgressView(screen, clock);
  const ear = { model: "ear", item: "package 1.0" };
  const voice = { model: "voice", item: "package 1.0" };
  view.show({ kind: "started", ...ear, doneBytes: 0, totalBytes: 10 * MB });
  view.show({ kind: "started", ...voice, doneBytes: 0, totalBytes: 40 * MB });
  clock.advance(1000);
  view.show({ kind: "bytes", ...ear, doneBytes: 5 * MB, totalBytes: 10 * MB });
  view.line("something else to say");
  expect(screen.lines).toEqual([
    "something else to say",
    "ear    [########--------] 50 %  5.0 MB of 10.0 MB  5.0 MB/s  1 s left",
    "voice  [----------------] 0 %  0 B of 40.0 MB",
  ]);
  clock.advance(1000);
  view.show({ kind: "finished", ...ear, doneBytes: 10 * MB });
  view.show({ kind: "bytes", ...voice, doneBytes: 20 * MB, totalBytes: 40 * MB });
  view.close();
  view.line("the end");
  expect(screen.lines).toEqual([
    "something else to say",
    "ear package 1.0: 10.0 MB in 2 s, 5.0 MB/s",
    "voice  [----------------] 0 %  0 B of 40.0 MB",
    "the end",
    "",
  ]);
});

test("what a source had begun that then failed leaves no bar behind", () => {
  const screen = new Screen(true);
  const view = new ProgressView(screen, new ManualClock());
  view.show({ kind: "started", ...about, doneBytes: 0, totalBytes: MB });
  view.show({ kind: "source.failed", model: "toy", source: "hub", reason: "no network" });
  expect(screen.lines).toEqual(["hub did not give toy: no network", ""]);
});

test("a narrow terminal never wraps, and one of unknown width is taken for 80", () => {
  for (const [columns, most] of [
    [30, 29],
    [0, 79],
  ] as const) {
    const screen = new Screen(true, columns);
    showPull(screen);
    const drawn = screen.text.split(/[\r\n]/).filter((line) => line.includes("%"));
    expect(Math.max(...drawn.map((line) => line.replaceAll("\x1b[J", "").length))).toBeLessThanOrEqual(most);
  }
});

test("a file of a repository is shown by the end of its name", () => {
  const screen = new Screen(true, 80);
  const view = new ProgressView(screen, new ManualClock());
  const shard = { model: "someone/some-large-model-8bit", item: "weights/bf16/model-00002-of-00005.safetensors" };
  view.show({ kind: "started", ...shard, doneBytes: 0, totalBytes: 5000 * MB });
  expect(screen.lines).toEqual(["…s/bf16/model-00002-of-00005.safetensors  [----------------] 0 %  0 B of 5.0 GB"]);
});

test("elsewhere there are a few plain lines", () => {
  const screen = new Screen(false);
  showPull(screen);
  expect(screen.text).toBe(
    "toy weights.onnx, 40.0 MB\n" +
      "  25 % of toy weights.onnx\n" +
      "  50 % of toy weights.onnx\n" +
      "the connection broke; trying again in 1 s\n" +
      "  75 % of toy weights.onnx\n" +
      "  toy weights.onnx: 40.0 MB in 2 s, 20.0 MB/s\n",
  );
});

test("what was there before does not count as speed", () => {
  const screen = new Screen(false);
  const clock = new ManualClock();
  const view = new ProgressView(screen, clock);
  view.show({ kind: "started", ...about, doneBytes: 39 * MB, totalBytes: 40 * MB });
  clock.advance(1000);
  view.show({ kind: "finished", ...about, doneBytes: 40 * MB });
  expect(screen.text).toBe(
    "toy weights.onnx, 40.0 MB, going on from 39.0 MB\n  toy weights.onnx: 40.0 MB in 1 s, 1.0 MB/s\n",
  );
});
