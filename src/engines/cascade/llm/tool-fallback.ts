/**
 * A service of which nobody knows whether its model takes tools. It is asked natively; where it refuses such a request
 * outright, and takes the same one with the tools in the prompt, it gets them there from then on.
 */
import { UpstreamError } from "../../../errors.ts";
import type { Log } from "../../../util/log.ts";
import type { Llm, LlmPart, LlmRequest } from "./llm.ts";
import { promptedRequest } from "./prompted-tools.ts";

export class ToolFallback implements Llm {
  tools: Llm["tools"] = "native";
  readonly #service: Llm;
  readonly #log: Log;

  constructor(service: Llm, log: Log) {
    this.#service = service;
    this.#log = log;
  }
  get name(): string {
    return this.#service.name;
  }
  get images(): boolean {
    return this.#service.images;
  }
  get local(): boolean {
    return this.#service.local;
  }
  async *generate(request: LlmRequest): AsyncIterable<LlmPart> {
    if (this.tools === "prompted" || request.tools.length === 0) {
      yield* this.#service.generate(request);
      return;
    }
    let begun = false;
    try {
      for await (const part of this.#service.generate(request)) {
        begun = true;
        yield part;
      }
    } catch (error) {
      if (begun || !isRefusal(error)) throw error;
      yield* this.#prompted(request);
    }
  }
  forget(sessionKey: string): void {
    this.#service.forget(sessionKey);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]();
  }
  async *#prompted(request: LlmRequest): AsyncIterable<LlmPart> {
    for await (const part of this.#service.generate(promptedRequest(request))) {
      if (this.tools === "native")
        this.#log.info({ llm: this.name }, "the service takes no tools: they go into the prompt");
      this.tools = "prompted";
      yield part;
    }
  }
}

/** What servers answer to a request with tools that they cannot use: Ollama and llama.cpp 400 or 500, others 422 or 501. */
function isRefusal(error: unknown): boolean {
  return error instanceof UpstreamError && [400, 422, 500, 501].includes(Number(error.details["status"]));
}
