/** An engine that says just what a test tells it to, and remembers what it was told. */
import type {
  Engine,
  EngineCapabilities,
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
  ResponseRequest,
} from "../../src/engines/engine.ts";
import type { AppError } from "../../src/errors.ts";
import { Queue } from "../../src/util/queue.ts";

export const CAPABILITIES: EngineCapabilities = {
  turnTaking: "server",
  acceptsText: true,
  acceptsImages: true,
  tools: true,
  inputHz: 16_000,
  outputHz: 24_000,
  sessionsMax: 8,
  models: ["scripted"],
  voices: ["joe", "amy"],
};

export const USAGE = { inputTokens: 20, cachedInputTokens: 5, outputTokens: 7 } as const;

export class ScriptedStream implements EngineStream {
  readonly events: Queue<EngineEvent> = new Queue(100_000);
  readonly commands: EngineCommand[] = [];
  readonly settings: EngineSettings;
  pushedSamples = 0;
  backlogSamples = 0;
  disposed = false;
  /** Where events go at once; by default they are read from `events`. */
  deliver: (event: EngineEvent) => void = (event) => void this.events.push(event);

  constructor(settings: EngineSettings) {
    this.settings = settings;
  }
  push(pcm: Float32Array): void {
    this.pushedSamples += pcm.length;
  }
  send(command: EngineCommand): void {
    this.commands.push(command);
  }
  /** Recordings that wait for their transcript. */
  readonly recordings: { readonly segmentId: string; readonly samples: number }[] = [];
  transcribe(segmentId: string, pcm: Float32Array): void {
    this.recordings.push({ segmentId, samples: pcm.length });
  }
  finish(): void {
    this.events.close();
  }
  [Symbol.asyncDispose](): Promise<void> {
    this.disposed = true;
    this.events.close();
    return Promise.resolve();
  }

  get requests(): ResponseRequest[] {
    return this.commands.flatMap((command) => (command.type === "respond" ? [command.request] : []));
  }
  get lastRequest(): ResponseRequest {
    return this.requests.at(-1) as ResponseRequest;
  }
  get cancelled(): string[] {
    return this.commands.flatMap((command) => (command.type === "cancel" ? [command.responseId] : []));
  }

  // ------------------------------------------------------------------------------------------------ what happens

  startSpeech(segmentId: string, startSample: number = this.pushedSamples): void {
    this.deliver({ type: "speech.started", segmentId, startSample, atSample: this.pushedSamples });
  }
  stopSpeech(segmentId: string): void {
    this.deliver({ type: "speech.stopped", segmentId, endSample: this.pushedSamples, atSample: this.pushedSamples });
  }
  hear(segmentId: string, delta: string): void {
    this.deliver({ type: "transcript.delta", segmentId, delta });
  }
  understand(segmentId: string, text: string): void {
    this.deliver({ type: "transcript.completed", segmentId, text, audioSeconds: 1 });
  }
  failTranscript(segmentId: string, error: AppError): void {
    this.deliver({ type: "transcript.failed", segmentId, error });
  }
  /** A whole turn of the user, from speech to transcript. */
  turn(segmentId: string, text: string): void {
    this.startSpeech(segmentId);
    this.stopSpeech(segmentId);
    this.understand(segmentId, text);
  }
  say(responseId: string, text: string, ms: number): void {
    this.deliver({ type: "response.speech", responseId, text, pcm: new Float32Array(ms * 24), hz: 24_000 });
  }
  write(responseId: string, delta: string): void {
    this.deliver({ type: "response.text", responseId, delta });
  }
  call(responseId: string, callId: string, name: string, argumentsJson: string): void {
    this.deliver({ type: "tool.started", responseId, callId, name });
    this.deliver({ type: "tool.delta", responseId, callId, delta: argumentsJson });
    this.deliver({ type: "tool.completed", responseId, callId, name, argumentsJson });
  }
  end(
    responseId: string,
    status: "completed" | "incomplete" | "failed" = "completed",
    error: AppError | null = null,
  ): void {
    const reason = status === "incomplete" ? "max_output_tokens" : null;
    this.deliver({ type: "response.ended", responseId, status, reason, usage: USAGE, error });
  }
}

export class ScriptedEngine implements Engine {
  readonly capabilities: EngineCapabilities;
  readonly streams: ScriptedStream[] = [];
  constructor(capabilities: Partial<EngineCapabilities> = {}) {
    this.capabilities = { ...CAPABILITIES, ...capabilities };
  }
  open(settings: EngineSettings): Promise<EngineStream> {
    const stream = new ScriptedStream(settings);
    this.streams.push(stream);
    return Promise.resolve(stream);
  }
  get stream(): ScriptedStream {
    return this.streams.at(-1) as ScriptedStream;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
