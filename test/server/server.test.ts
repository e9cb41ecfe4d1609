import { once } from "node:events";
import { Agent, request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engines/engine.ts";
import { AppError } from "../../src/errors.ts";
import type { Server } from "../../src/server/server.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { Client, type ScriptedOptions, scriptedEngine, scriptedServer } from "../support/scripted-server.ts";

const servers: Server[] = [];
const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.terminate();
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

async function start(options: ScriptedOptions = {}): Promise<Server> {
  const server = await scriptedServer(options);
  servers.push(server);
  if (options.load === undefined) await server.ready;
  return server;
}

function connect(server: Server, path = "/v1/realtime", ...rest: [string[]?, object?]): Client {
  const client = new Client(`${server.url}${path}`, ...rest);
  clients.push(client);
  return client;
}

const bearer = (key: string): object => ({ headers: { Authorization: `Bearer ${key}` } });
const errorOf = (event: Record<string, unknown>): Record<string, unknown> => event["error"] as Record<string, unknown>;

describe("readiness", () => {
  test("503 with what is loading, and sessions refused with 1013, until every stage has warmed", async () => {
    let finish: (engine: Engine) => void = () => {};
    const server = await start({
      load: (report) => {
        report(["stt moonshine", "tts piper"]);
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
    });
    const health = await fetch(`${server.url}/health`);
    expect(health.status).toBe(503);
    expect(await health.json()).toEqual({ status: "loading", waiting_for: ["stt moonshine", "tts piper"] });
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(503);

    const early = connect(server);
    expect(errorOf(await early.nextEvent())).toMatchObject({ code: "server_loading", type: "server_error" });
    expect((await early.closed).code).toBe(1013);

    finish(scriptedEngine());
    await server.ready;
    expect(await (await fetch(`${server.url}/health`)).json()).toEqual({ status: "ok", sessions: 0 });
    expect((await connect(server).nextEvent())["type"]).toBe("session.created");
  });

  test("an engine that fails to load is a failure that everybody can see", async () => {
    const server = await start({ load: () => Promise.reject(new AppError("download_offline")) });
    await expect(server.ready).rejects.toThrow(AppError);
    const health = await fetch(`${server.url}/health`);
    expect(health.status).toBe(503);
    expect(await health.json()).toEqual({ status: "failed", code: "download_offline" });
  });
});

describe("addresses", () => {
  test("404, 405 and 501 in OpenAI's shape", async () => {
    const server = await start();
    const missing = await fetch(`${server.url}/v1/nothing`);
    expect(missing.status).toBe(404);
    expect(await missing.json()).toEqual({
      error: {
        type: "invalid_request_error",
        code: "not_found",
        message: "There is nothing at GET /v1/nothing.",
        param: null,
      },
    });
    const method = await fetch(`${server.url}/v1/models`, { method: "DELETE" });
    expect([method.status, method.headers.get("Allow")]).toEqual([405, "GET"]);
    const absent = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: "{}" });
    expect(absent.status).toBe(501);
    expect(errorOf((await absent.json()) as Record<string, unknown>)["message"]).toContain("/v1/realtime");
  });

  test("models: the engine's and their aliases, each by its id", async () => {
    const server = await start({ config: { modelAliases: ["gpt-realtime"] } });
    const list = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(["scripted", "gpt-realtime"]);
    expect((await fetch(`${server.url}/v1/models/scripted`)).status).toBe(200);
    expect((await fetch(`${server.url}/v1/models/other`)).status).toBe(404);
  });

  test("a port that is taken is named, with what to do", async () => {
    const first = await start();
    const port = Number(new URL(first.url).port);
    await expect(scriptedServer({ config: { port } })).rejects.toMatchObject({
      code: "address_in_use",
      message: expect.stringContaining(`127.0.0.1:${port} is in use`),
    });
  });

  test("a body that is too large is refused", async () => {
    const server = await start();
    const body = JSON.stringify({ session: { instructions: "x".repeat(1_100_000) } });
    const response = await fetch(`${server.url}/v1/realtime/client_secrets`, { method: "POST", body });
    expect(response.status).toBe(413);
  });

  // Half a second after the refusal the connection was closed, under whatever request was then on it.
  test.each([true, false])(
    "a connection goes on after a body that is too large (length declared: %s)",
    async (declared) => {
      const server = await start();
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ask = (method: string, path: string, body: Buffer): Promise<number> =>
        new Promise((resolve, reject) => {
          const headers = declared ? { "Content-Length": body.length } : {};
          const asked = request(`${server.url}${path}`, { agent, method, headers }, (response) => {
            ports.add(asked.socket?.localPort);
            response.resume().once("end", () => resolve(response.statusCode!));
          });
          asked.on("error", reject);
          if (!declared && body.length > 0) asked.write(body.subarray(0, 1000));
          asked.end(declared ? body : body.subarray(1000));
        });
      const ports = new Set<number | undefined>();
      expect(await ask("POST", "/v1/realtime/client_secrets", Buffer.alloc(2_000_000, "x"))).toBe(413);
      const untilMs = performance.now() + 800;
      while (performance.now() < untilMs) expect(await ask("GET", "/v1/models", Buffer.alloc(0))).toBe(200);
      expect(ports.size).toBe(1);
      agent.destroy();
    },
  );
});

