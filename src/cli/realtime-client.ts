/** A client of the OpenAI Realtime API over WebSocket: events out, events in, and plain words when it fails. */
import { WebSocket } from "ws";
import { type AppError, AuthError, UpstreamError } from "../errors.ts";
import type { ServerEvent } from "../protocol/openai/server-events.ts";
import { Queue } from "../util/queue.ts";

export interface RealtimeClientOptions {
  /** http, https, ws or wss; without a path, `/v1/realtime` is meant. */
  readonly url: string;
  readonly apiKey: string | null;
  readonly model: string | null;
  /** PEM certificates to trust besides the system's. */
  readonly ca: string | null;
}

const EVENTS_MAX = 100_000;

export class RealtimeClient implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #events = new Queue<ServerEvent>(EVENTS_MAX);
  readonly #closed: Promise<void>;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => this.#events.push(JSON.parse(data.toString()) as ServerEvent));
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#events.close();
        resolve();
      });
    });
  }
  /** @throws {AppError} upstream_unreachable or invalid_api_key, with what to do. */
  static async connect(options: RealtimeClientOptions): Promise<RealtimeClient> {
    const url = addressOf(options.url, options.model);
    const socket = new WebSocket(url, {
      headers: options.apiKey === null ? {} : { Authorization: `Bearer ${options.apiKey}` },
      perMessageDeflate: false,
      ...(options.ca === null ? {} : { ca: options.ca }),
    });
    // Before the first await: the first event may come with the answer to the upgrade.
    const client = new RealtimeClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", (error: NodeJS.ErrnoException) => reject(connectFailure(error, url)));
      socket.once("unexpected-response", (_request, response) => {
        response.resume();
        reject(refusal(response.statusCode ?? 0, url));
      });
    });
    return client;
  }
  /** In the order of the server; ends when the connection does. */
  get events(): AsyncIterable<ServerEvent> {
    return this.#events;
  }
  send(event: { readonly type: string } & Readonly<Record<string, unknown>>): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(event));
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close(1000);
    const impatience = setTimeout(() => this.#socket.terminate(), 1000);
    await this.#closed;
    clearTimeout(impatience);
  }
}

function addressOf(text: string, model: string | null): URL {
  const url = new URL(text.replace(/^http/, "ws"));
  if (url.pathname === "/" || url.pathname === "/v1" || url.pathname === "/v1/") url.pathname = "/v1/realtime";
  if (model !== null) url.searchParams.set("model", model);
  return url;
}

function connectFailure(error: NodeJS.ErrnoException, url: URL): AppError {
  const certificate = error.code?.includes("CERT") === true || error.code?.includes("SELF_SIGNED") === true;
  const hint = certificate
    ? "the server's certificate is not trusted here; give its file with --tls-ca"
    : error.code === "ECONNREFUSED"
      ? "nothing listens there; start the server with: antiphon serve"
      : "is the address right?";
  return new UpstreamError(
    "upstream_unreachable",
    `cannot connect to ${url.origin} (${error.code ?? error.message}): ${hint}`,
    {
      cause: error,
    },
  );
}

function refusal(status: number, url: URL): AppError {
  if (status === 401)
    return new AuthError("invalid_api_key", `${url.host} wants an API key, or another one: --api-key KEY`);
  return new UpstreamError("upstream_unreachable", `${url.host} answered the connection with HTTP ${status}`);
}
