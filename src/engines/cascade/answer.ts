/**
 * One response: the model's text goes clause by clause to the voice while the model still writes. It owns its abort
 * signal; once cancelled, nothing of it comes out any more.
 */
import { type AppError, toAppError } from "../../errors.ts";
import type { Clock } from "../../util/clock.ts";
import type { Log } from "../../util/log.ts";
import { Stopwatch } from "../../util/stopwatch.ts";
import type { EngineEvent, ResponseRequest, ResponseStage, TokenUsage } from "../engine.ts";
import { chatMessages } from "./history.ts";
import type { Llm, LlmEndReason, LlmPart } from "./llm/llm.ts";
import { guardedParts } from "./llm/tool-guard.ts";
import { SpeechStream } from "./tts/speech-stream.ts";
import type { Tts } from "./tts/tts.ts";

export interface AnswerOptions {
  readonly request: ResponseRequest;
  readonly sessionKey: string;
  readonly llm: Llm;
  readonly tts: Tts;
  readonly clock: Clock;
  readonly log: Log;
  readonly emit: (event: EngineEvent) => void;
}

interface Outcome {
  readonly reason: LlmEndReason;
  readonly usage: TokenUsage;
}

const NO_USAGE: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };

export class Answer {
  readonly #options: AnswerOptions;
  readonly #abort = new AbortController();
  readonly #watch: Stopwatch;
  /** There are words for the voice, and none of them has come out yet. */
  #awaitsVoice = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#watch = new Stopwatch(options.clock);
  }
  /** Nothing comes out after this. Idempotent. */
  cancel(): void {
    this.#abort.abort(new Error("the response was cancelled"));
  }
  /** Settles at the end; never rejects. */
  async run(): Promise<void> {
    const { request } = this.#options;
    try {
      const { reason, usage } = request.modalities.includes("audio") ? await this.#spoken() : await this.#written();
      const complete = reason === "stop";
      this.#end(complete ? "completed" : "incomplete", complete ? null : reason, usage, null);
    } catch (thrown) {
      const error = toAppError(thrown);
      if (!this.#abort.signal.aborted) {
        this.#options.log.warn({ code: error.code, responseId: request.responseId }, "response failed");
      }
      this.#end("failed", null, NO_USAGE, error);
    } finally {
      this.cancel();
    }
  }

  async #written(): Promise<Outcome> {
    const { responseId } = this.#options.request;
    return this.#generate((delta) => this.#emit({ type: "response.text", responseId, delta }));
  }
  async #spoken(): Promise<Outcome> {
    const { tts, request } = this.#options;
    const { responseId, voice, speed } = request;
    const signal = this.#abort.signal;
    const speech = new SpeechStream({ tts, voice, speed, signal, onClause: () => this.#mark("tts.first_clause") });
    const speaking = this.#speak(speech, responseId);
    const say = (delta: string): void => {
      this.#awaitsVoice ||= this.#watch.at("tts.first_audio") === undefined;
      speech.push(delta);
    };
    const generating = this.#generate(say).finally(() => speech.finish());
    // Whichever fails first ends the other.
    const stop = (error: unknown): never => {
      speech.cancel();
      this.#failFast.abort(error);
      throw error;
    };
    const [outcome] = await Promise.all([generating.catch(stop), speaking.catch(stop)]);
    return outcome;
  }
  /** Ends the model's work when the voice has failed. */
  readonly #failFast = new AbortController();

  async #speak(speech: SpeechStream, responseId: string): Promise<void> {
    for await (const { text, pcm, hz } of speech.chunks()) {
      if (pcm.length > 0) this.#mark("tts.first_audio");
      this.#awaitsVoice = false;
      this.#emit({ type: "response.speech", responseId, text, pcm, hz });
    }
  }
  async #generate(onText: (delta: string) => void): Promise<Outcome> {
    const { request, llm, sessionKey, log } = this.#options;
    const parts = guardedParts(
      llm,
      {
        sessionKey,
        messages: chatMessages(request),
        tools: request.tools,
        toolChoice: request.toolChoice,
        parallelToolCalls: request.parallelToolCalls,
        temperature: request.temperature,
        outputTokensMax: request.outputTokensMax,
        truncation: request.truncation,
        signal: AbortSignal.any([this.#abort.signal, this.#failFast.signal]),
      },
      log,
    );
    let outcome: Outcome = { reason: "stop", usage: NO_USAGE };
    let begun = false;
    for await (const part of parts) {
      this.#mark("llm.first_token");
      if (part.type === "end") outcome = part;
      else if (part.type !== "text") this.#tool(part);
      else {
        // Models put line breaks before a call, or before everything: no message begins with them.
        const delta: string = begun ? part.delta : part.delta.trimStart();
        begun ||= delta !== "";
        if (delta !== "") onText(delta);
      }
    }
    this.#mark("llm.done");
    return outcome;
  }
  #tool(part: Exclude<LlmPart, { type: "text" | "end" }>): void {
    const { responseId } = this.#options.request;
    // What is said before a call begins before it, although its voice is ready later.
    if (this.#awaitsVoice) {
      this.#emit({ type: "response.speech", responseId, text: "", pcm: new Float32Array(0), hz: this.#options.tts.hz });
    }
    this.#awaitsVoice = false;
    this.#emit({ ...part, responseId });
  }
  #mark(stage: ResponseStage): void {
    if (this.#watch.at(stage) !== undefined) return;
    this.#watch.mark(stage);
    const { responseId } = this.#options.request;
    this.#emit({ type: "response.mark", responseId, stage, ms: this.#watch.at(stage) ?? 0 });
  }
  #end(
    status: "completed" | "incomplete" | "failed",
    reason: "max_output_tokens" | "content_filter" | null,
    usage: TokenUsage,
    error: AppError | null,
  ): void {
    const { responseId } = this.#options.request;
    this.#emit({ type: "response.ended", responseId, status, reason, usage, error });
  }
  #emit(event: EngineEvent): void {
    if (!this.#abort.signal.aborted) this.#options.emit(event);
  }
}
