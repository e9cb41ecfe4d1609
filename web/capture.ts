/** The microphone where events carry it: chunks of PCM16, at the wire's rate. */
import { Meter } from "./meter.ts";

export interface CaptureOptions {
  readonly outputHz: number;
  readonly chunkMs: number;
  heard(chunk: Int16Array<ArrayBuffer>): void;
}

export class Capture {
  readonly #context: AudioContext;
  readonly #node: AudioWorkletNode;
  readonly #meter: Meter;

  static async open(microphone: MediaStream, options: CaptureOptions): Promise<Capture> {
    const context = contextFor(microphone, options.outputHz);
    await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    return new Capture(context, microphone, options);
  }

  private constructor(context: AudioContext, microphone: MediaStream, { outputHz, chunkMs, heard }: CaptureOptions) {
    this.#context = context;
    const source = context.createMediaStreamSource(microphone);
    this.#node = new AudioWorkletNode(context, "capture", {
      numberOfOutputs: 0,
      processorOptions: { outputHz, chunkSeconds: chunkMs / 1000 },
    });
    this.#node.port.onmessage = ({ data }: MessageEvent<Int16Array<ArrayBuffer>>) => heard(data);
    source.connect(this.#node);
    this.#meter = new Meter(source);
  }

  level(): number {
    return this.#meter.level();
  }
  close(): void {
    this.#node.port.onmessage = null;
    this.#node.disconnect();
    void this.#context.close();
  }
}

/** A context at the wire's rate, so that the browser resamples; some take only the microphone's own rate. */
function contextFor(microphone: MediaStream, sampleRate: number): AudioContext {
  const context = new AudioContext({ sampleRate, latencyHint: "interactive" });
  try {
    context.createMediaStreamSource(microphone).disconnect();
    return context;
  } catch {
    void context.close();
    return new AudioContext({ latencyHint: "interactive" });
  }
}
