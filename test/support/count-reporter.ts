import type { Reporter, TestModule } from "vitest/node";

/**
 * Prints `N passed, N failed, N skipped` as the last line, for whoever reads only that. A test that passed only when it was
 * tried again is named before it: it counts as passed, and is a fault to be found all the same.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0 };
    const flaky: string[] = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests, and is a failure all the same.
      if (module.state() === "failed" && module.children.size === 0) count.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (test.diagnostic()?.flaky === true) flaky.push(`${module.relativeModuleId}: ${test.fullName}`);
        if (state === "passed") count.passed += 1;
        else if (state === "failed") count.failed += 1;
        else count.skipped += 1;
      }
    }
    process.on("exit", () => {
      for (const name of flaky) process.stdout.write(`passed only when tried again: ${name}\n`);
      process.stdout.write(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
    });
  }
}
