/**
 * Cancellation as ownership. A scope owns children, resources and tasks; it ends once, from the inside out, and nothing
 * that it owns outlives it. Cancelling drops the queues that it owns, so late output has nowhere to go.
 */
import { assert } from "./assert.ts";

/** Why a scope ended. `closed` is the ordinary end. */
export type CancelReason = "closed" | "barge-in" | "client" | "timeout" | "shutdown" | "failed" | "replaced";

export class ScopeCancelled extends Error {
  override readonly name = "ScopeCancelled";
  readonly reason: CancelReason;
  constructor(scopeName: string, reason: CancelReason) {
    super(`${scopeName} ended: ${reason}`);
    this.reason = reason;
  }
}

export interface ScopeOptions {
  /** Called for each task that rejects with anything but a cancellation. Default: the scope's end rejects with it. */
  readonly onTaskError?: (error: unknown, taskName: string) => void;
}

export class Scope implements AsyncDisposable {
  readonly name: string;
  readonly #abort = new AbortController();
  readonly #parent: Scope | null;
  readonly #onTaskError: ((error: unknown, taskName: string) => void) | undefined;
  readonly #children = new Set<Scope>();
  readonly #tasks = new Set<Promise<void>>();
  #resources: AsyncDisposable[] = [];
  #ending: Promise<void> | null = null;

  constructor(name: string, options: ScopeOptions = {}, parent: Scope | null = null) {
    this.name = name;
    this.#parent = parent;
    this.#onTaskError = options.onTaskError ?? (parent === null ? undefined : parent.#onTaskError);
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  get ended(): boolean {
    return this.#ending !== null;
  }
  /** A scope that ends no later than this one. */
  child(name: string, options: ScopeOptions = {}): Scope {
    assert(!this.ended, `scope ${this.name} has ended`);
    const child = new Scope(`${this.name}/${name}`, options, this);
    this.#children.add(child);
    return child;
  }
  /** Disposes of `resource` when the scope ends; the last owned goes first. */
  own<T extends AsyncDisposable>(resource: T): T {
    assert(!this.ended, `scope ${this.name} has ended`);
    this.#resources.push(resource);
    return resource;
  }
  /** Runs a task whose end the scope's end waits for. */
  spawn(name: string, task: (signal: AbortSignal) => Promise<void>): void {
    assert(!this.ended, `scope ${this.name} has ended`);
    const running = task(this.signal)
      .catch((error: unknown) => {
        if (error instanceof ScopeCancelled || this.signal.aborted) return;
        if (this.#onTaskError === undefined) throw error;
        this.#onTaskError(error, name);
      })
      .finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }
  /** Ends the scope. Idempotent: the first reason stands, and every caller waits for the same end. */
  cancel(reason: CancelReason): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.cancel("closed");
  }
  async #end(reason: CancelReason): Promise<void> {
    this.#abort.abort(new ScopeCancelled(this.name, reason));
    const children = await Promise.allSettled([...this.#children].map((child) => child.cancel(reason)));
    const tasks = await Promise.allSettled([...this.#tasks]);
    const resources: PromiseSettledResult<void>[] = [];
    for (const resource of this.#resources.reverse()) {
      resources.push(...(await Promise.allSettled([resource[Symbol.asyncDispose]()])));
    }
    this.#resources = [];
    if (this.#parent !== null) this.#parent.#children.delete(this);
    const failed = [...children, ...tasks, ...resources].find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
