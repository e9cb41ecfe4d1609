/** `POST /v1/realtime/client_secrets`: a short-lived token that opens sessions of one configuration. */
import { z } from "zod";
import { AuthError, ClientError } from "../errors.ts";
import { type ClientSecrets, SECRET_SECONDS } from "./client-secrets.ts";
import { type App, type RouteContext, type RouteGroup, route } from "./routes.ts";

/**
 * The whole configuration that a session bound to `session` starts with, as `session.created` shows it.
 * @throws {ClientError} for a field that a `session.update` would refuse.
 */
export type DescribeSession = (session: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;

const bodySchema = z.strictObject({
  expires_after: z
    .strictObject({
      anchor: z.literal("created_at").default("created_at"),
      seconds: z.int().min(SECRET_SECONDS.min).max(SECRET_SECONDS.max).default(SECRET_SECONDS.default),
    })
    .optional(),
  session: z.record(z.string(), z.unknown()).default({ type: "realtime" }),
});

export function clientSecretRoutes(secrets: ClientSecrets, describe: DescribeSession): RouteGroup {
  return (app: App, context: RouteContext): void => {
    route(app, "/v1/realtime/client_secrets", {
      POST: async (c) => {
        if (c.get("access").kind === "secret") {
          throw new AuthError("invalid_api_key", "A client secret cannot make another; use the API key.");
        }
        const { session, expires_after: expiry } = parseBody(await c.req.text());
        context.reception.checkModel(session["model"]);
        const effective = describe(session);
        const { value, expiresAt } = secrets.create(session, expiry?.seconds ?? SECRET_SECONDS.default);
        return c.json({ value, expires_at: expiresAt, session: effective });
      },
    });
  };
}

/** An empty body means all defaults. */
function parseBody(text: string): z.output<typeof bodySchema> {
  let json: unknown;
  try {
    json = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    throw new ClientError("invalid_json", "The body is not valid JSON.");
  }
  const parsed = bodySchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path.join(".") ?? "";
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  if (unknown !== undefined) {
    const param = path === "" ? unknown : `${path}.${unknown}`;
    throw new ClientError("unknown_parameter", `Unknown parameter: ${param}. Known: expires_after, session.`, param);
  }
  throw new ClientError("invalid_value", `${path}: ${issue?.message ?? "not usable"}`, path);
}
