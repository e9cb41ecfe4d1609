/**
 * An engine without models that does everything a conversation needs, on media time: it hears by loudness, frame by
 * frame, understands always the same, answers word by word, calls the tool that it is told to, and can be cancelled.
 */
import type {
  Engine,
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
  ResponseRequest,
} from "../../src/engines/engine.ts";
import { Queue } from "../../src/util/queue.ts";
import { CAPABILITIES } from "./scripted-engine.ts";

const HZ = 16_000;
const FRAME_SAMPLES = HZ / 100;
const LOUD = 0.01;
const ONSET_FRAMES = 3;
const TRANSCRIPT = "What is the capital of France?";
const SHORT_WORDS = 5;
const LONG_WORDS = 400;
const WORD_SAMPLES = 2400;

class ConversingStream implements EngineStream {
  readonly events: Queue<EngineEvent> = new Queue(1_000_000);
  readonly backlogSamples = 0;
  #settings: EngineSettings;
  #rest = new Float32Array(0);
  #samples = 0;
  #loudFrames = 0;
  #quietFrames = 0;
  #segmentId: string | null = null;
  #segmentCount = 0;
  readonly #running = new Set<string>();

  constructor(settings: EngineSettings) {
    this.#settings = settings;
  }
  push(pcm: Float32Array): void {
    const all = new Float32Array(this.#rest.length + pcm.length);
    all.set(this.#rest);
    all.set(pcm, this.#rest.length);
    let from = 0;
    for (; from + FRAME_SAMPLES <= all.length; from += FRAME_SAMPLES) {
      this.#hear(all.subarray(from, from + FRAME_SAMPLES));
    }
    this.#rest = all.slice(from);
  }
  send(command: EngineCommand): void {
    if (command.type === "settings.set") this.#settings = command.settings;
    if (command.type === "input.commit") this.#transcribe(command.segmentId);
    if (command.type === "respond") void this.#respond(command.request);
    if (command.type === "cancel") this.#running.delete(command.responseId);
  }
  finish(): void {
    this.events.close();
  }
  [Symbol.asyncDispose](): Promise<void> {
    this.#running.clear();
    this.events.close();
    return Promise.resolve();
  }

  #hear(frame: Float32Array): void {
    this.#samples += FRAME_SAMPLES;
    const detection = this.#settings.turnDetection;
    if (detection.type === "none") return;
    const loud = Math.sqrt(frame.reduce((sum, x) => sum + x * x, 0) / frame.length) > LOUD;
    this.#loudFrames = loud ? this.#loudFrames + 1 : 0;
    this.#quietFrames = loud ? 0 : this.#quietFrames + 1;
    const atSample = this.#samples;
    const { prefixPaddingMs, silenceMs } =
      detection.type === "server_vad" ? detection : { prefixPaddingMs: 300, silenceMs: 500 };
    if (this.#segmentId === null && this.#loudFrames >= ONSET_FRAMES) {
      this.#segmentId = `segment_${++this.#segmentCount}`;
      const startSample = Math.max(0, atSample - ONSET_FRAMES * FRAME_SAMPLES - (prefixPaddingMs * HZ) / 1000);
      this.events.push({ type: "speech.started", segmentId: this.#segmentId, startSample, atSample });
    } else if (this.#segmentId !== null && this.#quietFrames * 10 >= silenceMs) {
      const segmentId = this.#segmentId;
      this.#segmentId = null;
      this.events.push({ type: "speech.stopped", segmentId, endSample: atSample, atSample });
      this.#transcribe(segmentId);
    }
  }
  #transcribe(segmentId: string): void {
    this.events.push({ type: "transcript.delta", segmentId, delta: TRANSCRIPT.slice(0, 12) });
    this.events.push({ type: "transcript.completed", segmentId, text: TRANSCRIPT, audioSeconds: 1.7 });
  }
  async #respond(request: ResponseRequest): Promise<void> {
    const { responseId, toolChoice, tools, outputTokensMax } = request;
    this.#running.add(responseId);
    const name =
      typeof toolChoice === "object" ? toolChoice.name : toolChoice === "required" ? tools[0]?.name : undefined;
    if (name !== undefined) {
      this.#call(responseId, name);
      this.#end(responseId, SHORT_WORDS, "completed");
      return;
    }
    const wanted = request.instructions.includes("hundred") ? LONG_WORDS : SHORT_WORDS;
    const words = Math.min(wanted, outputTokensMax ?? wanted);
    for (let i = 0; i < words; i++) {
      await new Promise(setImmediate);
      if (!this.#running.has(responseId)) return;
      this.#word(request, i);
    }
    this.#end(responseId, words, words < wanted ? "incomplete" : "completed");
  }
  #word({ responseId, modalities }: ResponseRequest, index: number): void {
    const text = `word${index} `;
    if (!modalities.includes("audio")) {
      this.events.push({ type: "response.text", responseId, delta: text });
      return;
    }
    const pcm = Float32Array.from({ length: WORD_SAMPLES }, (_, i) => 0.3 * Math.sin((2 * Math.PI * 440 * i) / 24_000));
    this.events.push({ type: "response.speech", responseId, text, pcm, hz: 24_000 });
  }
  #call(responseId: string, name: string): void {
    const callId = `call_${responseId}`;
    this.events.push({ type: "tool.started", responseId, callId, name });
    for (const delta of ['{"city":', '"Paris"}']) this.events.push({ type: "tool.delta", responseId, callId, delta });
    this.events.push({ type: "tool.completed", responseId, callId, name, argumentsJson: '{"city":"Paris"}' });
  }
  #end(responseId: string, outputTokens: number, status: "completed" | "incomplete"): void {
    if (!this.#running.delete(responseId)) return;
    const reason = status === "incomplete" ? "max_output_tokens" : null;
    const usage = { inputTokens: 20, cachedInputTokens: 0, outputTokens };
    this.events.push({ type: "response.ended", responseId, status, reason, usage, error: null });
  }
}

export const conversingEngine = (): Engine => ({
  capabilities: { ...CAPABILITIES, sessionsMax: 100 },
  open: (settings) => Promise.resolve(new ConversingStream(settings)),
  [Symbol.asyncDispose]: () => Promise.resolve(),
});
