/**
 * A head start for the next answer. While the silence that ends a turn still runs, the transcript is mostly known, and so
 * is what the session will ask for: the same as last time, with the last answer and these words behind it. The answer is
 * begun on that guess, and held back. If the session then asks for exactly this, what is ready comes out at once;
 * otherwise nobody ever learns of it.
 */
import type { Clock } from "../../util/clock.ts";
import type { ConversationItem, EngineEvent, ResponseRequest, ResponseWishes } from "../engine.ts";
import type { Answer, AnswerOptions } from "./answer.ts";
import { chatMessages } from "./history.ts";

type ResponseEvent = Extract<EngineEvent, { readonly responseId: string }>;

interface Guess {
  readonly signature: string;
  readonly answer: Answer;
  readonly done: Promise<void>;
  readonly startMs: number;
  readonly cancelTimer: () => void;
  held: ResponseEvent[];
  /** Set when the session has asked for it. */
  release: ((event: ResponseEvent) => void) | null;
}

const PLAIN_REQUEST: ResponseRequest = {
  responseId: "",
  items: [],
  instructions: "",
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
/** A guess that nobody asks for in this time was wrong. */
const GUESS_MS = 4_000;

export class HeadStart {
  readonly #clock: Clock;
  readonly #start: (request: ResponseRequest, emit: AnswerOptions["emit"]) => Answer;
  readonly #voice: string | null;
  /** What was asked for last; before the first time, what a session without wishes asks for. */
  #last: ResponseRequest;
  #said = "";
  #guess: Guess | null = null;

  /**
   * @param voice the default one
   * @param start makes an answer, for the guess to run
   */
  constructor(
    clock: Clock,
    voice: string | null,
    start: (request: ResponseRequest, emit: AnswerOptions["emit"]) => Answer,
  ) {
    this.#clock = clock;
    this.#voice = voice;
    this.#start = start;
    this.#last = { ...PLAIN_REQUEST, voice };
  }
  /** What the session's settings say of responses, now. */
  expect(wishes: Partial<ResponseWishes>): void {
    this.#last = { ...this.#last, ...wishes };
  }
  /** What the session really asked for. */
  asked(request: ResponseRequest): void {
    this.#last = request;
    this.#said = "";
  }
  /** What came out of the last answer. */
  answered(event: EngineEvent): void {
    if (event.type === "response.text" && event.responseId === this.#last.responseId) this.#said += event.delta;
    if (event.type === "response.speech" && event.responseId === this.#last.responseId) this.#said += event.text;
  }
  /** These will probably be the user's words. */
  begin(words: string): void {
    this.drop();
    if (words === "") return;
    const request = this.#expected(this.#last, words);
    const held: ResponseEvent[] = [];
    const answer = this.#start(request, (event) => this.#take(guess, event as ResponseEvent));
    const guess: Guess = {
      signature: this.#signature(request),
      answer,
      done: answer.run(),
      startMs: this.#clock.nowMs(),
      cancelTimer: this.#clock.schedule(GUESS_MS, () => this.drop()),
      held,
      release: null,
    };
    this.#guess = guess;
  }
  /** The guess was wrong. */
  drop(): void {
    this.#guess?.cancelTimer();
    this.#guess?.answer.cancel();
    this.#guess = null;
  }
  /** The answer that was begun, if it is the one that is asked for; what is ready comes out at once. */
  adopt(
    request: ResponseRequest,
    emit: (event: EngineEvent) => void,
  ): { readonly answer: Answer; readonly done: Promise<void> } | null {
    const guess = this.#guess;
    const failed = guess?.held.some((event) => event.type === "response.ended" && event.status === "failed") ?? true;
    if (guess === null || failed || guess.signature !== this.#signature(request)) {
      this.drop();
      return null;
    }
    this.#guess = null;
    guess.cancelTimer();
    const { responseId } = request;
    const startMs = this.#clock.nowMs() - guess.startMs;
    guess.release = (event) => {
      // Its time line begins with the request; what was ready before was ready then.
      if (event.type === "response.mark") emit({ ...event, responseId, ms: Math.max(0, event.ms - startMs) });
      else emit({ ...event, responseId });
    };
    const { held } = guess;
    guess.held = [];
    for (const event of held) guess.release(event);
    return guess;
  }

  #take(guess: Guess, event: ResponseEvent): void {
    if (guess.release === null) guess.held.push(event);
    else guess.release(event);
  }
  #expected(last: ResponseRequest, words: string): ResponseRequest {
    const item = (role: "user" | "assistant", transcript: string): ConversationItem => ({
      type: "message",
      id: "",
      role,
      content: [{ type: "audio", transcript }],
      interrupted: false,
    });
    const answer = this.#said.trim() === "" ? [] : [item("assistant", this.#said)];
    return { ...last, responseId: "", items: [...last.items, ...answer, item("user", words)] };
  }
  /** Equal for requests that the model and the voice cannot tell apart. */
  #signature(request: ResponseRequest): string {
    const { items: _items, responseId: _responseId, ...rest } = request;
    const messages = chatMessages(request).map((message) =>
      "text" in message ? { ...message, text: message.text.replace(/\s+/g, " ").trim() } : message,
    );
    const wishes = Object.entries({ ...rest, voice: rest.voice ?? this.#voice }).sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([wishes, messages]);
  }
}
