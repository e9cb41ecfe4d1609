/** Recognizers of sherpa-onnx in their own process, one call at a time, finals first. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { Lane } from "../lane.ts";
import type { RecognizerKind, RecognizerOptions } from "../sherpa.ts";
import type { SherpaSttTable } from "./sherpa-stt-worker.ts";
import { STT_HZ, type Stt, type SttRequest } from "./stt.ts";

/** What each model takes at once: Moonshine was trained on short speech, Whisper hears 30 s at most. */
const SECONDS_MAX: Readonly<Record<RecognizerKind, number>> = {
  moonshine: 12,
  "parakeet-tdt": 24,
  whisper: 28,
  paraformer: 20,
};

/**
 * Silence that is added behind the speech: without it Moonshine mishears last words (24 % of the words of ten questions
 * in a robotic voice were wrong without, 12 % with it), and now and then hears nothing at all.
 */
const TAIL_SAMPLES = STT_HZ * 0.3;
/** Tried when nothing was heard in what must be speech. */
const LONG_TAIL_SAMPLES = STT_HZ * 0.46;
const DITHER = 0.001;

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
    const final = urgency === "final";
    return this.#lane.run(final, signal, async () => {
      const call = (tailSamples: number): Promise<string> =>
        this.#worker.call("transcribe", { pcm: withTail(pcm, tailSamples), language }, { signal });
      const text = await call(TAIL_SAMPLES);
      return text === "" && final ? call(LONG_TAIL_SAMPLES) : text;
    });
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}

/** Faint noise rather than zeros, which no microphone gives. The same every time. */
function withTail(pcm: Float32Array, tailSamples: number): Float32Array {
  const out = new Float32Array(pcm.length + tailSamples);
  out.set(pcm);
  for (let i = pcm.length; i < out.length; i++) out[i] = DITHER * Math.sin(i * i);
  return out;
}
