import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SUITE } from "../../src/check/suite.ts";
import { CHECK_OPTIONS, runCheck } from "../../src/cli/check.ts";
import type { CliContext } from "../../src/cli/context.ts";
import type { Server } from "../../src/server/server.ts";
import { flagOf } from "../../src/util/options.ts";
import { conversingServer } from "../support/conversing-server.ts";
import { duplexEngine } from "../support/duplex-engine.ts";
import { scriptedServer } from "../support/scripted-server.ts";
import { voiceChatServer } from "../support/voicechat-server.ts";

let server: Server;
let out: string;

beforeAll(async () => {
  server = await conversingServer({ apiKey: "right" });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  out = "";
});

let interruption: AbortController;

function run(...args: string[]): Promise<number> {
  interruption = new AbortController();
  const context = {
    stdout: { write: (text: string) => (out += text), isTty: false, columns: 80 },
    stderr: { write: () => {}, isTty: false, columns: 80 },
    color: false,
    signal: interruption.signal,
  } as unknown as CliContext;
  return runCheck(args, context);
}

describe("antiphon check", () => {
  it("prints a line a requirement and a summary, and ends with 0 when all is met", async () => {
    const status = await run(server.url, "--api-key", "right", "--only", "session,error.json", "--pace", "0");
    expect(status).toBe(0);
    const chosen = SUITE.filter(({ id }) => id.startsWith("session.") || id === "error.json");
    const lines = out.trimEnd().split("\n");
    for (const [index, { id, title }] of chosen.entries()) {
      expect(lines[index]).toMatch(/^passed {2}(MUST|SHOULD) /);
      expect(lines[index]).toContain(id);
      expect(lines[index]).toContain(`${title}; came `);
    }
    expect(lines.at(-1)).toBe(
      `${chosen.length} requirements: ${chosen.length} passed, 0 MUST failed, 0 SHOULD failed, 0 skipped.`,
    );
  });

  it("does not grade a VoiceChat server, requirement by requirement, by rules that are not its own", async () => {
    await using other = await voiceChatServer({ load: async () => duplexEngine() });
    await expect(run(other.url, "--pace", "0")).rejects.toThrow("came one of a VoiceChat model");
    expect(out).toBe("");
  });

  it("prints the verdicts as JSON", async () => {
    expect(await run(server.url, "--api-key", "right", "--only", "door.*", "--json", "--pace", "0")).toBe(0);
    const report = JSON.parse(out) as { readonly summary: object; readonly requirements: readonly object[] };
    const total = SUITE.filter(({ id }) => id.startsWith("door.")).length;
    expect(report.summary).toEqual({ total, passed: total, failedMust: 0, failedShould: 0, skipped: 0 });
    expect(report.requirements[0]).toMatchObject({
      id: "door.unknown-model",
      level: "MUST",
      status: "passed",
      expected: expect.any(String),
      came: expect.any(String),
    });
  });

  it("says of a server that does little what was expected and what came, and ends with 1", async () => {
    await using echo = await scriptedServer();
    await echo.ready;
    expect(await run(echo.url, "--only", "session.created,error.json", "--timeout-ms", "100")).toBe(1);
    expect(out).toContain("failed  MUST   session.created");
    expect(out).toContain("; expected the whole effective configuration; came one without id, ");
    expect(out).toContain("2 requirements: 0 passed, 2 MUST failed, 0 SHOULD failed, 0 skipped.");
  });

  it("counts a SHOULD only when it is told to be strict", async () => {
    await using echo = await scriptedServer();
    await echo.ready;
    const args = [echo.url, "--only", "session.default-vad"];
    expect(await run(...args)).toBe(0);
    expect(await run(...args, "--strict")).toBe(1);
  });

  it("ends at once when it is interrupted, without a verdict on what it broke off", async () => {
    const running = run(server.url, "--api-key", "right", "--only", "session.created,input.idle,error.json");
    // The first verdict is out; the second takes five seconds.
    while (!out.includes("session.created")) await new Promise(setImmediate);
    interruption.abort();
    await expect(running).rejects.toThrow(/interrupted/);
    expect(out).not.toContain("input.idle");
  });

  it("lists the requirements without a server", async () => {
    expect(await run("--list")).toBe(0);
    expect(out.trimEnd().split("\n")).toHaveLength(SUITE.length);
    out = "";
    expect(await run("--list", "--json", "--only", "push.empty")).toBe(0);
    expect(JSON.parse(out)).toMatchObject([{ id: "push.empty", level: "MUST" }]);
  });

  it("says what to do where it cannot begin", async () => {
    await expect(run()).rejects.toThrow(/address of one server/);
    await expect(run("voice.example")).rejects.toThrow(/begins with ws:/);
    await expect(run(server.url)).rejects.toThrow(/--api-key/);
    await expect(run(server.url, "--api-key", "right", "--model", "none")).rejects.toThrow(
      /no session.*model_not_found/,
    );
    await expect(run("ws://127.0.0.1:1")).rejects.toThrow(/ECONNREFUSED/);
    await expect(run(server.url, "--only", "sessions.*")).rejects.toThrow(/--list/);
  });

  it("is described as it is", () => {
    const text = readFileSync(new URL("../../docs/check.md", import.meta.url), "utf8");
    const rows = [...text.matchAll(/^\| `([\w.-]+)` \| (MUST|SHOULD) \| (.*) \|$/gm)].map((match) => match.slice(1, 4));
    expect(rows).toEqual(SUITE.map(({ id, level, title }) => [id, level, title]));
    for (const key of Object.keys(CHECK_OPTIONS)) if (key !== "help") expect(text).toContain(`--${flagOf(key)}`);
  });
});
