import { expect, test } from "vitest";
import { GrowingText } from "../../src/cli/growing-text.ts";

function shown(...texts: string[]): string {
  const pieces: string[] = [];
  const text = new GrowingText({ write: (piece) => pieces.push(piece), isTty: false, columns: 80 });
  for (const cumulative of texts) text.show(cumulative);
  text.end();
  return pieces.join("");
}

test("each word is printed once", () => {
  expect(shown("The", "The capital", "The capital is")).toBe("The capital is\n");
});
test("a character in pieces is waited for", () => {
  expect(shown("caf\uFFFD", "café")).toBe("café\n");
});
test("words that are taken back begin a new line", () => {
  expect(shown("I scream", "Ice cream")).toBe("I scream\nIce cream\n");
});
test("a terminal is not obeyed what a model writes", () => {
  expect(shown("a\x1b[2Jb\r")).toBe("a[2Jb\n");
});
test("nothing said is no line", () => {
  expect(shown()).toBe("");
});
