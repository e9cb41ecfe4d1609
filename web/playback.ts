/** The assistant's voice where events bring it: a worklet plays it on the audio clock. */
import { unreachable } from "./connection.ts";
import { Meter } from "./meter.ts";

export interface PlaybackOptions {
  /** The rate of what is pushed. */
  readonly inputHz: number;
  /** A stream that never ends, silence included: what is quiet may be left out to catch up, and only sound is playing. */
  readonly isLive: boolean;
  playing(isPlaying: boolean): void;
  /** `clear` cut `itemId` after this much of it. */
  cleared?(itemId: string, playedMs: number): void;
}

type Message =
  | { readonly type: "playing"; readonly isPlaying: boolean }
  | { readonly type: "cleared"; readonly itemId: string; readonly playedMs: number };

export class Playback {
  readonly #node: AudioWorkletNode;
  readonly #meter: Meter;

  /** @throws {TalkFailure} where the worklet cannot be fetched. */
  static async open(audio: AudioContext, options: PlaybackOptions): Promise<Playback> {
    await audio.audioWorklet.addModule(new URL("./playback-worklet.js", import.meta.url)).catch((error) => {
      throw unreachable(error);
    });
    return new Playback(audio, options);
  }

  private constructor(audio: AudioContext, { inputHz, isLive, playing, cleared }: PlaybackOptions) {
    this.#node = new AudioWorkletNode(audio, "playback", {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { inputHz, isLive },
    });
    this.#node.connect(audio.destination);
    this.#node.port.onmessage = ({ data }: MessageEvent<Message>) => {
      if (data.type === "playing") playing(data.isPlaying);
      else cleared?.(data.itemId, data.playedMs);
    };
    this.#meter = new Meter(this.#node);
  }

  push(itemId: string, samples: Float32Array<ArrayBuffer>): void {
    this.#node.port.postMessage({ type: "push", itemId, samples }, [samples.buffer]);
  }
  clear(): void {
    this.#node.port.postMessage({ type: "clear" });
  }
  level(): number {
    return this.#meter.level();
  }
  close(): void {
    this.#node.disconnect();
  }
}
