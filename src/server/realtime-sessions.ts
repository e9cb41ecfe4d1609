/** Sessions of the OpenAI Realtime API over a loaded engine. */
import type { Config } from "../config.ts";
import { defaultSettings, mergeSettings } from "../conversation/settings.ts";
import { readSession, writeSession } from "../dialects/openai-session.ts";
import type { Engine } from "../engines/engine.ts";
import { ClientError } from "../errors.ts";
import { MOVED_FIELDS } from "../protocol/openai/client-events.ts";
import type { WireSession } from "../protocol/openai/client-types.ts";
import { Session as sessionSchema } from "../protocol/openai/session-schema.ts";
import { parseValue } from "../protocol/parse.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type IdSource, randomId } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import { Connection } from "./connection.ts";
import type { ConnectionLimits, SessionStart } from "./connection-options.ts";
import type { SessionRequest } from "./reception.ts";
import type { SessionMaker } from "./server.ts";

export interface RealtimeSessionsOptions {
  readonly config: Pick<Config, "instructions" | "idleTimeoutMs" | "sessionMaxMs" | "unsentBytesMax">;
  readonly log: Log;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

/** What the server calls when it makes sessions: see `ServerOptions.sessions`. */
export function realtimeSessions(options: RealtimeSessionsOptions): SessionMaker {
  const { config, log, clock = systemClock, ids = randomId } = options;
  const limits: Partial<ConnectionLimits> = {
    bufferedBytesMax: config.unsentBytesMax,
    idleMsMax: config.idleTimeoutMs === 0 ? null : config.idleTimeoutMs,
    sessionMsMax: config.sessionMaxMs === 0 ? null : config.sessionMaxMs,
  };
  return (engine, observer) => ({
    connect(transport, request) {
      const session = startOf(request, config);
      return new Connection({ transport, engine: engine(), session, clock, ids, log, limits, observer });
    },
    describe(session) {
      const expiresAtSeconds = limits.sessionMsMax ? clock.unixSeconds() + Math.ceil(limits.sessionMsMax / 1000) : null;
      return { ...effective(engine(), session, config, { id: ids("sess"), expiresAtSeconds }) };
    },
  });
}

type Defaults = Pick<Config, "instructions">;

/** @throws {ClientError} for a bound configuration that a `session.update` would refuse. */
function startOf(request: SessionRequest, { instructions }: Defaults): SessionStart {
  const { type, model, session } = request;
  return {
    type,
    model,
    ...(instructions === null ? {} : { instructions }),
    configuration: session === null ? null : parseSession({ type, ...session }),
  };
}

/** The whole configuration that a session bound to `raw` starts with, as its `session.created` will show it. */
function effective(
  engine: Engine,
  raw: Readonly<Record<string, unknown>>,
  { instructions }: Defaults,
  facts: Parameters<typeof writeSession>[1],
): ReturnType<typeof writeSession> {
  const session = parseSession({ type: "realtime", ...raw });
  const { capabilities } = engine;
  const model = "model" in session ? session.model : undefined;
  const defaults = defaultSettings(session.type, capabilities, {
    ...(model === undefined ? {} : { model }),
    ...(instructions === null ? {} : { instructions }),
  });
  const patch = readSession(session, defaults, capabilities);
  if (patch instanceof ClientError) throw patch;
  return writeSession(mergeSettings(defaults, patch), facts);
}

function parseSession(raw: Readonly<Record<string, unknown>>): WireSession {
  const parsed = parseValue<WireSession>(raw, sessionSchema, { movedFields: MOVED_FIELDS });
  if (parsed.ok) return parsed.event;
  throw parsed.refusal;
}
