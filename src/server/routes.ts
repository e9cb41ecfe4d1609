/** The HTTP side: one function per group of routes, so that a group can be added without touching the others. */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { AppError, ClientError, toAppError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { Log } from "../util/log.ts";
import type { Admission } from "./admission.ts";
import { type Access, credentialsOf } from "./auth.ts";
import type { Metrics } from "./metrics.ts";
import type { OriginPolicy } from "./origins.ts";
import type { Readiness } from "./readiness.ts";
import type { Reception } from "./reception.ts";
import { errorBody } from "./refusal.ts";

export interface RouteContext {
  readonly reception: Reception;
  readonly origins: OriginPolicy;
  readonly admission: Admission;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

export type App = Hono<{ Variables: { access: Access } }>;
/** A request, and who asks. */
export type Ask = Context<{ Variables: { access: Access } }>;
type Handler = (context: Ask) => Response | Promise<Response>;
export type RouteGroup = (app: App, context: RouteContext) => void;

const BODY_BYTES_MAX = 1024 * 1024;
/** Of a body of unknown length that is too large; what comes after costs the connection. */
const DISCARDED_BYTES_MAX = 16 * BODY_BYTES_MAX;

/** `groups` are further routes: calls, the talk page. */
export function createApp(context: RouteContext, groups: readonly RouteGroup[]): App {
  const app: App = new Hono();
  app.use(crossOrigin(context.origins));
  app.use(boundedBody(context));
  app.use("/v1/*", authorized(context));
  app.use("/metrics", authorized(context));
  for (const group of [health, models, observability, ...groups, absentApis]) group(app, context);
  app.notFound((c) =>
    fail(context, new ClientError("not_found", `There is nothing at ${c.req.method} ${c.req.path}.`)),
  );
  app.onError((error) => {
    const failure = toAppError(error);
    if (failure.code === "internal_error") context.log.error({ stack: error.stack ?? null }, "request failed");
    return fail(context, failure);
  });
  return app;
}

/** Registers `handlers` at `path`; every other method gets 405 and the list of those that work. */
export function route(
  app: App,
  path: string,
  handlers: Readonly<Partial<Record<"GET" | "POST" | "DELETE", Handler>>>,
): void {
  const allowed = Object.keys(handlers);
  for (const [method, handler] of Object.entries(handlers)) app.on(method, path, handler);
  app.all(path, (c) => {
    const error = new ClientError(
      "method_not_allowed",
      `${c.req.path} takes ${allowed.join(", ")}, got ${c.req.method}.`,
    );
    return c.json(errorBody(error), 405, { Allow: allowed.join(", ") });
  });
}

function fail(context: RouteContext, error: AppError): Response {
  context.metrics.error(error.code);
  const { httpStatus } = error.entry;
  const headers: Record<string, string> = httpStatus === 401 ? { "WWW-Authenticate": "Bearer" } : {};
  return Response.json(errorBody(error), { status: httpStatus as ContentfulStatusCode, headers });
}

const tooLarge = (): AppError => new AppError("message_too_large", `The body is larger than ${BODY_BYTES_MAX} bytes.`);

/** A refused body is still read to its end: a rest would be in the way of the next request on the connection. */
function boundedBody(context: RouteContext): MiddlewareHandler {
  return async (c, next) => {
    const declared = c.req.header("content-length");
    // The HTTP server itself reads what nobody has touched.
    if (Number(declared ?? 0) > BODY_BYTES_MAX) return fail(context, tooLarge());
    if (declared === undefined && c.req.raw.body !== null) {
      const body = await readBody(c.req.raw.body);
      if (body === null) return fail(context, tooLarge());
      c.req.raw = new Request(c.req.raw, { body });
    }
    return await next();
  };
}

/** Null where it is too large. */
async function readBody(stream: ReadableStream<Uint8Array>): Promise<Buffer<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk);
    if (bytes > DISCARDED_BYTES_MAX) break;
  }
  return bytes > BODY_BYTES_MAX ? null : Buffer.concat(chunks);
}

function crossOrigin(origins: OriginPolicy): MiddlewareHandler {
  return cors({
    origin: (origin, c) => (origins.allows(origin, c.req.header("host")) ? origin : null),
    allowHeaders: ["Authorization", "Content-Type", "OpenAI-Beta"],
    allowMethods: ["GET", "POST", "DELETE", "OPTIONS"],
    exposeHeaders: ["Location", "Retry-After"],
    maxAge: 600,
  });
}

function authorized(context: RouteContext): MiddlewareHandler<{ Variables: { access: Access } }> {
  return async (c, next) => {
    const credentials = credentialsOf({ authorization: c.req.header("authorization"), subprotocols: undefined });
    c.set("access", context.reception.identify(credentials, c.req.header("origin"), c.req.header("host")));
    await next();
  };
}

/** Never wants a key: whoever restarts servers has none. */
const health: RouteGroup = (app, { readiness, admission }) => {
  route(app, "/health", {
    GET: (c) => {
      if (admission.draining) return c.json({ status: "draining", sessions: admission.sessionCount }, 503);
      if (readiness.failure !== null) return c.json({ status: "failed", code: readiness.failure.code }, 503);
      const { waitingFor } = readiness;
      if (!readiness.isReady || waitingFor.length > 0)
        return c.json({ status: "loading", waiting_for: waitingFor }, 503);
      return c.json({ status: "ok", sessions: admission.sessionCount });
    },
  });
};

const models: RouteGroup = (app, { reception, clock }) => {
  const created = clock.unixSeconds();
  const describe = (id: string): object => ({ id, object: "model", created, owned_by: "antiphon" });
  route(app, "/v1/models", {
    GET: (c) => c.json({ object: "list", data: reception.servedModels().map(describe) }),
  });
  route(app, "/v1/models/:id{.+}", {
    GET: (c) => {
      const id = c.req.param("id") ?? "";
      const served = reception.servedModels();
      if (served.includes(id)) return c.json(describe(id));
      throw new ClientError(
        "model_not_found",
        `The model "${id}" is not served here; served are: ${served.join(", ")}.`,
        "model",
      );
    },
  });
};

const observability: RouteGroup = (app, { metrics, admission }) => {
  route(app, "/v1/usage", {
    GET: (c) => c.json({ object: "usage", sessions_open: admission.sessionCount, ...metrics.usage() }),
  });
  route(app, "/metrics", {
    GET: async (c) => c.body(await metrics.text(), 200, { "Content-Type": metrics.contentType }),
  });
};

/** What clients of such servers look for, and is not here: better said than a bare 404. */
const absentApis: RouteGroup = (app) => {
  for (const path of ["chat/completions", "completions", "responses", "messages", "embeddings", "audio/*", "live/*"]) {
    app.all(`/v1/${path}`, (c) => {
      throw new ClientError("not_implemented", `${c.req.path} is not offered; this server talks at /v1/realtime.`);
    });
  }
};
