/**
 * A function of the client's, called by the model and its result spoken: through every kind of language model, with the
 * clients that people use. The ears and the voice are real; the services are scripted, the local model is not.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readWav } from "../../src/audio/wav.ts";
import type { Script, ServiceMessage } from "../support/language-service.ts";
import { LIVE_SERVER_MS, LiveClient, type LiveServer, liveServer, questionFile } from "../support/live-server.ts";
import { hasPython, PYTHON_CLIENT_MS, pythonClient } from "../support/python-client.ts";
import { type ServiceServer, serviceServer } from "../support/service-server.ts";

const run = promisify(execFile);
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "antiphon-tools-"));
let interpreter = "";
beforeAll(async () => {
  if (hasPython) interpreter = await pythonClient();
}, PYTHON_CLIENT_MS);

/** Looks the capital up before it answers. */
const native: Script = (messages, body) => {
  const { role, text } = messages.at(-1) as ServiceMessage;
  if (role === "tool") return { text: `It is ${text}.` };
  if (body["tools"] === undefined) return { text: "I have no way to look that up." };
  return { text: "Let me look. ", calls: [{ name: "lookup", arguments: '{"country":"France"}' }] };
};
/** The same from a model that knows functions by its prompt only. */
const prompted: Script = (messages, body) => {
  const { text } = messages.at(-1) as ServiceMessage;
  if (body["tools"] !== undefined) return { text: "What are tools?" };
  if (text.startsWith("Result of lookup:")) return { text: `It is ${text.slice(18)}.` };
  return { text: "Let me look.\n<code>\nlookup(country='France')\n</code>" };
};

const MODULE = join(directory, "tools.mjs");
writeFileSync(
  MODULE,
  `export const tools = [{
    name: "lookup", description: "Looks up the capital of a country.",
    parameters: { type: "object", properties: { country: { type: "string" } }, required: ["country"] },
    run: async ({ country }) => (country === "France" ? "Paris" : "unknown"),
  }];`,
);

const kinds: [name: string, script: Script, flags: Record<string, string>][] = [
  ["chat-completions", native, {}],
  ["responses-api", native, { llm: "responses-api" }],
  ["chat-completions, prompted", prompted, { llmTools: "prompted" }],
];

describe.each(kinds)("%s", (_name, script, flags) => {
  let services: ServiceServer;
  beforeAll(async () => {
    services = await serviceServer(script, flags);
  }, LIVE_SERVER_MS);
  afterAll(async () => {
    await services[Symbol.asyncDispose]();
  });

  test("talk --tools runs the user's own function, and the result is spoken", async () => {
    const answer = join(directory, "answer.wav");
    const url = `${services.server.url.replace("http", "ws")}/v1/realtime`;
    const files = ["--input-file", questionFile("capital"), "--output-file", answer];
    const { stdout } = await run(
      process.execPath,
      ["--import", "tsx", path("../../src/main.ts"), "talk", "--url", url, "--tools", MODULE, ...files],
      { env: { ...process.env, XDG_DATA_HOME: directory, NO_COLOR: "1" }, timeout: 120_000 },
    );
    expect(stdout).toContain("What is the capital of France?");
    expect(stdout).toMatch(/lookup.*France/);
    expect(stdout).toContain("It is Paris.");
    expect(stdout).not.toContain("<code>");
    const { samples, format } = readWav(readFileSync(answer));
    expect(samples.length / format.hz).toBeGreaterThan(1);
  });

  test.skipIf(!hasPython)(
    "Python: openai, the result and the next response in one go",
    async () => {
      expect(await python(services.server.url, "tools")).toMatchObject({
        called: [["lookup", { country: "France" }]],
        text: expect.stringMatching(/It is Paris\.$/),
      });
    },
    300_000,
  );
});

async function python(url: string, scenario: string): Promise<unknown> {
  const { stdout } = await run(interpreter, [path("openai-client.py"), scenario, questionFile("capital")], {
    env: { ...process.env, ANTIPHON_WS: `${url.replace("http", "ws")}/v1` },
    timeout: 120_000,
  });
  return JSON.parse(stdout);
}

describe("the local model", () => {
  let server: LiveServer;
  beforeAll(async () => {
    server = await liveServer();
  }, LIVE_SERVER_MS);

  test("calls the function that it must, by a grammar, and speaks on when it has the result", async () => {
    const parameters = {
      type: "object",
      properties: { country: { type: "string", enum: ["France", "Italy"] } },
      required: ["country"],
    };
    const tool = { type: "function", name: "lookup", description: "Looks up a capital.", parameters };
    const client = await LiveClient.open(server, { tools: [tool], tool_choice: { type: "function", name: "lookup" } });
    try {
      const content = [{ type: "input_text", text: "What is the capital of France?" }];
      client.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
      client.send({ type: "response.create" });
      const call = await client.until("response.function_call_arguments.done");
      expect(call).toMatchObject({ name: "lookup" });
      expect(JSON.parse(String(call["arguments"]))).toEqual({ country: expect.stringMatching(/^(France|Italy)$/) });
      const item = { type: "function_call_output", call_id: call["call_id"], output: "The capital is Paris." };
      client.send({ type: "conversation.item.create", item });
      client.send({ type: "response.create", response: { tool_choice: "none", max_output_tokens: 40 } });
      await client.until("response.output_audio.delta");
      const done = await client.until("response.done");
      const { output } = done["response"] as { output: { type: string; content?: { transcript: string }[] }[] };
      expect(output).toMatchObject([{ type: "message" }]);
      expect(output[0]?.content?.[0]?.transcript).not.toMatch(/lookup|[{<]/);
    } finally {
      client.close();
    }
  });

  test.skipIf(!hasPython)(
    "Python: openai, push to talk",
    async () => {
      expect(await python(server.url, "push-to-talk")).toMatchObject({
        heard: expect.stringMatching(/capital of France/i),
        said: expect.stringContaining("Paris"),
      });
    },
    300_000,
  );

  test.skipIf(!hasPython)(
    "Python: openai, a session of type transcription, word by word",
    async () => {
      const { deltas, transcript, types } = (await python(server.url, "transcription")) as {
        deltas: string[];
        transcript: string;
        types: string[];
      };
      expect(transcript).toMatch(/capital of France/i);
      expect(deltas.length).toBeGreaterThan(0);
      expect(types.filter((type) => type.startsWith("response."))).toEqual([]);
    },
    300_000,
  );
});
