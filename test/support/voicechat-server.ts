/** A whole server with a tiny VoiceChat checkpoint, and a peer that speaks its dialect over a real socket. */
import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import { floatToPcm16 } from "../../src/audio/pcm.ts";
import { loadConfig } from "../../src/config.ts";
import { engineLoader } from "../../src/server/load-engine.ts";
import { createServer, type LoadEngine, type Server } from "../../src/server/server.ts";
import { type VoiceChatSessionsOptions, voiceChatSessions } from "../../src/server/voicechat-sessions.ts";
import { silentLog } from "../../src/util/log.ts";
import { checkpointDirectory } from "./voicechat.ts";

const MODEL = checkpointDirectory("tiny-f32");

export interface ServerOptions extends Partial<VoiceChatSessionsOptions> {
  readonly flags?: Readonly<Record<string, string>>;
  /** The checkpoint of `flags.model` by default. */
  readonly load?: LoadEngine;
}

/** On a port of its own. */
export async function voiceChatServer(options: ServerOptions = {}): Promise<Server> {
  const { flags = {}, load, ...sessions } = options;
  const config = loadConfig({ flags: { model: MODEL, threads: "1", port: "0", ...flags }, env: {} });
  const log = sessions.log ?? silentLog;
  const server = await createServer({
    config,
    log,
    load: load ?? engineLoader({ config, log }),
    sessions: voiceChatSessions({ log, ...sessions }),
  });
  await server.listen();
  await server.ready;
  return server;
}

export type Wire = Record<string, unknown> & { readonly type: string };

/** As any client would: messages out, events in. */
export class Peer {
  readonly socket: WebSocket;
  readonly heard: Wire[] = [];
  /** The close code, when the connection has ended. */
  readonly closed: Promise<number>;
  #code: number | null = null;
  #wake: (() => void)[] = [];

  constructor(
    server: Pick<Server, "url">,
    path = "/v1/realtime",
    options: ClientOptions = {},
    subprotocols: string[] = [],
  ) {
    this.socket = new WebSocket(`${server.url.replace("http", "ws")}${path}`, subprotocols, options);
    this.socket.on("message", (data) => {
      this.heard.push(JSON.parse(data.toString()) as Wire);
      this.#signal();
    });
    this.socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      this.socket.once("close", (code) => {
        this.#code = code;
        this.#signal();
        resolve(code);
      });
    });
  }
  /** The HTTP status that answered the upgrade: 101 for a socket. */
  async status(): Promise<number> {
    return Promise.race([
      once(this.socket, "open").then(() => 101),
      once(this.socket, "unexpected-response").then(([, response]) => response.statusCode as number),
    ]);
  }
  say(...messages: (object | string)[]): void {
    for (const message of messages) this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }
  of(type: string): Wire[] {
    return this.heard.filter((event) => event.type === type);
  }
  get errors(): { readonly code: string; readonly message: string }[] {
    return this.of("error").map((event) => event["error"] as { code: string; message: string });
  }
  /** Resolves when `count` events of this type have come. @throws when the connection ends before. */
  async until(type: string, count = 1): Promise<void> {
    while (this.of(type).length < count) {
      if (this.#code !== null) {
        const said = JSON.stringify(this.errors);
        throw new Error(`closed with ${this.#code} before ${count} ${type}; errors: ${said}`);
      }
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
  /** Connects and configures. */
  static async ready(server: Pick<Server, "url">, session: object = {}): Promise<Peer> {
    const peer = new Peer(server);
    await peer.until("session.created");
    peer.say({ type: "session.update", session });
    await peer.until("session.updated");
    return peer;
  }
  #signal(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

export const append = (samples: Float32Array): object => ({
  type: "input_audio_buffer.append",
  audio: Buffer.from(floatToPcm16(samples)).toString("base64"),
});
export const frames = (count: number, value = 0): Float32Array => new Float32Array(count * 1280).fill(value);

/** A value of /metrics by its name and labels; NaN where it is not there. */
export async function metric(server: Server, name: string): Promise<number> {
  const line = (await server.metrics.text()).split("\n").find((text) => text.startsWith(`${name} `));
  return Number(line?.split(" ")[1] ?? Number.NaN);
}
