import { expect, test } from "vitest";
import { FrameProgress } from "../../src/cli/frame-progress.ts";
import { ManualClock } from "../../src/util/clock.ts";

function output(isTty: boolean): { text: string; write(text: string): void; isTty: boolean; columns: number } {
  return {
    text: "",
    write(text) {
      this.text += text;
    },
    isTty,
    columns: 60,
  };
}

test("elsewhere than on a terminal: a line at each quarter, with frames done and time left", () => {
  const [clock, out] = [new ManualClock(), output(false)];
  const progress = new FrameProgress(out, clock);
  for (let done = 1; done <= 8; done++) {
    clock.advance(500);
    progress.show(done, 8);
  }
  progress.close();
  expect(out.text.split("\n")).toEqual([
    "25 %  2 of 8 frames  2.0 frames/s  3 s left",
    "50 %  4 of 8 frames  2.0 frames/s  2 s left",
    "75 %  6 of 8 frames  2.0 frames/s  1 s left",
    "100 %  8 of 8 frames  2.0 frames/s",
    "",
  ]);
});

test("on a terminal: one line, redrawn ten times a second at most, never wider than the terminal, gone at the end", () => {
  const [clock, out] = [new ManualClock(), output(true)];
  const progress = new FrameProgress(out, clock);
  for (let done = 1; done <= 100; done++) {
    clock.advance(10);
    progress.show(done, 100);
  }
  const drawn = out.text.split("\r").slice(1);
  expect(drawn.length).toBeLessThanOrEqual(12);
  expect(drawn[5]).toMatch(/^\[#+-+\] \d+ % {2}\d+ of 100 frames/);
  for (const line of drawn) expect(line.replace("\x1b[K", "").length).toBeLessThan(60);
  expect(out.text).not.toContain("\n");
  progress.close();
  expect(out.text.endsWith("\r\x1b[K")).toBe(true);
});

// On 60 columns the bar pushed the time left, which is what one wants to know, over the edge; a pseudo terminal of no
// columns showed twenty characters.
test("a narrow terminal shortens the bar, not the words", () => {
  const words = "50 %  40 of 80 frames  80.0 frames/s  1 s left";
  for (const [columns, bar] of [
    [60, `[${"#".repeat(5)}${"-".repeat(5)}] `],
    [50, ""],
    [0, `[${"#".repeat(12)}${"-".repeat(12)}] `],
  ] as const) {
    const [clock, out] = [new ManualClock(), { ...output(true), columns }];
    const progress = new FrameProgress(out, clock);
    clock.advance(500);
    progress.show(40, 80);
    expect(out.text).toBe(`\r${bar}${words}\x1b[K`);
  }
});
