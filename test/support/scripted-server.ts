/** A real server on a free port, with sessions that echo: what is under test is everything around the session. */
import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import { type Config, loadConfig } from "../../src/config.ts";
import type { Engine } from "../../src/engines/engine.ts";
import type { RunningSession, SessionRequest } from "../../src/server/reception.ts";
import { createServer, type LoadEngine, type Server } from "../../src/server/server.ts";
import type { Transport } from "../../src/server/transport.ts";
import type { Clock } from "../../src/util/clock.ts";
import { silentLog } from "../../src/util/log.ts";

export const scriptedEngine = (): Engine => ({
  capabilities: {
    turnTaking: "server",
    acceptsText: true,
    acceptsImages: false,
    tools: true,
    inputHz: 16_000,
    outputHz: 24_000,
    sessionsMax: 100,
    models: ["scripted"],
    voices: [],
  },
  open: () => Promise.reject(new Error("the scripted engine opens nothing")),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

/** Says `session.created` with what was asked for, then gives every text back; `flood` asks for that many bytes. */
class EchoSession implements RunningSession {
  readonly transport: Transport;
  readonly #request: SessionRequest;
  #draining = false;
  constructor(transport: Transport, request: SessionRequest) {
    this.transport = transport;
    this.#request = request;
  }
  async run(): Promise<void> {
    this.transport.send(JSON.stringify({ type: "session.created", session: this.#request }));
    for await (const message of this.transport.incoming) {
      if (message.type !== "text") continue;
      const [word, bytes] = message.text.split(" ");
      if (word === "flood") for (let i = 0; i < 64; i++) this.transport.send("x".repeat(Number(bytes) / 64));
      else this.transport.send(message.text);
      if (this.#draining) await this.transport.close(1001, "drained");
    }
  }
  attach(control: Transport): void {
    control.send("attached");
  }
  /** The next message counts as the end of what it was saying. */
  drain(): void {
    this.#draining = true;
  }
  close(code: number, reason: string): void {
    void this.transport.close(code, reason);
  }
}

export interface ScriptedOptions {
  readonly config?: Partial<Config>;
  readonly load?: LoadEngine;
  readonly clock?: Clock;
}

export async function scriptedServer(options: ScriptedOptions = {}): Promise<Server> {
  const config = { ...loadConfig({ env: {}, flags: { port: "0", logLevel: "silent" } }), ...options.config };
  const server = await createServer({
    config,
    load: options.load ?? (() => Promise.resolve(scriptedEngine())),
    sessions: () => ({
      connect: (transport, request) => new EchoSession(transport, request),
      describe: (session) => ({ object: "realtime.session", ...session }),
    }),
    log: silentLog,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  await server.listen();
  return server;
}

/** A client that keeps what it was sent. */
export class Client {
  readonly socket: WebSocket;
  readonly messages: string[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #wake: (() => void) | null = null;
  constructor(url: string, protocols: string[] = [], options: ClientOptions = {}) {
    this.socket = new WebSocket(url.replace(/^http/, "ws"), protocols, options);
    this.socket.on("message", (data) => {
      this.messages.push(data.toString());
      this.#wake?.();
    });
    this.closed = new Promise((resolve) => {
      this.socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    this.socket.on("error", () => {});
  }
  /** The next message, in order. */
  async next(): Promise<string> {
    while (this.messages.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.messages.shift() as string;
  }
  async nextEvent(): Promise<Record<string, unknown>> {
    return JSON.parse(await this.next()) as Record<string, unknown>;
  }
  /** The HTTP status and body of a refused upgrade. */
  async refused(): Promise<{ readonly status: number; readonly body: unknown }> {
    const [, response] = await once(this.socket, "unexpected-response");
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) };
  }
}
