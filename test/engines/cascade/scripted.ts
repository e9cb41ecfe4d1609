/**
 * Stages without models. The detector reads its probability from the samples themselves, so a test writes speech as
 * numbers; the others answer when the test says so.
 */

import { Cascade } from "../../../src/engines/cascade/cascade.ts";
import type { Llm, LlmPart, LlmRequest } from "../../../src/engines/cascade/llm/llm.ts";
import type { Stt, SttRequest } from "../../../src/engines/cascade/stt/stt.ts";
import type { SpokenChunk, Tts, TtsRequest } from "../../../src/engines/cascade/tts/tts.ts";
import type { TurnModel } from "../../../src/engines/cascade/turn/turn.ts";
import { VAD_FRAME_SAMPLES, type Vad } from "../../../src/engines/cascade/vad/vad.ts";
import type {
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
  ResponseRequest,
} from "../../../src/engines/engine.ts";
import { ManualClock } from "../../../src/util/clock.ts";
import { countingIds } from "../../../src/util/ids.ts";
import { silentLog } from "../../../src/util/log.ts";

export const HZ = 16_000;

/** A promise that the test settles. */
export class Gate<T> {
  resolve: (value: T) => void = () => {};
  reject: (error: unknown) => void = () => {};
  readonly promise: Promise<T>;
  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }
}

export class ScriptedVad implements Vad {
  readonly name = "scripted";
  calls = 0;
  stream(): ReturnType<Vad["stream"]> {
    return {
      push: async (frames) => {
        this.calls += 1;
        return Float32Array.from({ length: frames.length / VAD_FRAME_SAMPLES }, (_, i) =>
          Math.abs(frames[i * VAD_FRAME_SAMPLES] ?? 0),
        );
      },
    };
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export class ScriptedStt implements Stt {
  readonly name = "scripted";
  segmentSecondsMax = 12;
  partials = false;
  readonly requests: SttRequest[] = [];
  /** How the next requests are answered; by default at once, with the text. */
  answer: (request: SttRequest) => Promise<string> = async () => "hello there";
  transcribe(request: SttRequest): Promise<string> {
    this.requests.push(request);
    return this.answer(request);
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export class ScriptedLlm implements Llm {
  readonly name = "scripted";
  images = false;
  local = false;
  tools: "native" | "prompted" = "native";
  readonly requests: LlmRequest[] = [];
  readonly forgotten: string[] = [];
  answer: (request: LlmRequest) => AsyncIterable<LlmPart> = () => says("Hello. ", "How are you?");
  generate(request: LlmRequest): AsyncIterable<LlmPart> {
    this.requests.push(request);
    return this.answer(request);
  }
  forget(key: string): void {
    this.forgotten.push(key);
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export const END: LlmPart = {
  type: "end",
  reason: "stop",
  usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 5 },
};

export async function* says(...deltas: string[]): AsyncIterable<LlmPart> {
  for (const delta of deltas) yield { type: "text", delta };
  yield END;
}

export async function* parts(...list: LlmPart[]): AsyncIterable<LlmPart> {
  yield* list;
}

/** One sample per character, so that a test sees what was said. */
export class ScriptedTts implements Tts {
  readonly name = "scripted";
  readonly voices: readonly string[] = ["ann", "bob"];
  readonly hz = 22_050;
  readonly requests: TtsRequest[] = [];
  answer: (request: TtsRequest) => AsyncIterable<SpokenChunk> = async function* (request) {
    yield { pcm: new Float32Array(request.text.length).fill(0.5), hz: 22_050 };
  };
  speak(request: TtsRequest): AsyncIterable<SpokenChunk> {
    this.requests.push(request);
    return this.answer(request);
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export class ScriptedTurn implements TurnModel {
  readonly name = "scripted";
  readonly asked: Float32Array[] = [];
  answer: () => Promise<number> = async () => 1;
  complete(pcm: Float32Array): Promise<number> {
    this.asked.push(pcm);
    return this.answer();
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export const SERVER_VAD = { type: "server_vad", threshold: 0.5, prefixPaddingMs: 300, silenceMs: 500 } as const;

export const SETTINGS: EngineSettings = {
  turnDetection: SERVER_VAD,
  transcription: { model: null, language: null, prompt: null },
  systemPrompt: "",
  seed: 0,
  maxStreamingSeconds: null,
};

export const REQUEST: ResponseRequest = {
  responseId: "resp_1",
  items: [
    { type: "message", id: "item_1", role: "user", content: [{ type: "text", text: "Hi." }], interrupted: false },
  ],
  instructions: "Be kind.",
  modalities: ["audio"],
  voice: null,
  speed: 1,
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: true,
  temperature: null,
  outputTokensMax: null,
  truncation: "auto",
};

/** Lets everything happen that waits for nothing. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** `ms` of audio whose frames have this speech probability. */
export const audio = (ms: number, probability: number): Float32Array =>
  new Float32Array(Math.round((ms * HZ) / 1000)).fill(probability);

export class ScriptedStages {
  readonly vad: ScriptedVad = new ScriptedVad();
  readonly turn: ScriptedTurn = new ScriptedTurn();
  readonly stt: ScriptedStt = new ScriptedStt();
  readonly llm: ScriptedLlm = new ScriptedLlm();
  readonly tts: ScriptedTts = new ScriptedTts();
}

/** One open session on scripted stages, and what came out of it. */
export class ScriptedSession {
  readonly stages: ScriptedStages;
  readonly clock: ManualClock;
  readonly cascade: Cascade;
  readonly stream: EngineStream;
  readonly events: EngineEvent[] = [];
  /** Settles when the events end. */
  readonly reading: Promise<void>;

  constructor(stages: ScriptedStages, clock: ManualClock, cascade: Cascade, stream: EngineStream) {
    this.stages = stages;
    this.clock = clock;
    this.cascade = cascade;
    this.stream = stream;
    this.reading = this.#read();
  }
  send(command: EngineCommand): void {
    this.stream.send(command);
  }
  respond(request: Partial<ResponseRequest> = {}): void {
    this.stream.send({ type: "respond", request: { ...REQUEST, ...request } });
  }
  /** Pushes audio and lets it be heard. */
  async hear(...chunks: Float32Array[]): Promise<void> {
    for (const chunk of chunks) this.stream.push(chunk);
    await settle();
  }
  types(): string[] {
    return this.events.filter(({ type }) => type !== "response.mark").map(({ type }) => type);
  }
  of<Type extends EngineEvent["type"]>(type: Type): Extract<EngineEvent, { type: Type }>[] {
    return this.events.filter((event): event is Extract<EngineEvent, { type: Type }> => event.type === type);
  }
  async #read(): Promise<void> {
    for await (const event of this.stream.events) this.events.push(event);
  }
}

export async function openScripted(
  settings: EngineSettings = SETTINGS,
  adjust: (stages: ScriptedStages) => void = () => {},
): Promise<ScriptedSession> {
  const stages = new ScriptedStages();
  adjust(stages);
  const clock = new ManualClock();
  const ids = countingIds();
  const cascade = new Cascade({ stages, sessionsMax: 2, models: ["test"], log: silentLog, clock, ids });
  const stream = await cascade.open(settings, new AbortController().signal);
  return new ScriptedSession(stages, clock, cascade, stream);
}
