import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "../../src/models/lock.ts";
import { Room } from "./room.ts";

let room: Room;
let path: string;

beforeEach(() => {
  room = new Room();
  mkdirSync(room.cacheDir);
  path = join(room.cacheDir, "toy.lock");
});
afterEach(() => room[Symbol.dispose]());

/** A lock of a machine that is not this one. */
function foreignLock(ageMs: number): void {
  writeFileSync(path, JSON.stringify({ token: "theirs", pid: 1, place: "elsewhere pid:[1]" }));
  const at = new Date(Date.now() - ageMs);
  utimesSync(path, at, at);
}

test("tasks under one lock never overlap", async () => {
  let inside = 0;
  let most = 0;
  const task = async (): Promise<void> => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setImmediate(resolve));
    inside--;
  };
  await Promise.all(Array.from({ length: 5 }, () => withLock(path, { clock: room.clock }, task)));
  expect(most).toBe(1);
  expect(readdirSync(room.cacheDir)).toEqual([]);
});

test("a lock that has not been renewed is taken over by exactly one", async () => {
  foreignLock(31_000);
  const order: string[] = [];
  const take = (name: string) =>
    withLock(path, { clock: room.clock }, async () => {
      order.push(`${name} in`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} out`);
    });
  await Promise.all(["a", "b", "c"].map(take));
  expect(order).toHaveLength(6);
  for (let i = 0; i < 6; i += 2) expect(order[i + 1]).toBe(order[i]!.replace("in", "out"));
  expect(readdirSync(room.cacheDir)).toEqual([]);
});

test("a lock cut short while it was written goes stale too", async () => {
  writeFileSync(path, "");
  const at = new Date(Date.now() - 31_000);
  utimesSync(path, at, at);
  expect(await withLock(path, { clock: room.clock }, async () => "in")).toBe("in");
});

test("a fresh lock of another machine is waited for, and waiting can be cancelled", async () => {
  foreignLock(0);
  const abort = new AbortController();
  const owners: string[] = [];
  const waiting = withLock(
    path,
    {
      clock: room.clock,
      signal: abort.signal,
      onWait: (owner) => {
        owners.push(owner);
        abort.abort(new Error("enough"));
      },
    },
    async () => "in",
  );
  await expect(waiting).rejects.toThrow("enough");
  expect(owners).toEqual(["pid 1 on elsewhere"]);
  expect(readdirSync(room.cacheDir)).toEqual(["toy.lock"]);
});

test("a failed task releases the lock", async () => {
  const failing = withLock(path, { clock: room.clock }, () => Promise.reject(new Error("task")));
  await expect(failing).rejects.toThrow("task");
  expect(readdirSync(room.cacheDir)).toEqual([]);
});
