/** The way from an HTTP upgrade to a session on a WebSocket. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type AppError, ClientError, toAppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import { type Access, credentialsOf, REALTIME_SUBPROTOCOL } from "./auth.ts";
import type { Metrics } from "./metrics.ts";
import type { Reception } from "./reception.ts";
import { errorBody, errorEvent } from "./refusal.ts";
import type { Transport } from "./transport.ts";
import { type WebSocketLimits, WebSocketTransport } from "./websocket.ts";

export interface UpgradeOptions {
  readonly reception: Reception;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  readonly limits: WebSocketLimits & { readonly messageBytesMax: number };
  readonly explain?: ExplainRefusal;
  /** Makes `control` a second control channel of the call. @throws {ClientError} not_found. */
  readonly attachToCall: (callId: string, control: Transport) => void;
}

/** The event for a peer that gets no session, and its close code; null for the table's. */
export type ExplainRefusal = (error: AppError) => { readonly text: string; readonly code: number | null };

const REALTIME_PATH = "/v1/realtime";

export class Upgrades {
  readonly #options: UpgradeOptions;
  readonly #server: WebSocketServer;
  constructor(options: UpgradeOptions) {
    this.#options = options;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: options.limits.messageBytesMax,
      // Audio does not compress, and a compressor per socket costs more memory than the session.
      perMessageDeflate: false,
      handleProtocols: (offered) => (offered.has(REALTIME_SUBPROTOCOL) ? REALTIME_SUBPROTOCOL : false),
    });
  }
  /** Takes an `upgrade` event of the HTTP server. Never throws. */
  handle(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const onError = (): void => void socket.destroy();
    socket.on("error", onError);
    const credentials = credentialsOf({
      authorization: request.headers.authorization,
      subprotocols: request.headers["sec-websocket-protocol"],
    });
    const accept = (then: (socket: WebSocket) => void): void => {
      socket.off("error", onError);
      this.#server.handleUpgrade(request, socket, head, then);
    };
    try {
      const url = realtimeUrl(request.url ?? "/");
      const access = this.#options.reception.identify(credentials, request.headers.origin, request.headers.host);
      accept((webSocket) => this.#welcome(webSocket, url, access));
    } catch (error) {
      const refusal = toAppError(error);
      this.#options.metrics.error(refusal.code);
      if (credentials.bySubprotocol) accept((webSocket) => this.#refuse(this.#transport(webSocket), refusal));
      else refuseUpgrade(socket, refusal);
    }
  }
  #welcome(webSocket: WebSocket, url: URL, access: Access): void {
    const transport = this.#transport(webSocket);
    try {
      const callId = url.searchParams.get("call_id");
      const { reception, attachToCall } = this.#options;
      if (callId !== null) attachToCall(callId, transport);
      else reception.begin(transport, reception.request(url.searchParams, access));
    } catch (error) {
      const refusal = toAppError(error);
      this.#options.metrics.error(refusal.code);
      this.#refuse(transport, refusal);
    }
  }
  /** A peer that has a WebSocket already reads the reason as an event, then the close code. */
  #refuse(transport: WebSocketTransport, refusal: AppError): void {
    this.#options.log.info({ code: refusal.code }, "session refused");
    const { ids, explain = (error) => ({ text: errorEvent(error, ids), code: null }) } = this.#options;
    const { text, code } = explain(refusal);
    transport.send(text);
    void transport.close(code ?? refusal.entry.wsClose ?? 1008, refusal.code);
  }
  #transport(socket: WebSocket): WebSocketTransport {
    const { clock, limits } = this.#options;
    return new WebSocketTransport({ socket, clock, limits });
  }
}

/** @throws {ClientError} not_found for any other path, and for what is none. */
function realtimeUrl(target: string): URL {
  const base = "http://localhost";
  const url = URL.canParse(target, base) ? new URL(target, base) : null;
  if (url?.pathname === REALTIME_PATH) return url;
  const path = (url?.pathname ?? target).slice(0, 100);
  throw new ClientError("not_found", `There is no WebSocket at ${path}; sessions are at ${REALTIME_PATH}.`);
}

function refuseUpgrade(socket: Duplex, refusal: AppError): void {
  const body = JSON.stringify(errorBody(refusal));
  const { httpStatus } = refusal.entry;
  socket.end(
    [
      `HTTP/1.1 ${httpStatus} ${refusal.code}`,
      "Connection: close",
      "Content-Type: application/json",
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...(httpStatus === 401 ? ["WWW-Authenticate: Bearer"] : []),
      "",
      body,
    ].join("\r\n"),
  );
}
