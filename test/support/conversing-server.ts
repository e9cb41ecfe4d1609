/** The whole server around the conversing engine, on a free port. */
import { loadConfig } from "../../src/config.ts";
import { realtimeSessions } from "../../src/server/realtime-sessions.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { silentLog } from "../../src/util/log.ts";
import { conversingEngine } from "./conversing-engine.ts";

export async function conversingServer(flags: Record<string, string> = {}): Promise<Server> {
  const config = loadConfig({ env: {}, flags: { port: "0", logLevel: "silent", ...flags } });
  const server = await createServer({
    config,
    load: () => Promise.resolve(conversingEngine()),
    sessions: realtimeSessions({ config, log: silentLog }),
    log: silentLog,
  });
  await server.listen();
  await server.ready;
  return server;
}
