/** A runtime in the caller's own process, behind the same door as a worker: for tests, and for stages without a model. */
import { assert } from "../util/assert.ts";
import type { CallOptions, MethodTable, Runtime, WorkerClient } from "./runtime.ts";

export class LocalWorker<Table extends MethodTable> implements WorkerClient<Table> {
  readonly isReady = true;
  readonly #runtime: Runtime<Table>;
  constructor(runtime: Runtime<Table>) {
    this.#runtime = runtime;
  }
  async call<Name extends keyof Table & string>(
    name: Name,
    input: Table[Name]["input"],
    options: CallOptions<Table[Name]["part"]> = {},
  ): Promise<Table[Name]["output"]> {
    const method = this.#runtime[name];
    assert(method !== undefined, `the worker has no method ${name}`);
    const signal = options.signal ?? new AbortController().signal;
    signal.throwIfAborted();
    const emit = (part: Table[Name]["part"]): void => {
      if (!signal.aborted) options.onPart?.(part);
    };
    let onAbort = (): void => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([method(input, { signal, emit }), aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}
