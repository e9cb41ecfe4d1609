/**
 * One supervised child process with one loaded model. Calls in flight fail when the child dies; it is started again with
 * growing pauses, and later calls wait for the new one, within a limit. Nothing that a child says can hurt the host.
 */
import type { ChildProcess } from "node:child_process";
import { EngineError, type EngineStage } from "../errors.ts";
import { assert } from "../util/assert.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import type { Log } from "../util/log.ts";
import { forkModule, runnable } from "./fork.ts";
import type { CallOptions, MethodTable, WorkerClient } from "./runtime.ts";
import { StderrLines } from "./stderr-lines.ts";
import { engineError, type FromWorker, type ToWorker } from "./wire.ts";

export interface WorkerOptions {
  /** For logs and messages. */
  readonly name: string;
  readonly stage: EngineStage;
  /** The worker module: `new URL("./x-worker.ts", import.meta.url)`. */
  readonly module: URL;
  /** Passed to the module's `load`; must survive a structured clone. */
  readonly options: unknown;
  readonly log: Log;
  readonly clock?: Clock;
  readonly limits?: Partial<WorkerLimits>;
  /** Gives up the first load. */
  readonly signal?: AbortSignal | undefined;
}

export interface WorkerLimits {
  /** Loading may take this long. */
  readonly loadMs: number;
  /** How long a call waits for a child that is being restarted. */
  readonly waitMs: number;
  /** Pause before a restart: doubles from the first to the last with each death, and starts anew after a calm minute. */
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  /** Calls in flight; further ones are refused. */
  readonly callsMax: number;
  /** How long the child may take to end. */
  readonly stopMs: number;
}

const LIMITS: WorkerLimits = {
  loadMs: 120_000,
  waitMs: 15_000,
  backoffMs: 100,
  backoffMaxMs: 5_000,
  callsMax: 4_096,
  stopMs: 2_000,
};
const CALM_MS = 60_000;
const ENTRY = new URL("./entry.ts", import.meta.url);

interface Pending {
  readonly onPart: ((part: unknown) => void) | undefined;
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Child {
  readonly process: ChildProcess;
  readonly pending: Map<number, Pending>;
  readyAtMs: number | null;
}

export class WorkerHost<Table extends MethodTable> implements WorkerClient<Table> {
  readonly #options: WorkerOptions;
  readonly #limits: WorkerLimits;
  readonly #clock: Clock;
  readonly #log: Log;
  #child: Child | null = null;
  #nextId = 1;
  #deaths = 0;
  #disposed = false;
  #cancelRestart: () => void = () => {};
  /** Calls that wait for a child to be ready. */
  readonly #waiting = new Set<() => void>();

  private constructor(options: WorkerOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log.with({ worker: options.name });
  }

