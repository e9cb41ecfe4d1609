import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Target } from "../../src/check/line.ts";
import { readQuestion } from "../../src/check/question.ts";
import type { Requirement } from "../../src/check/requirement.ts";
import { runSuite, SUITE, type Verdict } from "../../src/check/suite.ts";
import { NetworkTarget } from "../../src/cli/check-target.ts";
import type { Server } from "../../src/server/server.ts";
import { systemClock } from "../../src/util/clock.ts";
import { faulty, memoryTarget, quietClock } from "../support/check-targets.ts";
import { conversingServer } from "../support/conversing-server.ts";
import { FAULTS } from "./faults.ts";

const question = readQuestion();
const API_KEY = "right";

let server: Server;

beforeAll(async () => {
  server = await conversingServer({ apiKey: API_KEY });
});
afterAll(() => server[Symbol.asyncDispose]());

const networkTarget = (): Target =>
  new NetworkTarget({ url: server.url, apiKey: API_KEY, model: null, ca: null, timeoutMs: 20_000 });

/** These look at HTTP, keys and subprotocols, which the memory transport does not have. */
const ON_NETWORK: readonly string[] = [
  "door.unknown-model",
  "door.subprotocol",
  "door.wrong-key",
  "door.client-secret",
];

async function verdicts(target: Target, requirements: readonly Requirement[]): Promise<Verdict[]> {
  // On the network a wait that ends is a failure of the test; in memory it costs nothing.
  const clock = target.post === null ? quietClock : systemClock;
  const all: Verdict[] = [];
  for await (const verdict of runSuite(requirements, { target, question, clock, timeoutMs: 20_000, pace: 0 }))
    all.push(verdict);
  return all;
}

const unmet = (all: readonly Verdict[]): string[] =>
  all.flatMap(({ id, status, expected, came }) =>
    status === "passed" ? [] : [`${id} ${status}: ${expected}; ${came}`],
  );

describe("the conformance suite", () => {
  it("is met by our server over a WebSocket, whole", async () => {
    const all = await verdicts(networkTarget(), SUITE);
    expect(unmet(all)).toEqual([]);
    expect(all).toHaveLength(SUITE.length);
  }, 120_000);

  it("is met by our sessions over the memory transport", async () => {
    const inMemory = SUITE.filter(({ id }) => !ON_NETWORK.includes(id));
    expect(unmet(await verdicts(memoryTarget(), inMemory))).toEqual([]);
  }, 120_000);

  it("has a fault for each requirement, and an id for each", () => {
    const ids = SUITE.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(Object.keys(FAULTS).sort()).toEqual([...ids].sort());
  });

  it.each(SUITE.map(({ id }) => id))("finds a server that breaks %s", async (id) => {
    const target = ON_NETWORK.includes(id) ? networkTarget() : memoryTarget();
    const requirement = SUITE.find((one) => one.id === id) as Requirement;
    const [verdict] = await verdicts(faulty(target, FAULTS[id]!), [requirement]);
    expect(verdict).toMatchObject({ id, status: "failed" });
    expect(verdict?.came).not.toBe("");
  });

  it("says of a server why a requirement was skipped", async () => {
    const needsKey = SUITE.filter(({ id }) => id === "door.wrong-key");
    const [verdict] = await verdicts(memoryTarget(), needsKey);
    expect(verdict).toMatchObject({ status: "skipped", came: expect.stringContaining("--api-key") });
  });
});
