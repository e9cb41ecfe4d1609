/** Voices of sherpa-onnx in their own process, one clause at a time, first clauses first. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { Lane } from "../lane.ts";
import type { VoiceOptions } from "../sherpa.ts";
import type { SherpaTtsTable } from "./sherpa-tts-worker.ts";
import type { SpokenChunk, Tts, TtsRequest } from "./tts.ts";

export interface SherpaTtsOptions extends VoiceOptions {
  /** Names of the speakers, by number; a model with more gets `speaker-N` for the rest. */
  readonly names: readonly string[];
}

export class SherpaTts implements Tts {
  readonly name: string;
  readonly voices: readonly string[];
  readonly hz: number;
  readonly #worker: WorkerClient<SherpaTtsTable>;
  readonly #lane = new Lane("tts");

  constructor(name: string, voices: readonly string[], hz: number, worker: WorkerClient<SherpaTtsTable>) {
    this.name = name;
    this.voices = voices;
    this.hz = hz;
    this.#worker = worker;
  }
  static async load({ names, ...options }: SherpaTtsOptions, log: Log): Promise<SherpaTts> {
    const module = new URL("./sherpa-tts-worker.ts", import.meta.url);
    const worker = await WorkerHost.start<SherpaTtsTable>({ name: "tts", stage: "tts", module, options, log });
    const { hz, speakers } = await worker.call("describe", null);
    const voices = Array.from({ length: Math.max(1, speakers) }, (_, i) => names[i] ?? `speaker-${i}`);
    return new SherpaTts(options.kind, voices, hz, worker);
  }
  async *speak({ text, voice, speed, urgency, signal }: TtsRequest): AsyncIterable<SpokenChunk> {
    const speaker = voice === null ? 0 : Math.max(0, this.voices.indexOf(voice));
    const pcm = await this.#lane.run(urgency === "first", signal, () =>
      this.#worker.call("speak", { text, speaker, speed }, { signal }),
    );
    yield { pcm, hz: this.hz };
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}
