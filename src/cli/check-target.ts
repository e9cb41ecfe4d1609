/** A server somewhere on the network, as the checker sees it: WebSockets for sessions, HTTP for tokens. */
import { Agent, request } from "undici";
import { WebSocket } from "ws";
import type { Door, Line, Posted, Target, Turned } from "../check/line.ts";
import { UpstreamError } from "../errors.ts";
import { Queue } from "../util/queue.ts";
import { addressOf, connectFailure } from "./realtime-client.ts";

export interface NetworkTargetOptions {
  /** http, https, ws or wss; without a path, `/v1/realtime` is meant. */
  readonly url: string;
  readonly apiKey: string | null;
  readonly model: string | null;
  /** PEM certificates to trust besides the system's. */
  readonly ca: string | null;
  readonly timeoutMs: number;
}

const TEXTS_MAX = 1_000_000;
/** Browsers must bring some key as a subprotocol; a server that wants none takes any. */
const ANY_KEY = "any";

export class NetworkTarget implements Target {
  readonly #options: NetworkTargetOptions;
  constructor(options: NetworkTargetOptions) {
    this.#options = options;
  }
  get hasKey(): boolean {
    return this.#options.apiKey !== null;
  }
  /** @throws {AppError} upstream_unreachable */
  connect(door: Door = {}): Promise<Line | Turned> {
    const { url: text, apiKey, model, ca, timeoutMs } = this.#options;
    const url = addressOf(text, model);
    for (const [name, value] of Object.entries(door.query ?? {})) url.searchParams.set(name, value);
    const key = door.key ?? apiKey;
    const inProtocol = door.keyIn === "subprotocol";
    const protocols = inProtocol ? ["realtime", `openai-insecure-api-key.${key ?? ANY_KEY}`] : [];
    const socket = new WebSocket(url, protocols, {
      headers: key === null || inProtocol ? {} : { Authorization: `Bearer ${key}` },
      perMessageDeflate: false,
      handshakeTimeout: timeoutMs,
      ...(ca === null ? {} : { ca }),
    });
    // Before the first await: the first event may come with the answer to the upgrade.
    const line = new NetworkLine(socket);
    return new Promise((resolve, reject) => {
      socket.once("open", () => resolve(line));
      socket.once("error", (error: NodeJS.ErrnoException) => reject(connectFailure(error, url)));
      socket.once("unexpected-response", (_request, response) => {
        response.resume();
        resolve({ httpStatus: response.statusCode ?? 0 });
      });
    });
  }
  readonly post = async (path: string, body: unknown): Promise<Posted> => {
    const { url: text, apiKey, ca, timeoutMs } = this.#options;
    const url = addressOf(text, null);
    url.protocol = url.protocol === "wss:" ? "https:" : "http:";
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`;
    url.search = "";
    const dispatcher = new Agent({ connect: ca === null ? {} : { ca }, headersTimeout: timeoutMs });
    try {
      const response = await request(url, {
        dispatcher,
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify(body),
      });
      return { httpStatus: response.statusCode, body: await response.body.json().catch(() => null) };
    } catch (error) {
      throw new UpstreamError("upstream_unreachable", `cannot reach ${url.origin}: ${(error as Error).message}`, {
        cause: error,
      });
    } finally {
      await dispatcher.close();
    }
  };
}

class NetworkLine implements Line {
  readonly texts: Queue<string> = new Queue(TEXTS_MAX);
  readonly #socket: WebSocket;
  readonly #closed: Promise<void>;
  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => this.texts.push(data.toString()));
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.texts.close();
        resolve();
      });
    });
  }
  get subprotocol(): string {
    return this.#socket.protocol;
  }
  send(text: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(text);
  }
  async close(): Promise<void> {
    this.#socket.close(1000);
    const impatience = setTimeout(() => this.#socket.terminate(), 1000);
    await this.#closed;
    clearTimeout(impatience);
  }
}
