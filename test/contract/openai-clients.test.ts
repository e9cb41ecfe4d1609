/** OpenAI's own clients, used as the README shows, against a server with real models. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import {
  LIVE_SERVER_MS,
  type LiveServer,
  liveServer,
  QUESTIONS,
  questionFile,
  transcribe,
} from "../support/live-server.ts";
import { hasNewestNode, newestClient } from "../support/newest-client.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";
import { type WordErrors, wordErrors } from "../support/word-errors.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "antiphon-contract-"));
let server: LiveServer;
beforeAll(async () => {
  server = await liveServer();
}, LIVE_SERVER_MS);

/** 12 s: what is longer is cut for the recognizer, and hearing minutes of a story again would take some. */
const LONG_BYTES = 12 * 48_000;

/** One session for each recorded question, four at a time: what was understood, and whether the voice says it. */
async function expectTenAnswers(ask: (name: string) => Promise<{ stdout: string; pcm: Buffer }>): Promise<void> {
  const understood: WordErrors[] = [];
  const spoken: WordErrors[] = [];
  const names = Object.keys(QUESTIONS);
  expect(names).toHaveLength(10);
  const asker = async (): Promise<void> => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      const { stdout, pcm } = await ask(name);
      const [, transcript = "", answer = ""] = /^You: (.*)\nAnswer: (.*)/.exec(stdout) ?? [];
      expect(answer, name).not.toBe("");
      understood.push(wordErrors(QUESTIONS[name] ?? "", transcript));
      if (pcm.length < LONG_BYTES) spoken.push(wordErrors(answer, await transcribe(server, pcm)));
    }
  };
  await Promise.all([asker(), asker(), asker(), asker()]);
  expect(spoken.length).toBeGreaterThanOrEqual(5);
  expect(rate(understood)).toBeLessThanOrEqual(0.1);
  // The smallest recognizer hears a synthetic voice say names and rare words: a tenth is its own mistake.
  expect(rate(spoken)).toBeLessThanOrEqual(0.2);
}
const rate = (all: readonly WordErrors[]): number =>
  all.reduce((sum, { errors }) => sum + errors, 0) / all.reduce((sum, { words }) => sum + words, 0);

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

  test("ten questions in voices that are not the server's are understood and answered aloud", async () => {
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: server.caFile,
      OPENAI_BASE_URL: `${server.secureUrl}/v1`,
      OPENAI_API_KEY: "any",
    };
    await expectTenAnswers(async (name) => {
      const answer = join(directory, `${name}.pcm`);
      const options = { cwd: root, env };
      const { stdout } = await run(process.execPath, ["examples/ask.mjs", questionFile(name), answer], options);
      return { stdout, pcm: readFileSync(answer) };
    });
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

  test("ten questions in voices that are not the server's are understood and answered aloud", async () => {
    const env = { ...process.env, ANTIPHON_WS: `${server.url.replace("http", "ws")}/v1` };
    await expectTenAnswers(async (name) => {
      const answer = join(directory, `${name}.wav`);
      const { stdout } = await run(python, ["examples/ask.py", questionFile(name), answer], { cwd: root, env });
      return { stdout, pcm: readFileSync(answer).subarray(44) };
    });
  });
});