describe("sessions", () => {
  test("any served model, any type; the unknown one is refused with the list", async () => {
    const server = await start({ config: { modelAliases: ["gpt-realtime"] } });
    const asked = async (query: string): Promise<unknown> =>
      (await connect(server, `/v1/realtime${query}`).nextEvent())["session"];
    expect(await asked("")).toEqual({ type: "realtime", model: "scripted", session: null });
    expect(await asked("?model=gpt-realtime")).toMatchObject({ type: "realtime", model: "gpt-realtime" });
    expect(await asked("?intent=transcription&model=scripted")).toMatchObject({ type: "transcription" });

    const unknown = connect(server, "/v1/realtime?model=gpt-9");
    const error = errorOf(await unknown.nextEvent());
    expect(error).toMatchObject({ code: "model_not_found", param: "model" });
    expect(error["message"]).toContain("served are: scripted, gpt-realtime");
    expect((await unknown.closed).code).toBe(1008);
    const intent = connect(server, "/v1/realtime?intent=singing");
    expect(errorOf(await intent.nextEvent())).toMatchObject({ code: "invalid_session_type", param: "intent" });
  });

  test("one too many: an error event, then 1008; a place that is left is free again", async () => {
    const server = await start({ config: { maxSessions: 1 } });
    const first = connect(server);
    await first.next();
    const second = connect(server);
    expect(errorOf(await second.nextEvent())).toMatchObject({
      code: "session_limit_reached",
      type: "rate_limit_error",
    });
    expect(await second.closed).toEqual({ code: 1008, reason: "session_limit_reached" });
    first.socket.close();
    await first.closed;
    expect((await connect(server).nextEvent())["type"]).toBe("session.created");
  });

  test("drain: no new sessions, those there are finish, then all is empty", async () => {
    const server = await start();
    const client = connect(server);
    await client.next();
    const drained = server.drain();
    expect(await (await fetch(`${server.url}/health`)).json()).toEqual({ status: "draining", sessions: 1 });
    const late = connect(server);
    expect(errorOf(await late.nextEvent())).toMatchObject({ code: "server_draining" });
    client.socket.send("last words");
    expect(await client.next()).toBe("last words");
    expect((await client.closed).code).toBe(1001);
    await drained;
  });

  test("drain: who does not finish in time is cut off with 1012", async () => {
    const clock = new ManualClock();
    const server = await start({ clock, config: { drainTimeoutMs: 5000 } });
    const client = connect(server);
    await client.next();
    const drained = server.drain();
    clock.advance(5000);
    expect((await client.closed).code).toBe(1012);
    await drained;
  });

  test("what is no call cannot be attached to", async () => {
    const client = connect(await start(), "/v1/realtime?call_id=rtc_1");
    expect(errorOf(await client.nextEvent())).toMatchObject({ code: "not_found" });
    expect((await client.closed).code).toBe(1008);
  });

  test("another path has no WebSocket", async () => {
    expect(await connect(await start(), "/v1/other").refused()).toMatchObject({ status: 404 });
    // What is no path at all was called a failure of the server, with 500.
    expect(await connect(await start(), "//").refused()).toMatchObject({ status: 404 });
  });
});

