/** A client of a realtime server over WebSocket: events out, events in, and plain words when it fails. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "ws";
import { loadConfig } from "../config.ts";
import { AppError, AuthError, UpstreamError } from "../errors.ts";
import type { ServerEvent } from "../protocol/openai/server-events.ts";
import { Queue } from "../util/queue.ts";

export interface RealtimeClientOptions {
  /** http, https, ws or wss; without a path, `/v1/realtime` is meant. */
  readonly url: string;
  readonly apiKey: string | null;
  readonly model: string | null;
  /** PEM certificates to trust besides the system's. */
  readonly ca: string | null;
  /** Gives up connecting. */
  readonly signal?: AbortSignal;
}

/** What answers no upgrade within this is no server of sessions. */
const HANDSHAKE_MS = 15_000;
const EVENTS_MAX = 100_000;

/** Speaks OpenAI's dialect unless `Event` is another's. */
export class RealtimeClient<Event = ServerEvent> implements AsyncDisposable {
  /** Where it is connected, without a query. */
  readonly url: string;
  readonly #socket: WebSocket;
  readonly #events = new Queue<Event>(EVENTS_MAX);
  readonly #closed: Promise<void>;
  #closeCode: number | null = null;

  private constructor(socket: WebSocket, url: URL) {
    this.#socket = socket;
    this.url = `${url.origin}${url.pathname}`;
    socket.on("message", (data) => this.#take(data.toString()));
    socket.on("error", () => {});
    this.#closed = new Promise((resolve) => {
      socket.once("close", (code) => {
        this.#closeCode = code;
        this.#events.close();
        resolve();
      });
    });
  }
  /** @throws {AppError} upstream_unreachable or invalid_api_key, with what to do; the signal's reason. */
  static async connect<Event = ServerEvent>(options: RealtimeClientOptions): Promise<RealtimeClient<Event>> {
    const { signal } = options;
    const url = addressOf(options.url, options.model);
    signal?.throwIfAborted();
    const socket = new WebSocket(url, {
      headers: options.apiKey === null ? {} : { Authorization: `Bearer ${options.apiKey}` },
      perMessageDeflate: false,
      handshakeTimeout: HANDSHAKE_MS,
      ...(options.ca === null ? {} : { ca: options.ca }),
    });
    // Before the first await: the first event may come with the answer to the upgrade.
    const client = new RealtimeClient<Event>(socket, url);
    const giveUp = (): void => socket.terminate();
    signal?.addEventListener("abort", giveUp);
    try {
      await opened(socket, url);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return client;
  }
  /** In the order of the server; ends when the connection does. */
  get events(): AsyncIterable<Event> {
    return this.#events;
  }
  send(event: { readonly type: string } & Readonly<Record<string, unknown>>): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(event));
  }
  /** Bytes that the network has not taken yet. */
  get unsentBytes(): number {
    return this.#socket.bufferedAmount;
  }
  /** Null while the connection lasts. */
  get closeCode(): number | null {
    return this.#closeCode;
  }
  /** A server of something else may say anything. */
  #take(text: string): void {
    const event = eventIn(text);
    if (event !== null) this.#events.push(event as Event);
    else {
      const message = `${this.url} sent what is no event of a realtime server; is the address right?`;
      this.#events.fail(new UpstreamError("upstream_failed", message));
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close(1000);
    const impatience = setTimeout(() => this.#socket.terminate(), 1000);
    await this.#closed;
    clearTimeout(impatience);
  }
}

function opened(socket: WebSocket, url: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (error: NodeJS.ErrnoException) => reject(connectFailure(error, url)));
    socket.once("unexpected-response", (_request, response) => {
      response.resume();
      reject(refusal(response.statusCode ?? 0, url));
    });
  });
}

/** Null unless `text` is a JSON object with a `type`. */
function eventIn(text: string): object | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const isEvent = typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
  return isEvent ? (value as object) : null;
}

/** Where sessions are: `text`, with the path and the model filled in. */
export function addressOf(text: string, model: string | null): URL {
  const url = URL.canParse(text) ? new URL(text.replace(/^http/, "ws")) : null;
  if (url === null || !/^wss?:$/.test(url.protocol)) {
    throw new AppError("usage", `${text} is no address of a server; expected one such as ws://127.0.0.1:8765`);
  }
  if (url.pathname === "/" || url.pathname === "/v1" || url.pathname === "/v1/") url.pathname = "/v1/realtime";
  if (model !== null) url.searchParams.set("model", model);
  return url;
}

export function connectFailure(error: NodeJS.ErrnoException, url: URL): AppError {
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
  const hint = status === 404 ? `: there are no sessions at ${url.pathname}, but as a rule at /v1/realtime` : "";
  return new UpstreamError("upstream_unreachable", `${url.host} answered the connection with HTTP ${status}${hint}`);
}

/** The certificate of this machine's own server needs no flag. @throws {AppError} usage for a file that cannot be read. */
export function trustedCertificate(file: string | null): string | null {
  const own = join(loadConfig().dataDir, "tls", "cert.pem");
  if (file === null && !existsSync(own)) return null;
  try {
    return readFileSync(file ?? own, "utf8");
  } catch (error) {
    throw new AppError("usage", `--tls-ca ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    });
  }
}
