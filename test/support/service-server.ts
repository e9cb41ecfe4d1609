/** The server with its real ears and voice, and a scripted service as its language model. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import { engineLoader } from "../../src/server/load-engine.ts";
import { realtimeSessions } from "../../src/server/realtime-sessions.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { silentLog } from "../../src/util/log.ts";
import { LanguageService, type Script } from "./language-service.ts";

export interface ServiceServer extends AsyncDisposable {
  readonly server: Server;
  readonly service: LanguageService;
}

/** Loading takes a while: call it in `beforeAll` with `LIVE_SERVER_MS`. */
export async function serviceServer(script: Script, flags: Record<string, string> = {}): Promise<ServiceServer> {
  const service = new LanguageService(script);
  const llmBaseUrl = await service.start();
  const dataDir = mkdtempSync(join(tmpdir(), "antiphon-service-"));
  const config = loadConfig({
    flags: { port: "0", llm: "chat-completions", llmBaseUrl, threads: "1", dataDir, ...flags },
  });
  const log = silentLog;
  const sessions = realtimeSessions({ config, log });
  const server = await createServer({ config, log, sessions, load: engineLoader({ config, log }) });
  await server.listen();
  await server.ready;
  return {
    server,
    service,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await service.stop();
    },
  };
}
