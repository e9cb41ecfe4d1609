/** Recognizers of sherpa-onnx in their own process, one call at a time, finals first. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { Lane } from "../lane.ts";
import type { RecognizerKind, RecognizerOptions } from "../sherpa.ts";
import type { SherpaSttTable } from "./sherpa-stt-worker.ts";
import type { Stt, SttRequest } from "./stt.ts";

/** What each model takes at once: Moonshine was trained on short speech, Whisper hears 30 s at most. */
const SECONDS_MAX: Readonly<Record<RecognizerKind, number>> = {
  moonshine: 12,
  "parakeet-tdt": 24,
  whisper: 28,
  paraformer: 20,
};

export class SherpaStt implements Stt {
  readonly name: string;
  readonly segmentSecondsMax: number;
  readonly partials = true;
  readonly #worker: WorkerClient<SherpaSttTable>;
  readonly #lane = new Lane("stt");

  constructor(kind: RecognizerKind, worker: WorkerClient<SherpaSttTable>) {
    this.name = kind;
    this.segmentSecondsMax = SECONDS_MAX[kind];
    this.#worker = worker;
  }
  static async load(options: RecognizerOptions, log: Log): Promise<SherpaStt> {
    const module = new URL("./sherpa-stt-worker.ts", import.meta.url);
    const worker = await WorkerHost.start<SherpaSttTable>({ name: "stt", stage: "stt", module, options, log });
    return new SherpaStt(options.kind, worker);
  }
  transcribe({ pcm, language, urgency, signal }: SttRequest): Promise<string> {
    return this.#lane.run(urgency === "final", signal, () =>
      this.#worker.call("transcribe", { pcm, language }, { signal }),
    );
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}
