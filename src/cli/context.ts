/** What a command is given: where it writes, and what the configuration says. */
import type { ModelStoreOptions } from "../models/store.ts";

export interface CliOutput {
  write(text: string): void;
  readonly isTty: boolean;
  /** Width of the terminal; 80 where there is none. */
  readonly columns: number;
}

export interface CliContext {
  /** What the command prints; a program may read it. */
  readonly stdout: CliOutput;
  /** Progress, warnings and errors, for people. */
  readonly stderr: CliOutput;
  /** Whether colour may be used on a terminal: false when NO_COLOR is set. */
  readonly color: boolean;
  readonly models: ModelStoreOptions;
  /** Aborted by SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}
