/** Structured logs. A line carries codes, ids, counts and times; never a transcript, a prompt, audio or a key. */
import { type Logger as PinoLogger, pino } from "pino";

export type LogLevel = "silent" | "error" | "warn" | "info" | "debug" | "trace";

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  error(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  /** A log whose lines all carry `fields`. */
  with(fields: LogFields): Log;
}

class StructuredLog implements Log {
  readonly #pino: PinoLogger;
  constructor(inner: PinoLogger) {
    this.#pino = inner;
  }
  error(fields: LogFields, message: string): void {
    this.#pino.error(fields, message);
  }
  warn(fields: LogFields, message: string): void {
    this.#pino.warn(fields, message);
  }
  info(fields: LogFields, message: string): void {
    this.#pino.info(fields, message);
  }
  debug(fields: LogFields, message: string): void {
    this.#pino.debug(fields, message);
  }
  with(fields: LogFields): Log {
    return new StructuredLog(this.#pino.child(fields));
  }
}

/** JSON lines on standard error, so that standard output stays free for what a command prints. */
export function createLog(level: LogLevel, write: (line: string) => void = (line) => process.stderr.write(line)): Log {
  return new StructuredLog(pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write }));
}

export const silentLog: Log = createLog("silent");
