/**
 * An engine without models: hears by loudness, understands always the same, answers with a tone. For tests whose subject
 * is the way between a microphone and a loudspeaker.
 */
import type {
  Engine,
  EngineCapabilities,
  EngineCommand,
  EngineEvent,
  EngineStream,
  ResponseRequest,
} from "../../src/engines/engine.ts";
import { Queue } from "../../src/util/queue.ts";
import { CAPABILITIES, USAGE } from "./scripted-engine.ts";

export interface TalkingOptions {
  readonly transcript: string;
  /** Each word is one clause of 400 ms. */
  readonly answer: string;
}

const WORD_SAMPLES = 9_600;
const LOUD = 0.02;
const ONSET_MS = 60;
const SILENCE_MS = 400;

class TalkingStream implements EngineStream {
  readonly events: Queue<EngineEvent> = new Queue(100_000);
  readonly backlogSamples = 0;
  readonly #options: TalkingOptions;
  readonly #requests: ResponseRequest[];
  #isListening: boolean;
  #pushedSamples = 0;
  #loudMs = 0;
  #quietMs = 0;
  #segmentId: string | null = null;
  #segmentCount = 0;

  constructor(options: TalkingOptions, requests: ResponseRequest[], isListening: boolean) {
    this.#options = options;
    this.#requests = requests;
    this.#isListening = isListening;
  }
  push(pcm: Float32Array): void {
    this.#pushedSamples += pcm.length;
    if (!this.#isListening) return;
    const ms = pcm.length / 16;
    const loudness = Math.sqrt(pcm.reduce((sum, x) => sum + x * x, 0) / pcm.length);
    this.#loudMs = loudness > LOUD ? this.#loudMs + ms : 0;
    this.#quietMs = loudness > LOUD ? 0 : this.#quietMs + ms;
    const atSample = this.#pushedSamples;
    if (this.#segmentId === null && this.#loudMs >= ONSET_MS) {
      this.#segmentId = `segment_${++this.#segmentCount}`;
      this.events.push({ type: "speech.started", segmentId: this.#segmentId, startSample: atSample, atSample });
    } else if (this.#segmentId !== null && this.#quietMs >= SILENCE_MS) {
      const segmentId = this.#segmentId;
      this.#segmentId = null;
      this.events.push({ type: "speech.stopped", segmentId, endSample: atSample, atSample });
      this.#transcribe(segmentId);
    }
  }
  send(command: EngineCommand): void {
    if (command.type === "settings.set") this.#isListening = command.settings.turnDetection.type !== "none";
    if (command.type === "input.commit") this.#transcribe(command.segmentId);
    if (command.type === "respond") {
      this.#requests.push(command.request);
      this.#answer(command.request.responseId);
    }
  }
  finish(): void {
    this.events.close();
  }
  [Symbol.asyncDispose](): Promise<void> {
    this.events.close();
    return Promise.resolve();
  }
  #transcribe(segmentId: string): void {
    const { transcript } = this.#options;
    this.events.push({ type: "transcript.completed", segmentId, text: transcript, audioSeconds: 1 });
  }
  #answer(responseId: string): void {
    for (const word of this.#options.answer.split(" ")) {
      const pcm = Float32Array.from(
        { length: WORD_SAMPLES },
        (_, i) => 0.3 * Math.sin((2 * Math.PI * 440 * i) / 24_000),
      );
      this.events.push({ type: "response.speech", responseId, text: `${word} `, pcm, hz: 24_000 });
    }
    this.events.push({
      type: "response.ended",
      responseId,
      status: "completed",
      reason: null,
      usage: USAGE,
      error: null,
    });
  }
}

export class TalkingEngine implements Engine {
  readonly capabilities: EngineCapabilities = { ...CAPABILITIES, sessionsMax: 100 };
  readonly #options: TalkingOptions;
  openStreams = 0;
  /** What all sessions asked for. */
  readonly requests: ResponseRequest[] = [];
  constructor(options: TalkingOptions) {
    this.#options = options;
  }
  open(settings: { readonly turnDetection: { readonly type: string } }): Promise<EngineStream> {
    this.openStreams += 1;
    const stream = new TalkingStream(this.#options, this.requests, settings.turnDetection.type !== "none");
    const dispose = stream[Symbol.asyncDispose].bind(stream);
    stream[Symbol.asyncDispose] = () => {
      this.openStreams -= 1;
      return dispose();
    };
    return Promise.resolve(stream);
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
