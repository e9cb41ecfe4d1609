import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ERROR_TABLE } from "../src/errors.ts";

const documented = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));

test("docs/errors.md has exactly the codes of the table, in its order, each with its status, close code and type", () => {
  const table = Object.entries(ERROR_TABLE).map(([code, { httpStatus, wsClose, wireType, message }]) => [
    code,
    `${httpStatus}`,
    wsClose === null ? "–" : `${wsClose}`,
    wireType,
    message,
  ]);
  expect(documented.map(([, ...cells]) => cells.slice(0, 5))).toEqual(table);
});

test("docs/errors.md says for each code what to do", () => {
  for (const [, code, , , , , remedy] of documented) expect(remedy, code).toMatch(/\w{3}/);
});
