import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isIncluded, isRepositoryId } from "../../src/models/repository.ts";
import type { ModelStore } from "../../src/models/store.ts";
import { bytesOf, COMMIT, HubServer } from "./hub-server.ts";
import { Room } from "./room.ts";

const REPOSITORY = "mlx-community/Toy-4bit";
const NEXT_COMMIT = "f".repeat(40);

let hub: HubServer;
let room: Room;
let store: ModelStore;

beforeEach(async () => {
  room = new Room();
  hub = await HubServer.start(REPOSITORY, {
    "config.json": Buffer.from("{}"),
    "model-00001-of-00002.safetensors": bytesOf(50_000),
    "model-00002-of-00002.safetensors": bytesOf(60_000, 2),
    "assets/voice sample #1.wav": bytesOf(2_000, 3),
    "README.md": Buffer.from("read me"),
    // As `.gitkeep` and `__init__.py` often are.
    "assets/empty": Buffer.alloc(0),
  });
  store = room.store([], { hfEndpoint: hub.endpoint });
});

afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  room[Symbol.dispose]();
});

test("a repository becomes a directory with the same paths and bytes", async () => {
  const files = await store.ensureRepository(REPOSITORY);
  expect(files).toMatchObject({ repository: REPOSITORY, commit: COMMIT });
  for (const [path, content] of hub.files) expect(readFileSync(join(files.directory, path))).toEqual(content);
  expect(room.leftovers()).toEqual([]);
  // Somebody else's folder is not taken for a repository.
  mkdirSync(join(room.cacheDir, "repositories/lost+found"));
  expect(await store.repositories()).toEqual([{ repository: REPOSITORY, bytes: 50_000 + 60_000 + 2_000 + 2 + 7 }]);
});

test("what the revision meant stands, without network, until it is asked anew", async () => {
  const first = await store.ensureRepository(REPOSITORY);
  hub.commit = NEXT_COMMIT;
  hub.files.set("config.json", Buffer.from('{"new":true}'));
  hub.seen.length = 0;
  expect(await store.ensureRepository(REPOSITORY)).toEqual(first);
  expect(hub.seen).toEqual([]);

  const second = await store.ensureRepository(REPOSITORY, { refresh: true });
  expect(second.commit).toBe(NEXT_COMMIT);
  expect(readFileSync(join(second.directory, "config.json"), "utf8")).toBe('{"new":true}');
  expect(store.findRepository(REPOSITORY)).toEqual(second);
  expect(store.findRepository(REPOSITORY, { revision: COMMIT })).toEqual(first);
});

test("refreshing what is unchanged asks for the commit and fetches nothing", async () => {
  await store.ensureRepository(REPOSITORY);
  hub.seen.length = 0;
  await store.ensureRepository(REPOSITORY, { refresh: true });
  expect(hub.seen.map(({ path }) => path)).toEqual([`/api/models/${REPOSITORY}/revision/main`]);
});

test("include takes a part, which is not mistaken for the whole", async () => {
  const include = ["*.json", "*-00001-*"];
  const part = await store.ensureRepository(REPOSITORY, { include });
  expect(hub.bodies("model-00001-of-00002.safetensors")).toHaveLength(1);
  expect(hub.bodies("model-00002-of-00002.safetensors")).toHaveLength(0);
  expect(store.findRepository(REPOSITORY)).toBeNull();
  expect(store.findRepository(REPOSITORY, { include })).toEqual(part);
  await expect(store.ensureRepository(REPOSITORY, { include: ["*.gguf"] })).rejects.toMatchObject({
    code: "download_not_found",
  });
});

test("offline, what is cached is given and what is not is download_offline", async () => {
  const offline = room.store([], { hfEndpoint: hub.endpoint, offline: true });
  await expect(offline.ensureRepository(REPOSITORY)).rejects.toMatchObject({ code: "download_offline" });
  const files = await store.ensureRepository(REPOSITORY);
  expect(await offline.ensureRepository(REPOSITORY, { refresh: true })).toEqual(files);
});

test("a pull that failed goes on with the files that are missing", async () => {
  hub.fail("model-00002-of-00002.safetensors", { kind: "status", status: 403 });
  await expect(store.ensureRepository(REPOSITORY)).rejects.toMatchObject({ code: "download_refused" });
  expect(store.findRepository(REPOSITORY)).toBeNull();
  await store.ensureRepository(REPOSITORY);
  expect(hub.bodies("model-00001-of-00002.safetensors")).toHaveLength(1);
});

test("a server that names a path outside of the directory is refused, and nothing is written there", async () => {
  hub.files.set("../../outside.txt", Buffer.from("escaped"));
  await expect(store.ensureRepository(REPOSITORY)).rejects.toMatchObject({
    code: "download_failed",
    message: expect.stringContaining("../../outside.txt"),
  });
  expect(room.files().filter((file) => file.includes("outside"))).toEqual([]);
});

test("removing a repository leaves nothing of it", async () => {
  await store.ensureRepository(REPOSITORY);
  expect(await store.removeRepository(REPOSITORY)).toBe(true);
  expect(await store.removeRepository(REPOSITORY)).toBe(false);
  expect(room.files()).toEqual([]);
});

test("ids are OWNER/NAME and nothing that could be a path", async () => {
  expect(isRepositoryId(REPOSITORY)).toBe(true);
  for (const id of ["toy", "a/b/c", "../b", "a/..", "/b", "a/", "a b/c", "a--b/c", ""]) {
    expect(isRepositoryId(id), id).toBe(false);
  }
  await expect(store.ensureRepository("../../etc")).rejects.toMatchObject({ code: "download_not_found" });
});

test("in a pattern only * is special", () => {
  expect(isIncluded("a/b.json", ["*.json"])).toBe(true);
  expect(isIncluded("a.jsonx", ["*.json"])).toBe(false);
  expect(isIncluded("axjson", ["a.json"])).toBe(false);
  expect(isIncluded("model (1).bin", ["model (1).*"])).toBe(true);
});
