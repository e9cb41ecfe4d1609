/** What all language models behind an HTTP service share: their options, and an answer that streams in as JSON. */
import { UpstreamError } from "../../../errors.ts";
import { Remote, type RemoteOptions } from "../remote.ts";
import { fitService } from "./estimate.ts";
import { eventData } from "./event-stream.ts";
import type { ChatMessage, Llm, LlmPart, LlmRequest } from "./llm.ts";

export interface LlmServiceOptions extends RemoteOptions {
  readonly model: string;
  readonly images: boolean;
  readonly tools: Llm["tools"];
  /** What is assumed of a context whose size the service does not tell. */
  readonly contextTokens: number;
}

export abstract class LlmService implements Llm {
  readonly name: string;
  readonly local = false;
  readonly images: boolean;
  readonly tools: Llm["tools"];
  readonly #remote: Remote;
  readonly #contextTokens: number;

  constructor({ model, images, tools, contextTokens, ...options }: LlmServiceOptions) {
    this.name = model;
    this.images = images;
    this.tools = tools;
    this.#contextTokens = contextTokens;
    this.#remote = new Remote(options);
  }
  abstract generate(request: LlmRequest): AsyncIterable<LlmPart>;
  forget(): void {}
  async [Symbol.asyncDispose](): Promise<void> {}

  /** Posts what `body` makes of the messages that fit; yields the answer's events as far as they come. */
  protected async *events<Event>(
    path: string,
    request: LlmRequest,
    body: (messages: readonly ChatMessage[]) => object,
  ): AsyncIterable<Event> {
    const { signal } = request;
    const messages = fitService(request, this.#contextTokens);
    const response = await this.#remote.post({ path, body: body(messages), signal });
    for await (const data of eventData(this.#remote.chunks(response, signal))) {
      if (data === "[DONE]") return;
      yield this.#parse<Event>(data);
    }
  }
  /** `what`: "broke off its answer". */
  protected failure(
    what: string,
    options: { readonly cause?: unknown; readonly retryable?: boolean } = {},
  ): UpstreamError {
    return new UpstreamError("upstream_failed", `${this.#remote.host} ${what}.`, options);
  }
  #parse<Event>(data: string): Event {
    try {
      return JSON.parse(data) as Event;
    } catch (cause) {
      throw this.failure("sent an event that is not JSON", { cause });
    }
  }
}
