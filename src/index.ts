/** What other programs may use: a server of their own, and the contract of an engine. */
export { type Config, type ConfigSources, loadConfig } from "./config.ts";
export type {
  Engine,
  EngineCapabilities,
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
} from "./engines/engine.ts";
export { AppError, type ErrorCode } from "./errors.ts";
export { engineLoader, type LoadEngineOptions } from "./server/load-engine.ts";
export { type RealtimeSessionsOptions, realtimeSessions } from "./server/realtime-sessions.ts";
export { createServer, type LoadEngine, type Server, type ServerOptions } from "./server/server.ts";
export { createLog, type Log } from "./util/log.ts";