describe("access", () => {
  const config = { apiKey: "right" };

  test("Bearer: 401 in OpenAI's shape without the key", async () => {
    const server = await start({ config });
    for (const headers of [{}, { Authorization: "Bearer wrong" }, { Authorization: "Basic right" }]) {
      const response = await fetch(`${server.url}/v1/models`, { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("WWW-Authenticate")).toBe("Bearer");
    }
    expect((await fetch(`${server.url}/v1/models`, bearer("right"))).status).toBe(200);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    const refused = await connect(server).refused();
    expect(refused).toMatchObject({ status: 401, body: { error: { code: "invalid_api_key" } } });
    expect((await connect(server, undefined, [], bearer("right")).nextEvent())["type"]).toBe("session.created");
  });

  test("browsers: the key as a subprotocol, the refusal as an event that a page can read", async () => {
    const server = await start({ config });
    const right = connect(server, undefined, ["realtime", "openai-insecure-api-key.right"]);
    expect((await right.nextEvent())["type"]).toBe("session.created");
    expect(right.socket.protocol).toBe("realtime");
    const wrong = connect(server, undefined, ["realtime", "openai-insecure-api-key.wrong"]);
    expect(errorOf(await wrong.nextEvent())).toMatchObject({ code: "invalid_api_key" });
    expect((await wrong.closed).code).toBe(1008);
  });

  test("without a configured key any key will do", async () => {
    expect((await connect(await start(), undefined, [], bearer("anything")).nextEvent())["type"]).toBe(
      "session.created",
    );
  });

  test("a client secret opens the session that it is bound to, until it expires", async () => {
    const clock = new ManualClock();
    const server = await start({ config, clock });
    const session = { type: "transcription", audio: { input: { format: { type: "audio/pcmu" } } } };
    const create = (body: object, key = "right"): Promise<Response> =>
      fetch(`${server.url}/v1/realtime/client_secrets`, {
        method: "POST",
        body: JSON.stringify(body),
        ...bearer(key),
      });
    const response = await create({ session, expires_after: { anchor: "created_at", seconds: 60 } });
    expect(response.status).toBe(200);
    const secret = (await response.json()) as { value: string; expires_at: number; session: object };
    expect(secret).toMatchObject({ expires_at: 60, session: { object: "realtime.session", ...session } });
    expect(secret.value).toMatch(/^ek_\w/);

    const opened = connect(server, undefined, ["realtime", `openai-insecure-api-key.${secret.value}`]);
    expect((await opened.nextEvent())["session"]).toEqual({ type: "transcription", model: "scripted", session });
    expect((await create({}, secret.value)).status).toBe(401);

    clock.advance(60_000);
    const late = connect(server, undefined, ["realtime", `openai-insecure-api-key.${secret.value}`]);
    expect(errorOf(await late.nextEvent())).toMatchObject({ code: "invalid_api_key" });
  });

  test.each([
    ["not JSON", "{", "invalid_json", null],
    ["too short a life", '{"expires_after":{"seconds":1}}', "invalid_value", "expires_after.seconds"],
    ["an unknown field", '{"sesion":{}}', "unknown_parameter", "sesion"],
    ["an unknown model", '{"session":{"type":"realtime","model":"gpt-9"}}', "model_not_found", "model"],
  ])("client secrets: %s", async (_name, body, code, param) => {
    const server = await start();
    const response = await fetch(`${server.url}/v1/realtime/client_secrets`, { method: "POST", body });
    expect(await response.json()).toMatchObject({ error: { code, param } });
  });
});

describe("pages", () => {
  const page = (origin: string): object => ({ headers: { Origin: origin } });

  test("the server's own page may, a foreign one may not, a listed one may", async () => {
    const server = await start({ config: { corsOrigins: ["https://app.example"] } });
    expect((await connect(server, undefined, [], page(server.url)).nextEvent())["type"]).toBe("session.created");
    expect((await connect(server, undefined, [], page("https://app.example")).nextEvent())["type"]).toBe(
      "session.created",
    );
    const foreign = await connect(server, undefined, [], page("https://evil.example")).refused();
    expect(foreign).toMatchObject({ status: 403, body: { error: { code: "origin_not_allowed" } } });
    const lookalike = await connect(server, undefined, [], page(`${server.url}.evil.example`)).refused();
    expect(lookalike.status).toBe(403);
  });

  // It was taken, and then no page was let in: browsers send the scheme, too.
  test.each(["app.example", "not an origin", "https://"])(
    "%s is no origin: the server does not start",
    async (origin) => {
      await expect(start({ config: { corsOrigins: [origin] } })).rejects.toMatchObject({
        code: "config_invalid",
        message: expect.stringContaining("--cors-origins"),
      });
    },
  );
  test("CORS: preflight and answer name the origin, for a listed one only", async () => {
    const server = await start({ config: { corsOrigins: ["https://app.example"], apiKey: "right" } });
    const preflight = await fetch(`${server.url}/v1/realtime/client_secrets`, {
      method: "OPTIONS",
      headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("Access-Control-Allow-Origin")).toBe("https://app.example");
    expect(preflight.headers.get("Access-Control-Allow-Headers")).toContain("Authorization");
    const foreign = await fetch(`${server.url}/v1/models`, { headers: { Origin: "https://evil.example" } });
    expect(foreign.status).toBe(403);
    expect(foreign.headers.get("Access-Control-Allow-Origin")).toBeNull();
  });
});

describe("limits", () => {
  test("a message that is too large ends its own session alone, with 1009", async () => {
    const server = await start({ config: { messageBytesMax: 4096 } });
    const [big, other] = [connect(server), connect(server)];
    await Promise.all([big.next(), other.next()]);
    big.socket.send("x".repeat(5000));
    expect((await big.closed).code).toBe(1009);
    other.socket.send("still here");
    expect(await other.next()).toBe("still here");
  });

  test("JSON in a binary frame is the same JSON", async () => {
    const client = connect(await start());
    await client.next();
    client.socket.send(Buffer.from("as bytes"));
    expect(await client.next()).toBe("as bytes");
  });

  test("ten thousand messages at once are all read, in order", async () => {
    const client = connect(await start());
    await client.next();
    for (let i = 0; i < 10_000; i++) client.socket.send(`m${i}`);
    for (let i = 0; i < 10_000; i++) expect(await client.next()).toBe(`m${i}`);
  });

  test("a peer that answers no ping is gone", async () => {
    const clock = new ManualClock();
    const server = await start({ clock, config: { pingMs: 1000, idleTimeoutMs: 0 } });
    const client = new Client(`${server.url}/v1/realtime`, [], { autoPong: false });
    clients.push(client);
    await client.next();
    const pinged = once(client.socket, "ping");
    clock.advance(3000);
    await pinged;
    expect((await client.closed).code).toBe(1006);
  });
});

test("what happened is counted for Prometheus and for /v1/usage", async () => {
  const server = await start({ config: { maxSessions: 1 } });
  const client = connect(server);
  await client.next();
  await connect(server).closed;
  server.metrics.turn({ transcript: 120, first_token: 200, first_audio: 310 });
  server.metrics.response("completed", { input: 20, output: 7 });
  server.metrics.audio("output", 1.5);
  const text = await (await fetch(`${server.url}/metrics`)).text();
  expect(text).toContain("antiphon_sessions_open 1");
  expect(text).toContain('antiphon_sessions_total{transport="websocket"} 1');
  expect(text).toContain('antiphon_errors_total{code="session_limit_reached"} 1');
  expect(text).toContain('antiphon_turn_latency_seconds_bucket{le="0.3",stage="first_audio"} 0');
  expect(text).toContain('antiphon_turn_latency_seconds_bucket{le="0.35",stage="first_audio"} 1');
  expect(await (await fetch(`${server.url}/v1/usage`)).json()).toMatchObject({
    sessions_open: 1,
    sessions: 1,
    turns: 1,
    responses: { completed: 1, failed: 0 },
    input_tokens: 20,
    output_tokens: 7,
    output_audio_seconds: 1.5,
  });
});
