import { expect, test } from "vitest";
import { Pace } from "../../src/server/pace.ts";

test("a model that is faster than the clock is never behind", () => {
  const pace = new Pace(80);
  for (let frame = 0; frame < 100; frame++) expect(pace.frame(79)).toBeNull();
  expect(pace.lagMs).toBe(0);
});
test("one late frame is made up for by quick ones", () => {
  const pace = new Pace(80);
  pace.frame(500);
  expect(pace.lagMs).toBe(420);
  for (let frame = 0; frame < 6; frame++) pace.frame(10);
  expect(pace.lagMs).toBe(0);
});
test("falling a second behind is told once, and again only after it has caught up", () => {
  const pace = new Pace(80);
  const told = [580, 580, 580, 580, 0, 10_000].map((ms) => pace.frame(ms));
  expect(told).toEqual([null, "behind", null, null, null, null]);
  const quick = Array.from({ length: 200 }, () => pace.frame(0)).filter((change) => change !== null);
  expect(quick).toEqual(["caught-up"]);
  expect(pace.frame(1080)).toBe("behind");
});
