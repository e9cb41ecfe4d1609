import { expect, test } from "vitest";
import { Scope } from "../../src/util/scope.ts";

const disposable = (name: string, log: string[]): AsyncDisposable => ({
  async [Symbol.asyncDispose]() {
    log.push(name);
  },
});

test("a scope ends from the inside out: children, tasks, then resources in reverse", async () => {
  const log: string[] = [];
  const scope = new Scope("session");
  scope.own(disposable("first", log));
  scope.own(disposable("second", log));
  scope.child("response").own(disposable("inner", log));
  scope.spawn("task", async (signal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    log.push("task");
  });
  await scope.cancel("barge-in");
  expect(log.indexOf("inner")).toBeLessThan(log.indexOf("second"));
  expect(log.slice(-2)).toEqual(["second", "first"]);
  expect(log).toContain("task");
});

test("the first reason stands and cancel is idempotent", async () => {
  const scope = new Scope("response");
  const first = scope.cancel("barge-in");
  expect(scope.cancel("client")).toBe(first);
  await first;
  expect(scope.signal.reason).toMatchObject({ reason: "barge-in" });
});

test("a task's error reaches the scope's handler and leaves its siblings alone", async () => {
  const errors: unknown[] = [];
  const scope = new Scope("session", { onTaskError: (error, name) => errors.push([name, error]) });
  scope.spawn("bad", async () => {
    throw new Error("boom");
  });
  await Promise.resolve();
  await scope.cancel("closed");
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatchObject(["bad", { message: "boom" }]);
});
