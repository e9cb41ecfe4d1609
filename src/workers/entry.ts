/**
 * The child's main file: loads the worker module that the host names, then answers its calls. The process ends when the
 * host does; signals sent to the whole process group are left to the host, which drains first.
 */
import type { CallContext, MethodTable, Runtime, WorkerModule } from "./runtime.ts";
import { type FromWorker, plainError, type ToWorker } from "./wire.ts";

const running = new Map<number, AbortController>();
let runtime: Runtime<MethodTable> | null = null;

function send(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

async function load(moduleUrl: string, options: unknown): Promise<void> {
  try {
    const module = (await import(moduleUrl)) as WorkerModule<unknown, MethodTable>;
    runtime = await module.load(options);
    send({ type: "ready", methods: Object.keys(runtime) });
  } catch (error) {
    send({ type: "load-failed", error: plainError(error) });
  }
}

async function call(id: number, name: string, input: unknown): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const context: CallContext<unknown> = {
    signal: abort.signal,
    emit: (part) => {
      if (!abort.signal.aborted) send({ type: "part", id, part });
    },
  };
  try {
    const method = runtime?.[name];
    if (method === undefined) throw new Error(`the worker has no method ${name}`);
    const output = await method(input, context);
    if (!abort.signal.aborted) send({ type: "result", id, output });
  } catch (error) {
    if (!abort.signal.aborted) send({ type: "error", id, error: plainError(error) });
  } finally {
    running.delete(id);
  }
}

process.on("message", (message: ToWorker) => {
  if (message.type === "load") void load(message.moduleUrl, message.options);
  else if (message.type === "call") void call(message.id, message.name, message.input);
  else running.get(message.id)?.abort();
});
process.on("disconnect", () => process.exit(0));
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
