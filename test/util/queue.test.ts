import fc from "fast-check";
import { expect, test } from "vitest";
import { Queue } from "../../src/util/queue.ts";

test("everything pushed before close is read, in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer(), { maxLength: 3000 }), async (values) => {
      const queue = new Queue<number>(4000);
      for (const value of values) expect(queue.push(value)).toBe(true);
      queue.close();
      const read: number[] = [];
      for await (const value of queue) read.push(value);
      expect(read).toEqual(values);
    }),
    { numRuns: 30 },
  );
});

test("a full queue refuses, or drops its oldest, as it was made", () => {
  const refusing = new Queue<number>(2);
  expect([1, 2, 3].map((n) => refusing.push(n))).toEqual([true, true, false]);
  const dropping = new Queue<number>(2, "drop-oldest");
  expect([1, 2, 3].map((n) => dropping.push(n))).toEqual([true, true, true]);
  expect(dropping.clear()).toEqual([2, 3]);
});

test("a reader that waits sees a later push, and a failure", async () => {
  const queue = new Queue<number>(2);
  const reader = queue[Symbol.asyncIterator]();
  const next = reader.next();
  queue.push(7);
  expect(await next).toEqual({ value: 7, done: false });
  const broken = reader.next();
  queue.fail(new Error("gone"));
  await expect(broken).rejects.toThrow("gone");
});
