/** One session on the cascade: an ear that listens always, and the answers that are being given. */
import { ClientError } from "../../errors.ts";
import type { Clock } from "../../util/clock.ts";
import type { IdSource } from "../../util/ids.ts";
import type { Log } from "../../util/log.ts";
import { Queue } from "../../util/queue.ts";
import type {
  EngineCommand,
  EngineEvent,
  EngineSettings,
  EngineStream,
  ResponseRequest,
  ResponseWishes,
} from "../engine.ts";
import { Answer } from "./answer.ts";
import { Ear } from "./ear.ts";
import { HeadStart } from "./head-start.ts";
import type { Stages } from "./stages.ts";

export interface CascadeStreamOptions {
  readonly stages: Stages;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly ids: IdSource;
  /** Whether nobody else is being answered. */
  readonly idle: () => boolean;
  /** Called once, when the stream has ended. */
  readonly onEnd: () => void;
}

/** A reader that falls this far behind has stopped reading. */
const EVENTS_MAX = 100_000;

export class CascadeStream implements EngineStream {
  readonly #options: CascadeStreamOptions;
  readonly #key: string;
  readonly #events = new Queue<EngineEvent>(EVENTS_MAX);
  readonly #ear: Ear;
  readonly #headStart: HeadStart;
  readonly #answers = new Map<string, { readonly answer: Answer; readonly done: Promise<void> }>();
  #finished = false;
  #closed = false;

  constructor(options: CascadeStreamOptions) {
    const { stages, settings, clock, log, ids } = options;
    this.#options = options;
    this.#key = ids("stream");
    this.#headStart = new HeadStart(clock, stages.tts.voices[0] ?? null, (request, emit) =>
      this.#answer(request, emit),
    );
    this.#headStart.expect(wishes(settings));
    this.#ear = new Ear({
      vad: stages.vad,
      turn: stages.turn,
      stt: stages.stt,
      settings,
      clock,
      log,
      segmentId: () => ids("seg"),
      onGuess: (text) => this.#guess(text),
      emit: (event) => this.#emit(event),
    });
  }
  get events(): AsyncIterable<EngineEvent> {
    return this.#events;
  }
  /** Whether an answer is being given. */
  get answering(): boolean {
    return this.#answers.size > 0;
  }
  get backlogSamples(): number {
    return this.#ear.backlogSamples;
  }
  push(pcm: Float32Array): void {
    if (!this.#finished) this.#ear.push(pcm);
  }
  transcribe(segmentId: string, pcm: Float32Array): void {
    if (!this.#finished) this.#ear.transcribe(segmentId, pcm);
  }
  send(command: EngineCommand): void {
    if (this.#closed) return;
    if (command.type === "respond") this.#respond(command.request);
    else if (command.type === "cancel") this.#cancel(command.responseId);
    else if (this.#finished) return;
    else if (command.type === "settings.set") this.#set(command.settings);
    else if (command.type === "input.commit") this.#ear.order({ type: "commit", segmentId: command.segmentId });
    else if (command.type === "input.clear") this.#ear.order({ type: "clear" });
    else if (command.type === "playback") this.#ear.order({ type: "playback", audible: command.audible });
    else throw new ClientError("capability_missing", `the cascade takes no ${command.type}; it ends turns by itself`);
  }
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#ear.order({ type: "end" });
    void this.#drain();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#finished = true;
    this.#ear.close();
    this.#headStart.drop();
    for (const { answer } of this.#answers.values()) answer.cancel();
    this.#events.close();
    this.#options.stages.llm.forget(this.#key);
    this.#options.onEnd();
  }

  #respond(request: ResponseRequest): void {
    const { stages } = this.#options;
    const { responseId } = request;
    if (this.#answers.has(responseId)) {
      throw new ClientError("conversation_already_has_active_response", `The response ${responseId} runs already.`);
    }
    requireCapable(request, stages);
    const emit = (event: EngineEvent): void => {
      this.#headStart.answered(event);
      this.#emit(event);
    };
    this.#headStart.asked(request);
    let running = this.#headStart.adopt(request, emit);
    if (running === null) {
      const answer = this.#answer(request, emit);
      running = { answer, done: answer.run() };
    }
    const done = running.done.finally(() => this.#answers.delete(responseId));
    this.#answers.set(responseId, { answer: running.answer, done });
  }
  #set(settings: EngineSettings): void {
    this.#headStart.expect(wishes(settings));
    this.#ear.order({ type: "settings", settings });
  }
  /** What came out and was not read yet goes too. */
  #cancel(responseId: string): void {
    this.#answers.get(responseId)?.answer.cancel();
    for (const event of this.#events.clear()) {
      if (!("responseId" in event) || event.responseId !== responseId) this.#events.push(event);
    }
  }
  #answer(request: ResponseRequest, emit: (event: EngineEvent) => void): Answer {
    const { stages, clock, log } = this.#options;
    const { llm, tts } = stages;
    return new Answer({ request, sessionKey: this.#key, llm, tts, clock, log, emit });
  }
  /** Speculation costs work: only where the work is our own, and nobody else waits for it. */
  #guess(text: string | null): void {
    if (text === null) this.#headStart.drop();
    else if (this.#options.stages.llm.local && !this.#closed && this.#options.idle()) this.#headStart.begin(text);
  }
  /** What was asked for is still answered, then the events end. */
  async #drain(): Promise<void> {
    await this.#ear.settled();
    while (this.#answers.size > 0) await Promise.all([...this.#answers.values()].map(({ done }) => done));
    await this[Symbol.asyncDispose]();
  }
  #emit(event: EngineEvent): void {
    if (this.#closed || this.#events.push(event)) return;
    this.#options.log.error({ eventsMax: EVENTS_MAX }, "nobody reads the engine's events; the stream ends");
    void this[Symbol.asyncDispose]();
  }
}

const wishes = ({ responses, systemPrompt }: EngineSettings): Partial<ResponseWishes> =>
  responses ?? { instructions: systemPrompt ?? "" };

function requireCapable({ items, voice }: ResponseRequest, { llm, tts }: Stages): void {
  const images = items.some((item) => item.type === "message" && item.content.some(({ type }) => type === "image"));
  if (images && !llm.images) {
    throw new ClientError("capability_missing", `The language model ${llm.name} does not see images.`);
  }
  if (voice !== null && tts.voices.length > 0 && !tts.voices.includes(voice)) {
    throw new ClientError("invalid_value", `There is no voice ${voice}; there are ${tts.voices.join(", ")}.`, "voice");
  }
}
