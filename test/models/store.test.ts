import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CatalogModel, FileSource, Source } from "../../src/models/model.ts";
import { sha256 } from "./hub-server.ts";
import { Room, testModel } from "./room.ts";

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room[Symbol.dispose]());

/** A model of one local file with this content. */
function toy(content: string, others: readonly Source[] = []): CatalogModel {
  const path = join(room.directory, `${content}.bin`);
  writeFileSync(path, content);
  const local: FileSource = { kind: "file", files: [{ from: path, to: "w", sha256: sha256(Buffer.from(content)) }] };
  return testModel("toy", [[local, ...others]], { model: "w" });
}

test("another source of the same files does not make a new download; other files do", async () => {
  const other: Source = { kind: "https", files: [{ from: "https://elsewhere.example/w", to: "w" }] };
  const first = await room.store([toy("one")]).ensure("toy");
  expect(room.store([toy("one", [other])]).find("toy")?.directory).toBe(first.directory);
  expect(room.store([toy("two")]).find("toy")).toBeNull();
  const second = await room.store([toy("two")]).ensure("toy");
  expect(second.directory).not.toBe(first.directory);
});

test("removing a model removes every version of it, and waits for one that pulls it", async () => {
  await room.store([toy("one")]).ensure("toy");
  await room.store([toy("two")]).ensure("toy");
  const store = room.store([toy("three")]);
  const [, removed] = await Promise.all([store.ensure("toy"), store.remove("toy")]);
  expect(removed).toBe(true);
  await store.remove("toy");
  expect(room.files()).toEqual([]);
});

test("a name that is not in the catalog is told with the nearest, or with all there are", () => {
  const store = room.store([toy("one")]);
  expect(() => store.find("tyo")).toThrow("there is no model tyo in the catalog. Did you mean toy?");
  expect(() => store.find("something-else-entirely")).toThrow("It has toy.");
});
