/** Smart Turn v3.2 in its own process. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { Lane } from "../lane.ts";
import type { SmartTurnTable } from "./smart-turn-worker.ts";
import type { TurnModel } from "./turn.ts";

export class SmartTurn implements TurnModel {
  readonly name = "smart-turn";
  readonly #worker: WorkerClient<SmartTurnTable>;
  readonly #lane = new Lane("turn");

  constructor(worker: WorkerClient<SmartTurnTable>) {
    this.#worker = worker;
  }
  static async load(path: string, log: Log): Promise<SmartTurn> {
    const module = new URL("./smart-turn-worker.ts", import.meta.url);
    const options = { path };
    return new SmartTurn(await WorkerHost.start<SmartTurnTable>({ name: "turn", stage: "turn", module, options, log }));
  }
  complete(pcm: Float32Array, signal?: AbortSignal): Promise<number> {
    return this.#lane.run(false, signal, () => this.#worker.call("complete", { pcm }, { signal }));
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}
