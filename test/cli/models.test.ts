import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CliContext } from "../../src/cli/context.ts";
import { runModels } from "../../src/cli/models.ts";
import { bytesOf, HubServer } from "../models/hub-server.ts";
import { Room, testModel } from "../models/room.ts";

let room: Room;
let hub: HubServer;
let out: string;
let err: string;

beforeEach(async () => {
  room = new Room();
  hub = await HubServer.start("owner/model", { "weights.onnx": bytesOf(5_000) });
  out = "";
  err = "";
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  room[Symbol.dispose]();
});

function run(...args: string[]): Promise<number> {
  const local = join(room.directory, "local.onnx");
  writeFileSync(local, "local");
  const files = [{ from: local, to: "model.onnx" }];
  const context = {
    stdout: { write: (text: string) => (out += text), isTty: false, columns: 80 },
    stderr: { write: (text: string) => (err += text), isTty: false, columns: 80 },
    color: false,
    signal: new AbortController().signal,
    models: {
      cacheDir: room.cacheDir,
      offline: false,
      hfToken: null,
      hfEndpoint: hub.endpoint,
      clock: room.clock,
      catalog: [testModel("toy-voice", [[{ kind: "file", files }]], { model: "model.onnx" })],
    },
  } as unknown as CliContext;
  return runModels(args, context);
}

test("pull, path, list and rm of a model", async () => {
  expect(await run("path", "toy-voice")).toBe(1);
  expect(err).toBe("toy-voice is not on this machine; run `antiphon models pull toy-voice`\n");
  expect(await run("pull", "toy-voice")).toBe(0);
  out = "";
  expect(await run("path", "toy-voice", "model")).toBe(0);
  expect(readFileSync(out.trim(), "utf8")).toBe("local");
  out = "";
  expect(await run("list", "--json")).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    cacheDir: room.cacheDir,
    models: [{ name: "toy-voice", part: "llm", roles: ["model"], default: false, directory: expect.any(String) }],
    repositories: [],
  });
  out = "";
  expect(await run("list")).toBe(0);
  expect(out).toMatch(/^here {2}toy-voice +llm +1 B +MIT +for tests$/m);
  out = "";
  expect(await run("rm", "toy-voice", "toy-voice")).toBe(0);
  expect(await run("rm", "toy-voice")).toBe(0);
  expect(out).toBe("toy-voice removed\ntoy-voice was not on this machine\n");
  expect(room.files()).toEqual([]);
});

test("a repository of the hub is pulled, found, listed and removed by its id", async () => {
  expect(await run("pull", "owner/model")).toBe(0);
  expect(err).toContain("weights.onnx, 5.0 kB\n");
  out = "";
  await run("path", "owner/model", "weights.onnx");
  expect(readFileSync(out.trim())).toEqual(bytesOf(5_000));
  out = "";
  await run("list");
  expect(out).toMatch(/^here {2}owner\/model +5\.0 kB$/m);
  await run("rm", "owner/model");
  expect(room.files()).toEqual([]);
});

test("what is misspelt is named before anything is pulled, with what was probably meant", async () => {
  await expect(run("pull", "toy-voice", "toy-vioce")).rejects.toMatchObject({
    code: "model_unknown",
    message: "there is no model toy-vioce in the catalog. Did you mean toy-voice?",
  });
  expect(room.files()).toEqual([]);
  await expect(run("lst")).rejects.toMatchObject({ code: "usage", message: expect.stringContaining("list") });
  await expect(run("list", "--jsno")).rejects.toMatchObject({ code: "usage" });
  await expect(run("list", "extra")).rejects.toMatchObject({ code: "usage" });
  await expect(run("pull")).rejects.toMatchObject({ code: "usage" });
  await expect(run("pull", "toy-voice", "--json")).rejects.toMatchObject({ code: "usage" });
});

test("help is printed when asked for, and shown as an error when no command is given", async () => {
  expect(await run("--help")).toBe(0);
  expect(out).toContain("antiphon models pull NAME");
  expect(await run()).toBe(2);
  expect(err).toContain("antiphon models pull NAME");
});
