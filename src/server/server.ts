/** The composition root: sockets, doors, routes and sessions of one process. */
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import type { Config } from "../config.ts";
import type { Engine } from "../engines/engine.ts";
import { AppError, ConfigError, toAppError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type IdSource, randomId } from "../util/ids.ts";
import { createLog, type Log } from "../util/log.ts";
import { Admission } from "./admission.ts";
import { type Access, Gate } from "./auth.ts";
import { Calls, registerCalls } from "./calls.ts";
import { ClientSecrets, type SessionGrant } from "./client-secrets.ts";
import type { ConnectionObserver } from "./connection-options.ts";
import type { DuplexObserver } from "./duplex-connection.ts";
import { readIce } from "./ice.ts";
import { Metrics } from "./metrics.ts";
import { OriginPolicy } from "./origins.ts";
import { pageRoutes } from "./page.ts";
import { Readiness } from "./readiness.ts";
import { type ConnectSession, Reception } from "./reception.ts";
import { type App, createApp, type RouteGroup } from "./routes.ts";
import { clientSecretRoutes, type DescribeSession } from "./secret-routes.ts";
import { servedEngine } from "./served-engine.ts";
import { loadTls, selfSignedTls, type TlsIdentity } from "./tls.ts";
import { type ExplainRefusal, Upgrades } from "./upgrade.ts";
import { WebRtc } from "./webrtc.ts";

/** Loads the engine; `report` says what is not ready yet, in words. */
export type LoadEngine = (report: (waitingFor: readonly string[]) => void) => Promise<Engine>;

export interface ServerOptions {
  readonly config: Config;
  readonly load: LoadEngine;
  readonly sessions: SessionMaker;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly log?: Log;
}

/** Makes the sessions; `engine` throws while it loads, and `observer` counts what they tell. */
export type SessionMaker = (engine: () => Engine, observer: ConnectionObserver & DuplexObserver) => Sessions;

/** Makes sessions of a loaded engine. */
export interface Sessions {
  readonly connect: ConnectSession;
  readonly describe: DescribeSession;
  /** Why there are no calls over WebRTC, where there are none. */
  readonly noCalls?: string;
  /** How a peer that gets no session is told why. Default: OpenAI's `error` event and the table's close code. */
  readonly explain?: ExplainRefusal;
  /** The largest message of the dialect, where it sets one. */
  readonly messageBytesMax?: number;
}

export interface Server extends AsyncDisposable {
  /**
   * Binds the address, then begins to load the engine.
   * @throws {AppError} address_in_use, or config_invalid for an address that cannot be bound.
   */
  listen(): Promise<void>;
  /** Resolves when every stage has warmed. @throws what the engine failed with. */
  readonly ready: Promise<Engine>;
  /** `http://127.0.0.1:8765`; after `listen`. */
  readonly url: string;
  readonly tls: TlsIdentity | null;
  readonly metrics: Metrics;
  /** No new sessions; resolves when those there are have finished, or `drainTimeoutMs` has passed. */
  drain(): Promise<void>;
}

export async function createServer(options: ServerOptions): Promise<Server> {
  const tls = await identityOf(options.config);
  return new AntiphonServer(options, tls);
}

async function identityOf(config: Config): Promise<TlsIdentity | null> {
  if (config.tlsCert !== null && config.tlsKey !== null) return loadTls(config.tlsCert, config.tlsKey);
  return config.tls === "self-signed" ? selfSignedTls(join(config.dataDir, "tls")) : null;
}

class AntiphonServer implements Server {
  readonly ready: Promise<Engine>;
  readonly tls: TlsIdentity | null;
  readonly metrics = new Metrics();
  readonly #config: Config;
  readonly #admission: Admission;
  readonly #readiness = new Readiness();
  readonly #webrtc: WebRtc;
  #takesCalls = true;
  readonly #http: HttpServer;
  #begin: () => void = () => {};
  #loading: Promise<void> = Promise.resolve();
  readonly #log: Log;

