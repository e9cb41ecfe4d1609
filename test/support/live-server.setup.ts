/**
 * One server with real models for all test files, started when the first asks for it: plain and with a certificate,
 * over one engine. Tests reach it by `liveServer()`.
 */
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { loadConfig } from "../../src/config.ts";
import { engineLoader } from "../../src/server/load-engine.ts";
import { realtimeSessions } from "../../src/server/realtime-sessions.ts";
import { createServer, type LoadEngine, type Server } from "../../src/server/server.ts";
import { silentLog } from "../../src/util/log.ts";
import type { LiveServer } from "./live-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Answers every request with a `LiveServer`, when it is ready. */
    liveServerLauncher: string;
  }
}

async function launch(): Promise<readonly [Server, Server]> {
  const dataDir = mkdtempSync(join(tmpdir(), "antiphon-live-"));
  const config = loadConfig({ flags: { port: "0", llm: "local", threads: "1", dataDir, maxSessions: "32" } });
  const log = silentLog;
  const sessions = realtimeSessions({ config, log });
  const plain = await createServer({ config, log, sessions, load: engineLoader({ config, log }) });
  // The engine has one owner: the plain server.
  const shared: LoadEngine = async () => {
    const engine = await plain.ready;
    return {
      capabilities: engine.capabilities,
      open: (...args) => engine.open(...args),
      [Symbol.asyncDispose]: async () => {},
    };
  };
  const secure = await createServer({ config: { ...config, tls: "self-signed" }, log, sessions, load: shared });
  await Promise.all([plain.listen(), secure.listen(), secure.ready]);
  return [plain, secure];
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let servers: Promise<readonly [Server, Server]> | null = null;
  const launcher = createHttpServer(async (_request, response) => {
    servers ??= launch();
    try {
      const [plain, secure] = await servers;
      const live: LiveServer = { url: plain.url, secureUrl: secure.url, caFile: secure.tls?.selfSignedFile ?? "" };
      response.end(JSON.stringify(live));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  launcher.listen(0, "127.0.0.1");
  await once(launcher, "listening");
  project.provide("liveServerLauncher", `http://127.0.0.1:${(launcher.address() as AddressInfo).port}`);
  return async () => {
    launcher.close();
    if (servers === null) return;
    const [plain, secure] = await servers;
    await secure[Symbol.asyncDispose]();
    await plain[Symbol.asyncDispose]();
  };
}
