import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "../../src/models/lock.ts";
import type { Clock } from "../../src/util/clock.ts";
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
function foreignLock(content: string = JSON.stringify({ token: "theirs", pid: 1, place: "elsewhere pid:[1]" })): void {
  writeFileSync(path, content);
}

/** Goes 10 s further each time that a waiter looks again. */
function fastClock(): Clock {
  let nowMs = 0;
  const schedule: Clock["schedule"] = (delayMs, run) => {
    if (delayMs > 1_000) return () => {};
    nowMs += 10_000;
    const soon = setImmediate(run);
    return () => clearImmediate(soon);
  };
  return { nowMs: () => nowMs, unixSeconds: () => 0, schedule };
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

test("a lock that nobody renews is taken over by exactly one", async () => {
  foreignLock();
  const order: string[] = [];
  const take = (name: string) =>
    withLock(path, { clock: fastClock() }, async () => {
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
  foreignLock("");
  expect(await withLock(path, { clock: fastClock() }, async () => "in")).toBe("in");
});

test("a lock that is renewed is not stale, however old its time says it is", async () => {
  foreignLock();
  const clock = fastClock();
  const abort = new AbortController();
  let polls = 0;
  const renewed: Clock = {
    ...clock,
    schedule(delayMs, run) {
      // An owner whose clock is a day behind renews between any two looks.
      const at = new Date(Date.now() - 86_400_000 + ++polls * 1000);
      utimesSync(path, at, at);
      if (polls === 20) abort.abort(new Error("still held"));
      return clock.schedule(delayMs, run);
    },
  };
  await expect(withLock(path, { clock: renewed, signal: abort.signal }, async () => "in")).rejects.toThrow(
    "still held",
  );
});

test("a fresh lock of another machine is waited for, and waiting can be cancelled", async () => {
  foreignLock();
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
