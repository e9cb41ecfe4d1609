/** The local language model in its own process. */

import type { Log } from "../../../util/log.ts";
import { Queue } from "../../../util/queue.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import type { LlamaTable, LlamaWorkerOptions } from "./llama-worker.ts";
import type { Llm, LlmPart, LlmRequest } from "./llm.ts";

/** More parts than a model's context has tokens. */
const PARTS_MAX = 1_000_000;

export class LocalLlm implements Llm {
  readonly name: string;
  readonly local = true;
  readonly images = false;
  readonly tools: Llm["tools"];
  readonly #worker: WorkerClient<LlamaTable>;

  constructor(name: string, tools: Llm["tools"], worker: WorkerClient<LlamaTable>) {
    this.name = name;
    this.tools = tools;
    this.#worker = worker;
  }
  static async load(name: string, tools: Llm["tools"], options: LlamaWorkerOptions, log: Log): Promise<LocalLlm> {
    const module = new URL("./llama-worker.ts", import.meta.url);
    const worker = await WorkerHost.start<LlamaTable>({ name: "llm", stage: "llm", module, options, log });
    return new LocalLlm(name, tools, worker);
  }
  /** Of the process, or null while it restarts or where there is none of its own. */
  get pid(): number | null {
    return this.#worker instanceof WorkerHost ? this.#worker.pid : null;
  }
  async *generate({ signal, ...request }: LlmRequest): AsyncIterable<LlmPart> {
    const parts = new Queue<LlmPart>(PARTS_MAX);
    const left = new AbortController();
    this.#worker
      .call("generate", request, {
        signal: AbortSignal.any([signal, left.signal]),
        onPart: (part) => parts.push(part),
      })
      .then(
        () => parts.close(),
        (error: unknown) => parts.fail(error),
      );
    try {
      yield* parts;
    } finally {
      left.abort(new Error("nobody reads the answer any more"));
    }
  }
  forget(sessionKey: string): void {
    this.#worker.call("forget", sessionKey).catch(() => {});
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}