  /** Starts the process and loads its model. @throws {EngineError} when the model does not load; the signal's reason. */
  static async start<Table extends MethodTable>(options: WorkerOptions): Promise<WorkerHost<Table>> {
    const host = new WorkerHost<Table>(options);
    const { signal } = options;
    signal?.throwIfAborted();
    // Half a model is nothing to wait for.
    const giveUp = (): void => void host.#child?.process.kill("SIGKILL");
    signal?.addEventListener("abort", giveUp);
    const spawned = host.#spawn();
    const process = host.#child?.process;
    try {
      await spawned;
    } catch (error) {
      // A terminal gives Ctrl-C to both: a child that is not yet ready for it dies of it, at times before this process hears.
      if (signal !== undefined && process?.signalCode === "SIGINT") await abortedWithin(signal, host.#limits.stopMs);
      await host[Symbol.asyncDispose]();
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return host;
  }
  get isReady(): boolean {
    return this.#readyChild() !== null;
  }
  /** The id of the running process, or null while it restarts. */
  get pid(): number | null {
    return this.#readyChild()?.process.pid ?? null;
  }
  async call<Name extends keyof Table & string>(
    name: Name,
    input: Table[Name]["input"],
    options: CallOptions<Table[Name]["part"]> = {},
  ): Promise<Table[Name]["output"]> {
    options.signal?.throwIfAborted();
    const child = this.#readyChild() ?? (await this.#nextChild(options.signal));
    if (child.pending.size >= this.#limits.callsMax) throw this.#error("engine_failed", "has too many calls in flight");
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      const { signal } = options;
      const settle = (): void => {
        child.pending.delete(id);
        signal?.removeEventListener("abort", onAbort);
      };
      const onAbort = (): void => {
        settle();
        this.#send(child, { type: "cancel", id });
        reject(signal?.reason);
      };
      child.pending.set(id, {
        onPart: options.onPart as Pending["onPart"],
        resolve: (output) => {
          settle();
          resolve(output);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#send(child, { type: "call", id, name, input });
    });
  }
  /** Ends the process. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#cancelRestart();
    for (const wake of [...this.#waiting]) wake();
    const child = this.#child;
    this.#child = null;
    if (child === null || child.process.exitCode !== null || child.process.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.process.once("exit", () => resolve()));
    const cancelKill = systemClock.schedule(this.#limits.stopMs, () => child.process.kill("SIGKILL"));
    if (child.process.connected) child.process.disconnect();
    await ended;
    cancelKill();
  }

  #readyChild(): Child | null {
    return this.#child !== null && this.#child.readyAtMs !== null ? this.#child : null;
  }
  async #nextChild(signal: AbortSignal | undefined): Promise<Child> {
    assert(!this.#disposed, `worker ${this.#options.name} is stopped`);
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        cancelTimer();
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const cancelTimer = this.#clock.schedule(this.#limits.waitMs, wake);
      signal?.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
    signal?.throwIfAborted();
    const child = this.#readyChild();
    if (child === null) throw this.#error("worker_died", "has not come back in time");
    return child;
  }

  async #spawn(): Promise<void> {
    const process = forkModule(ENTRY, [], ["ignore", "pipe", "pipe", "ipc"]);
    const child: Child = { process, pending: new Map(), readyAtMs: null };
    this.#child = child;
    const lines = new StderrLines((line) => this.#log.info({ line }, "worker output"));
    process.stderr?.on("data", (chunk: Buffer) => lines.push(chunk));
    process.stdout?.on("data", (chunk: Buffer) => lines.push(chunk));
    await new Promise<void>((resolve, reject) => {
      const cancelTimer = this.#clock.schedule(this.#limits.loadMs, () => {
        reject(this.#error("engine_failed", `did not load within ${this.#limits.loadMs} ms`));
        process.kill("SIGKILL");
      });
      const loaded = (error: unknown): void => {
        cancelTimer();
        if (error === null) resolve();
        else reject(error);
      };
      process.on("error", () => this.#died(child, loaded));
      process.on("exit", () => this.#died(child, loaded));
      process.on("message", (message: FromWorker) => this.#receive(child, message, loaded));
      this.#send(child, { type: "load", moduleUrl: runnable(this.#options.module), options: this.#options.options });
    });
  }
  #receive(child: Child, message: FromWorker, loaded: (error: unknown) => void): void {
    if (message.type === "ready") {
      child.readyAtMs = this.#clock.nowMs();
      loaded(null);
      for (const wake of [...this.#waiting]) wake();
      return;
    }
    if (message.type === "load-failed") {
      loaded(engineError(this.#options.stage, message.error));
      return;
    }
    const pending = child.pending.get(message.id);
    if (pending === undefined) return;
    if (message.type === "part") pending.onPart?.(message.part);
    else if (message.type === "result") pending.resolve(message.output);
    else pending.reject(engineError(this.#options.stage, message.error));
  }
  #died(child: Child, loaded: (error: unknown) => void): void {
    const error = this.#error("worker_died", "ended");
    loaded(error);
    for (const pending of [...child.pending.values()]) pending.reject(error);
    if (this.#child !== child) return;
    this.#child = null;
    if (this.#disposed) return;
    const { exitCode, signalCode } = child.process;
    if (child.readyAtMs !== null && this.#clock.nowMs() - child.readyAtMs > CALM_MS) this.#deaths = 0;
    const delayMs = Math.min(this.#limits.backoffMaxMs, this.#limits.backoffMs * 2 ** this.#deaths);
    this.#deaths += 1;
    // A process that never loaded is its starter's affair, unless it is a restart.
    if (child.readyAtMs === null && this.#deaths === 1) return;
    this.#log.error({ exitCode, signal: signalCode, calls: child.pending.size, delayMs }, "worker ended; restarting");
    this.#cancelRestart = this.#clock.schedule(delayMs, () => {
      this.#spawn().then(
        () => this.#log.info({ pid: this.pid }, "worker is back"),
        (failure: unknown) => this.#restartFailed(failure),
      );
    });
  }
  /** A child that says that it cannot load still runs: ending it leads to the next try. */
  #restartFailed(failure: unknown): void {
    this.#log.error({ reason: failure instanceof Error ? failure.message : String(failure) }, "worker did not load");
    this.#child?.process.kill("SIGKILL");
  }
  #send(child: Child, message: ToWorker): void {
    if (!child.process.connected) return;
    child.process.send(message, (error) => {
      if (error !== null && message.type === "call") {
        child.pending.get(message.id)?.reject(this.#error("worker_died", "cannot be reached"));
      }
    });
  }
  #error(code: "worker_died" | "engine_failed", what: string): EngineError {
    const message = `The ${this.#options.name} process ${what}; try again.`;
    return new EngineError(this.#options.stage, message, { code, retryable: true });
  }
}

async function abortedWithin(signal: AbortSignal, limitMs: number): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      cancelTimer();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancelTimer = systemClock.schedule(limitMs, done);
    signal.addEventListener("abort", done);
  });
}
