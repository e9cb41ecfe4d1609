/** Silero VAD v5 in its own process. If that fails for good, loudness decides until it is back: nobody goes deaf. */
import type { Log } from "../../../util/log.ts";
import { WorkerHost } from "../../../workers/host.ts";
import type { WorkerClient } from "../../../workers/runtime.ts";
import { EnergyVadStream } from "./energy.ts";
import type { SileroState, SileroTable } from "./silero-worker.ts";
import type { Vad, VadStream } from "./vad.ts";

export class SileroVad implements Vad {
  readonly name = "silero";
  readonly #worker: WorkerClient<SileroTable>;
  readonly #log: Log;

  constructor(worker: WorkerClient<SileroTable>, log: Log) {
    this.#worker = worker;
    this.#log = log;
  }
  static async load(path: string, log: Log): Promise<SileroVad> {
    const module = new URL("./silero-worker.ts", import.meta.url);
    const options = { path };
    return new SileroVad(
      await WorkerHost.start<SileroTable>({
        name: "vad",
        stage: "vad",
        module,
        options,
        log,
        limits: { waitMs: 3_000 },
      }),
      log,
    );
  }
  stream(): VadStream {
    return new SileroVadStream(this.#worker, this.#log);
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#worker[Symbol.asyncDispose]());
  }
}

/**
 * Noise without speech drives the recurrent state to where it hears the next words too late. It starts anew after this
 * many quiet frames (2 s), at a moment when there is nothing to lose.
 */
const RESET_FRAMES = 63;
const QUIET_PROBABILITY = 0.15;

class SileroVadStream implements VadStream {
  readonly #worker: WorkerClient<SileroTable>;
  readonly #log: Log;
  readonly #loudness = new EnergyVadStream();
  #state: SileroState | null = null;
  #quietFrames = 0;

  constructor(worker: WorkerClient<SileroTable>, log: Log) {
    this.#worker = worker;
    this.#log = log;
  }
  async push(frames: Float32Array): Promise<Float32Array> {
    const byLoudness = await this.#loudness.push(frames);
    const call = () => this.#worker.call("push", { frames, state: this.#state });
    try {
      // Once more after a death: the new process takes the same frames and state.
      const { probabilities, state } = await call().catch(call);
      this.#state = state;
      this.#refresh(probabilities);
      return probabilities;
    } catch (error) {
      this.#log.error({ reason: error instanceof Error ? error.message : String(error) }, "vad failed; using loudness");
      return byLoudness;
    }
  }
  #refresh(probabilities: Float32Array): void {
    for (const probability of probabilities) {
      this.#quietFrames = probability < QUIET_PROBABILITY ? this.#quietFrames + 1 : 0;
    }
    if (this.#quietFrames < RESET_FRAMES || this.#state === null) return;
    this.#quietFrames = 0;
    this.#state = { recurrent: new Float32Array(this.#state.recurrent.length), context: this.#state.context };
  }
}
