import { expect, test } from "vitest";
import { readableLogLine } from "../../src/cli/log-line.ts";
import { createLog } from "../../src/util/log.ts";

test("a log line reads as a sentence with its fields behind it", () => {
  const lines: string[] = [];
  const log = createLog("debug", (line) => void lines.push(readableLogLine(line)));
  log.with({ worker: "tts" }).info({ calls: 3, signal: null }, "worker is back");
  log.warn({}, "no fields");
  log.error({ reason: "it ended" }, "worker ended");
  expect(lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, ""))).toEqual([
    "info: worker is back (worker tts, calls 3)",
    "warning: no fields",
    "error: worker ended (reason it ended)",
  ]);
});
