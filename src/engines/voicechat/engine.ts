/** VoiceChat behind the engine contract: the model in a process of its own, one live stream for each session. */
import { freemem } from "node:os";
import { basename } from "node:path";
import { AppError, CapacityError, ClientError, ConfigError, toAppError } from "../../errors.ts";
import type { Precision } from "../../onnx/quantized.ts";
import type { Provider } from "../../onnx/runtime.ts";
import { type IdSource, randomId } from "../../util/ids.ts";
import type { Log } from "../../util/log.ts";
import { Queue } from "../../util/queue.ts";
import { WorkerHost } from "../../workers/host.ts";
import type { WorkerClient } from "../../workers/runtime.ts";
import type {
  Engine,
  EngineCapabilities,
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
} from "../engine.ts";
import type { EngineMethods, ModelFacts, StreamPart } from "./engine-worker.ts";

export interface VoiceChatEngineOptions {
  /** The checkpoint. */
  readonly directory: string;
  /** The id under which it is served; the directory's name by default. */
  readonly alias?: string | null;
  readonly sessionsMax?: number;
  /** How long a session may last: it gathers memory as it goes. */
  readonly sessionSeconds: number;
  readonly precision?: Precision;
  readonly provider?: Provider;
  readonly threads: number;
  readonly log: Log;
  readonly ids?: IdSource;
  /** Gives up loading. */
  readonly signal?: AbortSignal | undefined;
}

/** A checkpoint of the published size may take minutes from a cold disk. */
const LOAD_MS = 15 * 60_000;

export class VoiceChatEngine implements Engine {
  readonly capabilities: EngineCapabilities;
  readonly #worker: WorkerClient<EngineMethods>;
  readonly #frameSamples: number;
  readonly #ids: IdSource;
  readonly #log: Log;
  #openCount = 0;

  constructor(worker: WorkerClient<EngineMethods>, facts: ModelFacts, options: VoiceChatEngineOptions) {
    this.#worker = worker;
    this.#frameSamples = facts.frameSamples;
    this.#ids = options.ids ?? randomId;
    this.#log = options.log;
    this.capabilities = {
      turnTaking: "model",
      acceptsText: false,
      acceptsImages: false,
      tools: false,
      inputHz: facts.inputHz,
      outputHz: facts.outputHz,
      sessionsMax: options.sessionsMax ?? 1,
      models: [options.alias ?? basename(options.directory)],
      voices: [],
    };
  }
  /** @throws {EngineError} when the checkpoint does not load; {ConfigError} when memory has no room for the sessions. */
  static async load(options: VoiceChatEngineOptions): Promise<VoiceChatEngine> {
    const { directory, precision = "exact", provider = "cpu", threads, sessionSeconds, log } = options;
    const worker = await WorkerHost.start<EngineMethods>({
      name: "voicechat",
      stage: "engine",
      module: new URL(import.meta.url.endsWith(".ts") ? "./engine-worker.ts" : "./engine-worker.js", import.meta.url),
      options: { directory, precision, provider, threads },
      log,
      limits: { loadMs: LOAD_MS },
      signal: options.signal,
    });
    try {
      requireRoom(await worker.call("sessionBytes", { seconds: sessionSeconds }), options);
      const facts = await worker.call("describe", null);
      return new VoiceChatEngine(worker, facts, options);
    } catch (error) {
      await worker[Symbol.asyncDispose]();
      throw error;
    }
  }
  get recovering(): readonly string[] {
    return this.#worker.isReady ? [] : ["the model process, which died and is started again"];
  }
  async open(settings: EngineSettings, signal: AbortSignal): Promise<EngineStream> {
    const { sessionsMax } = this.capabilities;
    if (this.#openCount >= sessionsMax) {
      throw new CapacityError("server_busy", `all ${sessionsMax} VoiceChat sessions are in use`, { retryable: true });
    }
    this.#openCount += 1;
    const streamId = this.#ids("stream");
    const release = (): void => this.#release(streamId);
    const { systemPrompt, seed, maxStreamingSeconds } = settings;
    try {
      await this.#worker.call("open", { streamId, systemPrompt, seed, maxStreamingSeconds }, { signal });
    } catch (error) {
      // The process may have opened it just before it heard of the abort.
      release();
      throw error;
    }
    return new LiveStream(this.#worker, streamId, this.capabilities.inputHz, this.#frameSamples, release);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker[Symbol.asyncDispose]();
  }
  #release(streamId: string): void {
    this.#openCount -= 1;
    // A process that died has forgotten it already.
    this.#worker.call("close", { streamId }).catch((error: unknown) => {
      this.#log.debug({ code: toAppError(error).code }, "the stream was gone");
    });
  }
}

/** One session is served even where it might not last its time: it says so. More are asked for by a number. */
function requireRoom(sessionBytes: number, { sessionsMax = 1, sessionSeconds, log }: VoiceChatEngineOptions): void {
  const freeBytes = freemem();
  if (sessionBytes * sessionsMax <= freeBytes) return;
  const gigabytes = (bytes: number): string => `${(bytes / 1e9).toPrecision(3)} GB`;
  const cost = `a session of ${sessionSeconds} s may come to hold ${gigabytes(sessionBytes)}, and ${gigabytes(freeBytes)} are free beside the model`;
  const fitting = Math.floor(freeBytes / sessionBytes);
  if (sessionsMax > 1)
    throw new ConfigError(
      "config_invalid",
      `--max-sessions ${sessionsMax}: ${cost}; ask for at most ${Math.max(1, fitting)}`,
    );
  log.warn({ sessionBytes, freeBytes }, `${cost}: a long one may end for want of memory`);
}

