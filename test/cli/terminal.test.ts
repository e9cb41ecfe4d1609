import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { formatBytes, formatDuration, styled, table } from "../../src/cli/terminal.ts";

const terminal = { write: () => {}, isTty: true, columns: 80 };

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
  const green = styled(terminal, { color: true }, "green", "here");
  expect(green).toBe("\x1b[32mhere\x1b[39m");
  expect(styled(terminal, { color: false }, "green", "here")).toBe("here");
  expect(styled({ ...terminal, isTty: false }, { color: true }, "green", "here")).toBe("here");
  const rows = [
    [green, "a", "x"],
    ["-", "long", ""],
  ];
  expect(stripVTControlCharacters(table(rows))).toBe("here  a     x\n-     long\n");
});