  constructor(options: ServerOptions, tls: TlsIdentity | null) {
    const { config, clock = systemClock, ids = randomId } = options;
    this.#config = config;
    this.#log = options.log ?? createLog(config.logLevel);
    this.tls = tls;
    this.#admission = new Admission(() => this.#sessionsMax(), clock);
    this.#webrtc = new WebRtc({ ...readIce(config), clock, log: this.#log });
    const doors = this.#doors(options, clock, ids);
    const listener = getRequestListener(doors.app.fetch);
    this.#http = createHttp(tls, (request, response) => void listener(behind(config.apiPrefix, request), response));
    this.#http.on("upgrade", (request, socket, head) => {
      doors.upgrades.handle(behind(config.apiPrefix, request), socket, head);
    });
    this.ready = new Promise((resolve, reject) => {
      this.#begin = () => {
        this.#loading = this.#load(options.load).then(resolve, reject);
      };
    });
    // Whoever waits for it sees the failure; nobody has to.
    this.ready.catch(() => {});
  }
  get url(): string {
    const { port } = this.#http.address() as AddressInfo;
    const host = this.#config.host.includes(":") ? `[${this.#config.host}]` : this.#config.host;
    return `${this.tls === null ? "http" : "https"}://${host}:${port}`;
  }
  async listen(): Promise<void> {
    const { host, port } = this.#config;
    await new Promise<void>((resolve, reject) => {
      this.#http.once("error", (error: NodeJS.ErrnoException) => reject(listenFailure(error, host, port)));
      this.#http.listen(port, host, resolve);
    });
    this.#begin();
  }
  async drain(): Promise<void> {
    await this.#admission.drain(this.#config.drainTimeoutMs);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#admission.drain(0);
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
    await this.#loading;
    this.#webrtc[Symbol.dispose]();
    if (this.#readiness.isReady) await this.#readiness.engine()[Symbol.asyncDispose]();
  }
  #sessionsMax(): number {
    const { sessionsMax } = this.#readiness.engine().capabilities;
    return Math.min(this.#config.maxSessions ?? sessionsMax, sessionsMax);
  }
  #doors(options: ServerOptions, clock: Clock, ids: IdSource): { readonly app: App; readonly upgrades: Upgrades } {
    const config = this.#config;
    const log = this.#log;
    const metrics = this.metrics;
    const secrets = new ClientSecrets(clock);
    const origins = new OriginPolicy([...config.corsOrigins, ...config.allowedOrigins]);
    const sessions = options.sessions(() => this.#readiness.engine(), metrics);
    this.#takesCalls = sessions.noCalls === undefined;
    const shared = { origins, admission: this.#admission, readiness: this.#readiness, metrics, clock, log };
    const reception = new Reception({
      ...shared,
      gate: new Gate(config.apiKey, secrets),
      connect: sessions.connect,
    });
    const calls = new Calls({
      webrtc: this.#webrtc,
      ...(sessions.noCalls === undefined ? {} : { noCalls: sessions.noCalls }),
      admission: this.#admission,
      check({ model, session }) {
        const { type } = reception.grant(model, session);
        sessions.describe({ type, ...session });
      },
      connect: (transport, opening) => reception.connect(transport, reception.grant(opening.model, opening.session)),
      ids,
      log,
    });
    const app = createApp({ ...shared, reception }, [
      clientSecretRoutes(secrets, sessions.describe),
      callRoutes(calls, config.apiPrefix),
      pageRoutes(),
    ]);
    const upgrades = new Upgrades({
      reception,
      metrics,
      clock,
      ids,
      log,
      limits: { ...config, messageBytesMax: Math.min(config.messageBytesMax, sessions.messageBytesMax ?? Infinity) },
      ...(sessions.explain === undefined ? {} : { explain: sessions.explain }),
      attachToCall: (callId, control) => calls.attach(callId, control),
    });
    return { app, upgrades };
  }
  async #load(load: LoadEngine): Promise<Engine> {
    try {
      const loaded = await load((waitingFor) => this.#readiness.loading(waitingFor));
      const engine = await this.#serve(loaded);
      this.#readiness.ready(engine);
      // The first call finds libwebrtc loaded; nobody waits for it here.
      if (this.#takesCalls) this.#webrtc.prepare();
      return engine;
    } catch (error) {
      this.#readiness.failed(toAppError(error));
      throw error;
    }
  }
  async #serve(loaded: Engine): Promise<Engine> {
    try {
      return servedEngine(loaded, this.#config);
    } catch (error) {
      await loaded[Symbol.asyncDispose]();
      throw error;
    }
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

function createHttp(tls: TlsIdentity | null, listener: Listener): HttpServer {
  return tls === null ? createHttpServer(listener) : createHttpsServer({ cert: tls.cert, key: tls.key }, listener);
}

/** The request as it is without the prefix; a path that lacks it gets a second slash, and no route has that. */
function behind(prefix: string, request: IncomingMessage): IncomingMessage {
  if (prefix === "") return request;
  const url = request.url ?? "/";
  const inside = url.startsWith(prefix) && /^(\/|\?|$)/.test(url.slice(prefix.length));
  request.url = inside ? url.slice(prefix.length).replace(/^(?!\/)/, "/") : `/${url}`;
  return request;
}

function callRoutes(calls: Calls, prefix: string): RouteGroup {
  return (app) => registerCalls(app, calls, (c) => grantOf(c.get("access")), prefix);
}

const grantOf = (access: Access): { readonly session: SessionGrant["session"] | null } => ({
  session: access.kind === "secret" ? access.session : null,
});

function listenFailure(error: NodeJS.ErrnoException, host: string, port: number): AppError {
  if (error.code === "EADDRINUSE") {
    return new AppError(
      "address_in_use",
      `${host}:${port} is in use, perhaps by another antiphon. Stop what listens there, or choose --port 0 for a free one.`,
      { cause: error },
    );
  }
  const hint = error.code === "EACCES" ? "; ports below 1024 need privileges" : "";
  return new ConfigError("config_invalid", `cannot listen on ${host}:${port} (${error.code})${hint}`, { cause: error });
}