/** The session sees to it that little is pushed ahead; this only bounds what a fault could cost. */
const EVENTS_MAX = 65_536;

class LiveStream implements EngineStream {
  readonly #worker: WorkerClient<EngineMethods>;
  readonly #streamId: string;
  readonly #inputHz: number;
  readonly #frameSamples: number;
  readonly #release: () => void;
  readonly #events = new Queue<EngineEvent>(EVENTS_MAX);
  readonly #abort = new AbortController();
  #answeredFrames = 0;
  #pushedSamples = 0;
  #consumedSamples = 0;
  #ended = false;
  /** What was asked for runs in order, one slice at a time. */
  #tail: Promise<void> = Promise.resolve();

  constructor(
    worker: WorkerClient<EngineMethods>,
    streamId: string,
    inputHz: number,
    frameSamples: number,
    release: () => void,
  ) {
    this.#worker = worker;
    this.#streamId = streamId;
    this.#inputHz = inputHz;
    this.#frameSamples = frameSamples;
    this.#release = release;
  }
  get events(): AsyncIterable<EngineEvent> {
    return this.#events;
  }
  get backlogSamples(): number {
    return this.#pushedSamples - this.#consumedSamples;
  }
  push(pcm: Float32Array): void {
    this.#pushedSamples += pcm.length;
    const endSample = this.#pushedSamples;
    this.#enqueue(async () => {
      try {
        await this.#pushSlices(pcm);
        this.#emit({ type: "input.consumed", endSample });
      } catch (error) {
        this.#emit({ type: "input.refused", endSample, error: toAppError(error) });
      } finally {
        this.#consumedSamples = endSample;
      }
    });
  }
  send(command: EngineCommand): void {
    switch (command.type) {
      case "input.finish":
        this.#end("flush", { streamId: this.#streamId, padPartial: command.padPartial });
        break;
      case "input.abort":
        this.#end("cancel", { streamId: this.#streamId });
        break;
      case "settings.set":
      case "playback":
        return;
      default:
        throw new ClientError(
          "capability_missing",
          `a full-duplex model takes no ${command.type}; it listens and speaks`,
        );
    }
  }
  finish(): void {
    this.send({ type: "input.finish", padPartial: true });
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(new AppError("engine_failed", "the session has ended"));
    this.#ended = true;
    this.#events.close();
    await this.#tail;
    this.#release();
  }
  /** One call for each frame, so that its events are out before the next one is computed. */
  async #pushSlices(pcm: Float32Array): Promise<void> {
    for (let at = 0; at < pcm.length; at += this.#frameSamples) {
      const samples = pcm.slice(at, at + this.#frameSamples);
      await this.#call("push", { streamId: this.#streamId, samples, sampleHz: this.#inputHz });
    }
  }
  #end<Name extends "flush" | "cancel">(name: Name, input: EngineMethods[Name]["input"]): void {
    this.#enqueue(async () => {
      if (this.#ended) return;
      this.#ended = true;
      try {
        await this.#call(name, input);
      } catch (error) {
        // What is gone is as good as cancelled.
        if (name === "cancel") this.#emit({ type: "frame.cancelled", frameIndex: this.#answeredFrames });
        else this.#emit({ type: "failed", error: toAppError(error) });
      }
      this.#events.close();
    });
  }
  #call<Name extends "push" | "flush" | "cancel">(name: Name, input: EngineMethods[Name]["input"]): Promise<null> {
    const onPart = (part: StreamPart): void => {
      if (part.type === "timing") this.#answeredFrames = part.timing.frameIndex + 1;
      this.#emit(engineEvent(part));
    };
    return this.#worker.call(name, input, { signal: this.#abort.signal, onPart }) as Promise<null>;
  }
  #enqueue(run: () => Promise<void>): void {
    this.#tail = this.#tail.then(() => (this.#abort.signal.aborted ? undefined : run()));
  }
  #emit(event: EngineEvent): void {
    if (this.#abort.signal.aborted || this.#events.push(event) || this.#events.closed) return;
    this.#events.fail(new AppError("internal_error", `${EVENTS_MAX} events of the model wait to be read`));
  }
}

function engineEvent(part: StreamPart): EngineEvent {
  if (part.type === "timing") {
    const { frameIndex, totalMs, perceptionMs, rnntMs, languageMs, ttsMs, codecMs } = part.timing;
    const stageMs = { perception: perceptionMs, rnnt: rnntMs, language: languageMs, tts: ttsMs, codec: codecMs };
    return { type: "frame.timing", frameIndex, totalMs, stageMs };
  }
  const { event } = part;
  switch (event.kind) {
    case "assistant_text_delta":
    case "function_delta": {
      const { frameIndex, tokenId, delta, text } = event;
      return {
        type: event.kind === "function_delta" ? "frame.function" : "frame.text",
        frameIndex,
        tokenId,
        delta,
        text,
      };
    }
    case "user_transcript_delta":
      return { type: "frame.transcript", frameIndex: event.frameIndex, delta: event.delta, text: event.text };
    case "audio": {
      const { frameIndex, samples, hz, audioCodes } = event;
      return { type: "frame.audio", frameIndex, pcm: samples, hz, audioCodes };
    }
    default:
      return { type: event.kind === "done" ? "frame.done" : "frame.cancelled", frameIndex: event.frameIndex };
  }
}
