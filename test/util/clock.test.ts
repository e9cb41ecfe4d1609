import { expect, test } from "vitest";
import { ManualClock } from "../../src/util/clock.ts";

test("alarms run at their own time, also those that an alarm sets", () => {
  const clock = new ManualClock();
  const seen: [string, number][] = [];
  clock.schedule(20, () => seen.push(["b", clock.nowMs()]));
  clock.schedule(10, () => {
    seen.push(["a", clock.nowMs()]);
    clock.schedule(5, () => seen.push(["c", clock.nowMs()]));
  });
  const cancel = clock.schedule(12, () => seen.push(["never", 0]));
  cancel();
  clock.advance(100);
  expect(seen).toEqual([
    ["a", 10],
    ["c", 15],
    ["b", 20],
  ]);
  expect(clock.pendingCount).toBe(0);
});
