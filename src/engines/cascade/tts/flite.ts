/** flite's small voices, at 16 kHz (kal 8 kHz): robotic, tiny, and the same on every machine. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { Lane } from "../lane.ts";
import type { FliteTable } from "./flite-worker.ts";
import type { SpokenChunk, Tts, TtsRequest } from "./tts.ts";

const VOICES = ["slt", "rms", "awb", "kal"];

export class FliteTts implements Tts {
  readonly name = "flite";
  readonly voices: readonly string[] = VOICES;
  readonly hz = 16_000;
  readonly #worker: WorkerClient<FliteTable>;
  readonly #lane = new Lane("tts");

  constructor(worker: WorkerClient<FliteTable>) {
    this.#worker = worker;
  }
  /** @param path of flite.wasm */
  static async load(path: string, log: Log): Promise<FliteTts> {
    const module = new URL("./flite-worker.ts", import.meta.url);
    const worker = await WorkerHost.start<FliteTable>({ name: "tts", stage: "tts", module, options: { path }, log });
    for (const voice of VOICES) await worker.call("speak", { text: "Hello.", voice, speed: 1 });
    return new FliteTts(worker);
  }
  async *speak({ text, voice, speed, urgency, signal }: TtsRequest): AsyncIterable<SpokenChunk> {
    const chosen = voice ?? VOICES[0] ?? "slt";
    yield await this.#lane.run(urgency === "first", signal, () =>
      this.#worker.call("speak", { text, voice: chosen, speed }, { signal }),
    );
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}
