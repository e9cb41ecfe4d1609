import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Target } from "../../src/check/line.ts";
import { readQuestion } from "../../src/check/question.ts";
import type { Requirement } from "../../src/check/requirement.ts";
import { runSuite, SUITE, type Verdict } from "../../src/check/suite.ts";
import { NetworkTarget } from "../../src/cli/check-target.ts";
import type { Server } from "../../src/server/server.ts";
import { type Clock, systemClock } from "../../src/util/clock.ts";
import { faulty, memoryServer } from "../support/check-targets.ts";
import { conversingServer } from "../support/conversing-server.ts";
import { FAULTS } from "./faults.ts";

const question = readQuestion();
const API_KEY = "right";

let server: Server;

beforeAll(async () => {
  server = await conversingServer({ apiKey: API_KEY });
});
afterAll(() => server[Symbol.asyncDispose]());

interface Tested {
  readonly target: Target;
  readonly clock: Clock;
}

const networkServer = (): Tested => ({
  target: new NetworkTarget({ url: server.url, apiKey: API_KEY, model: null, ca: null, timeoutMs: 20_000 }),
  clock: systemClock,
});

/** These look at HTTP, keys and subprotocols, which the memory transport does not have. */
const ON_NETWORK: readonly string[] = [
  "door.unknown-model",
  "door.subprotocol",
  "door.wrong-key",
  "door.client-secret",
];

async function verdicts({ target, clock }: Tested, requirements: readonly Requirement[]): Promise<Verdict[]> {
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
  it("is met by our server over a WebSocket", async () => {
    // Five seconds of silence pass at once in memory, and not here.
    const quick = SUITE.filter(({ id }) => id !== "input.idle");
    expect(unmet(await verdicts(networkServer(), quick))).toEqual([]);
  });

  it("is met by our sessions over the memory transport", async () => {
    const inMemory = SUITE.filter(({ id }) => !ON_NETWORK.includes(id));
    expect(unmet(await verdicts(memoryServer(), inMemory))).toEqual([]);
  });

  it("has a fault for each requirement, and an id for each", () => {
    const ids = SUITE.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(Object.keys(FAULTS).sort()).toEqual([...ids].sort());
  });

  it.each(SUITE.map(({ id }) => id))("finds a server that breaks %s", async (id) => {
    const { target, clock } = ON_NETWORK.includes(id) ? networkServer() : memoryServer();
    const requirement = SUITE.find((one) => one.id === id) as Requirement;
    const [verdict] = await verdicts({ target: faulty(target, FAULTS[id]!), clock }, [requirement]);
    expect(verdict).toMatchObject({ id, status: "failed" });
    expect(verdict?.came).not.toBe("");
  });

  it("says of a server why a requirement was skipped", async () => {
    const needsKey = SUITE.filter(({ id }) => id === "door.wrong-key");
    const [verdict] = await verdicts(memoryServer(), needsKey);
    expect(verdict).toMatchObject({ status: "skipped", came: expect.stringContaining("--api-key") });
  });
});
