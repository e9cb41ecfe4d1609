/** The whole server around the talking engine, on a free port. */
import { expect } from "vitest";
import { loadConfig } from "../../src/config.ts";
import { realtimeSessions } from "../../src/server/realtime-sessions.ts";
import { createServer, type Server } from "../../src/server/server.ts";
import { silentLog } from "../../src/util/log.ts";
import { TalkingEngine } from "./talking-engine.ts";

export const TRANSCRIPT = "What is the capital of France?";
/** Twelve seconds of voice: long enough to be interrupted. */
const ANSWER: string = Array.from({ length: 30 }, (_, i) => `word${i}`).join(" ");

export async function talkingServer(
  flags: Record<string, string> = {},
): Promise<{ readonly server: Server; readonly engine: TalkingEngine }> {
  const config = loadConfig({ env: {}, flags: { port: "0", logLevel: "silent", ...flags } });
  const engine = new TalkingEngine({ transcript: TRANSCRIPT, answer: ANSWER });
  const server = await createServer({
    config,
    load: () => Promise.resolve(engine),
    sessions: realtimeSessions({ config, log: silentLog }),
    log: silentLog,
  });
  await server.listen();
  await server.ready;
  return { server, engine };
}

/**
 * Until no call is open. A peer that closes without a data channel is noticed by ICE alone, which with the time that a
 * lost peer is waited for makes 18 s on an idle machine.
 */
export async function allCallsEnded(engine: TalkingEngine): Promise<void> {
  await expect.poll(() => engine.openStreams, { timeout: 60_000 }).toBe(0);
}
