/** The checker's question and bounds hold for real ears: what only real models can show. The rest is test/check's. */
import { beforeAll, expect, test } from "vitest";
import { readQuestion } from "../../src/check/question.ts";
import { runSuite, SUITE } from "../../src/check/suite.ts";
import { NetworkTarget } from "../../src/cli/check-target.ts";
import { systemClock } from "../../src/util/clock.ts";
import { LIVE_SERVER_MS, type LiveServer, liveServer } from "../support/live-server.ts";

const HEARD = ["input.start", "input.stop", "input.clock", "input.turn", "input.transcript", "push.commit"];
const OTHERS = ["format.pcmu-in", "format.pcma-out", "response.max-tokens", "talk.interrupted", "tools.named"];

let live: LiveServer;

beforeAll(async () => {
  live = await liveServer();
}, LIVE_SERVER_MS);

test("our server with its models meets what depends on them", async () => {
  const target = new NetworkTarget({ url: live.url, apiKey: null, model: null, ca: null, timeoutMs: 60_000 });
  const chosen = SUITE.filter(({ id }) => HEARD.includes(id) || OTHERS.includes(id));
  const options = { target, question: readQuestion(), clock: systemClock, timeoutMs: 60_000, pace: 0 };
  const unmet: string[] = [];
  for await (const { id, status, expected, came } of runSuite(chosen, options)) {
    if (status !== "passed") unmet.push(`${id} ${status}: ${expected}; ${came}`);
  }
  expect(unmet).toEqual([]);
  expect(chosen).toHaveLength(HEARD.length + OTHERS.length);
});
