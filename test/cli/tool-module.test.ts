import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadTools, runTool } from "../../src/cli/tool-module.ts";

function module(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), "antiphon-tools-")), "tools.mjs");
  writeFileSync(file, text);
  return file;
}

const ADD = `export const tools = [{
  name: "add", description: "Adds.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
  run: async ({ a, b }) => ({ sum: a + b }),
}, { name: "fail", run() { throw new Error("out of order"); } }, { name: "say", run: () => "plain words" }];`;

describe("a module of tools", () => {
  test("is loaded and run: results as JSON, text as it is", async () => {
    const tools = await loadTools(module(ADD));
    expect(tools[0]).toMatchObject({ name: "add", description: "Adds." });
    expect(tools[1]?.parameters).toEqual({ type: "object", properties: {} });
    expect(await runTool(tools, "add", '{"a":1,"b":2}')).toBe('{"sum":3}');
    expect(await runTool(tools, "say", "")).toBe("plain words");
  });

  test("what fails becomes words for the model", async () => {
    const tools = await loadTools(module(ADD));
    expect(await runTool(tools, "fail", "{}")).toBe('{"error":"out of order"}');
    expect(await runTool(tools, "gone", "{}")).toBe('{"error":"there is no tool gone"}');
    expect(JSON.parse(await runTool(tools, "add", "{"))).toHaveProperty("error");
  });

  test.each([
    ["that does not exist", "/nowhere/tools.mjs", "cannot be loaded"],
    ["that does not parse", module("export const = 1"), "cannot be loaded"],
    ["without tools", module("export const other = 1"), "Export tools = ["],
    ["with a tool that is no function", module('export default [{ name: "x", run: 1 }]'), "0.run expected a function"],
    ["with an impossible name", module('export default [{ name: "a b", run() {} }]'), "0.name expected"],
  ])("%s is refused", async (_name, file, expected) => {
    await expect(loadTools(file)).rejects.toThrow(expected);
  });
});
