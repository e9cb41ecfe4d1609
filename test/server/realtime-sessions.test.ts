/** Server, sessions and dialect together, over an engine that is scripted. */
import { afterEach, describe, expect, test } from "vitest";
import { loadConfig } from "../../src/config.ts";
import { realtimeSessions } from "../../src/server/realtime-sessions.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { silentLog } from "../../src/util/log.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { Client } from "../support/scripted-server.ts";

const servers: Server[] = [];
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.terminate();
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

async function start(flags: Record<string, string> = {}): Promise<Server> {
  const config = loadConfig({ env: {}, flags: { port: "0", logLevel: "silent", ...flags } });
  const log = silentLog;
  const load = () => Promise.resolve(new ScriptedEngine());
  const server = await createServer({ config, log, load, sessions: realtimeSessions({ config, log }) });
  servers.push(server);
  await server.listen();
  await server.ready;
  return server;
}

async function opened(server: Server, path = "/v1/realtime", protocols: string[] = []) {
  const client = new Client(`${server.url}${path}`, protocols);
  clients.push(client);
  return { client, created: (await client.nextEvent())["session"] as Record<string, unknown> };
}

const secret = (server: Server, body: object): Promise<Response> =>
  fetch(`${server.url}/v1/realtime/client_secrets`, { method: "POST", body: JSON.stringify(body) });

describe("how a session begins", () => {
  test("with the server's own instructions and voice, where the client brings none", async () => {
    const server = await start({ instructions: "Be kind.", voice: "amy" });
    const { created } = await opened(server);
    expect(created).toMatchObject({ type: "realtime", instructions: "Be kind.", audio: { output: { voice: "amy" } } });
  });

  // Clients name OpenAI's voices without thought. They got the engine's first voice in place of the operator's own.
  test("with the server's own voice also where the client names one of OpenAI's", async () => {
    const { client } = await opened(await start({ voice: "amy" }));
    const audio = { output: { voice: "alloy" } };
    client.socket.send(JSON.stringify({ type: "session.update", session: { type: "realtime", audio } }));
    await client.nextEvent();
    expect(await client.nextEvent()).toMatchObject({ session: { audio: { output: { voice: "amy" } } } });
  });

  test("not at all, where the server's own voice is not there", async () => {
    await expect(start({ voice: "nobody" })).rejects.toMatchObject({ code: "config_invalid" });
  });

  /**
   * The Agents SDK puts the model into every session.update: its default was refused, and with it the whole configuration.
   * Names that `?model=` took were refused here too.
   */
  test.each(["gpt-realtime-2.1", "gpt-realtime-2025-08-28", "gpt-realtime", "scripted"])(
    "with %s in the update, whatever the address said",
    async (model) => {
      const { client } = await opened(await start());
      await client.nextEvent();
      client.socket.send(JSON.stringify({ type: "session.update", session: { type: "realtime", model } }));
      expect(await client.nextEvent()).toMatchObject({ type: "session.updated", session: { model } });
    },
  );

  test("for transcription alone", async () => {
    const { created } = await opened(await start(), "/v1/realtime?intent=transcription");
    expect(created).toMatchObject({ type: "transcription", object: "realtime.transcription_session" });
  });

  test("under the name that the client asked for", async () => {
    const { created } = await opened(await start(), "/v1/realtime?model=gpt-realtime");
    expect(created).toMatchObject({ model: "gpt-realtime" });
  });

  test("with what a client secret binds it to, which is what its maker was shown", async () => {
    const server = await start();
    const session = {
      type: "realtime",
      instructions: "Only about bicycles.",
      audio: { output: { voice: "amy" }, input: { turn_detection: { type: "server_vad", silence_duration_ms: 800 } } },
    };
    const response = await secret(server, { session });
    expect(response.status).toBe(200);
    const made = (await response.json()) as { value: string; session: Record<string, unknown> };
    const { created } = await opened(server, "/v1/realtime", ["realtime", `openai-insecure-api-key.${made.value}`]);
    expect(created).toMatchObject({ instructions: "Only about bicycles.", audio: { output: { voice: "amy" } } });
    expect({ ...created, id: "" }).toEqual({ ...made.session, id: "" });
  });

  test.each([
    ["an unknown field", { type: "realtime", instrutions: "x" }, "unknown_parameter"],
    ["a field of the wrong kind", { type: "realtime", instructions: 7 }, "invalid_value"],
    ["an unknown kind of session", { type: "video" }, "invalid_value"],
    ["a voice that is not there", { type: "realtime", audio: { output: { voice: "nobody" } } }, "invalid_value"],
  ])("a client secret for %s is refused", async (_name, session, code) => {
    const response = await secret(await start(), { session });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error", code } });
  });

  test("the greatest length of a session is known from its beginning", async () => {
    const { created } = await opened(await start({ sessionMaxMs: "60000" }));
    expect(created["expires_at"]).toEqual(expect.any(Number));
  });
});

test("a client that sends nothing for too long is told so", async () => {
  const { client } = await opened(await start({ idleTimeoutMs: "50" }));
  for (;;) {
    const event = await client.nextEvent();
    if (event["type"] !== "error") continue;
    expect(event["error"]).toMatchObject({ code: "idle_timeout" });
    break;
  }
  expect((await client.closed).code).toBe(1008);
});
