/** OpenAI's own clients, used as the README shows, against a server with real models. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import { LIVE_SERVER_MS, type LiveServer, liveServer, questionFile, transcribe } from "../support/live-server.ts";
import { hasNewestNode, newestClient } from "../support/newest-client.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "antiphon-contract-"));
let server: LiveServer;
beforeAll(async () => {
  server = await liveServer();
}, LIVE_SERVER_MS);

const CONVERSATION = /^You: What is the capital of France\?\nAnswer: .*Paris/;

describe("JavaScript: openai over wss:, trusting the server's certificate", () => {
  test("asks a question and hears the answer", async () => {
    const answer = join(directory, "answer.pcm");
    const { stdout } = await run(process.execPath, ["examples/ask.mjs", questionFile("capital"), answer], {
      cwd: root,
      env: {
        ...process.env,
        NODE_EXTRA_CA_CERTS: server.caFile,
        OPENAI_BASE_URL: `${server.secureUrl}/v1`,
        OPENAI_API_KEY: "any",
      },
    });
    expect(stdout).toMatch(CONVERSATION);
    expect(await transcribe(server, readFileSync(answer))).toMatch(/capital of Fran/i);
  });

  test("without trust in the certificate the client refuses, and says why", async () => {
    const env = { ...process.env, OPENAI_BASE_URL: `${server.secureUrl}/v1`, OPENAI_API_KEY: "any" };
    const asking = run(process.execPath, ["examples/ask.mjs", questionFile("capital"), join(directory, "none")], {
      cwd: root,
      env,
    });
    await expect(asking).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/certificate/i) });
  });
});

describe.skipIf(!hasNewestNode)("JavaScript: the newest openai, on the Node that it wants", () => {
  let client: Awaited<ReturnType<typeof newestClient>>;
  beforeAll(async () => {
    client = await newestClient();
  });

  test("asks a question and hears the answer", async () => {
    const answer = join(directory, "newest.pcm");
    const { stdout } = await run(client.node, [client.script, questionFile("capital"), answer], {
      env: {
        ...process.env,
        NODE_EXTRA_CA_CERTS: server.caFile,
        OPENAI_BASE_URL: `${server.secureUrl}/v1`,
        OPENAI_API_KEY: "any",
      },
    });
    expect(stdout).toMatch(CONVERSATION);
    expect(readFileSync(answer).length).toBeGreaterThan(24_000);
  });
});

/** Skipped where there is no Python 3 with venv. */
describe.skipIf(!hasPython)("Python: openai over ws:", () => {
  let python: string;
  beforeAll(async () => {
    python = await pythonClient();
  }, PYTHON_CLIENT_MS);

  test("asks a question and hears the answer", async () => {
    const answer = join(directory, "answer.wav");
    const { stdout } = await run(python, ["examples/ask.py", questionFile("capital"), answer], {
      cwd: root,
      env: { ...process.env, ANTIPHON_WS: `${server.url.replace("http", "ws")}/v1` },
    });
    expect(stdout).toMatch(CONVERSATION);
    const { format, samples } = readWav(readFileSync(answer));
    expect(format.hz).toBe(24_000);
    expect(samples.length / format.hz).toBeGreaterThan(0.5);
  });
});
