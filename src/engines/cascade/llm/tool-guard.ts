/**
 * Between a model and the rest: thoughts and tool markup never come out as text, and a tool call comes out only if the
 * client can carry it out. A malformed one goes back to the model as an error, twice at most; then it answers in words.
 */
import { randomId } from "../../../util/ids.ts";
import type { Log } from "../../../util/log.ts";
import type { TokenUsage } from "../../engine.ts";
import type { ChatMessage, Llm, LlmEndReason, LlmPart, LlmRequest } from "./llm.ts";
import { type MarkupPart, MarkupReader } from "./markup.ts";
import { callsIn, promptedRequest } from "./prompted-tools.ts";
import { toolProblem } from "./tool-check.ts";

const REPAIRS_MAX = 2;

/** @throws what the model throws */
export async function* guardedParts(llm: Llm, request: LlmRequest, log: Log): AsyncIterable<LlmPart> {
  const wanted: LlmRequest = request.toolChoice === "none" ? { ...request, tools: [] } : request;
  const usage = new UsageSum();
  let repairs: ChatMessage[] = [];
  for (let round = 0; ; round++) {
    const messages = [...request.messages, ...repairs];
    const last = round === REPAIRS_MAX;
    const asked: LlmRequest =
      last && round > 0 ? { ...wanted, tools: [], toolChoice: "none", messages } : { ...wanted, messages };
    const pass = new Pass(asked);
    const shown = llm.tools === "prompted" && asked.tools.length > 0 ? promptedRequest(asked) : asked;
    for await (const part of llm.generate(shown)) yield* pass.take(part);
    yield* pass.finish();
    usage.add(pass.usage);
    const problem = pass.problem();
    if (problem === null || last || pass.reason !== "stop") {
      if (problem !== null) log.warn({ rounds: round + 1 }, "the model's tool calls stayed malformed");
      yield { type: "end", reason: pass.reason, usage: usage.total };
      return;
    }
    log.info({ round }, "a malformed tool call goes back to the model");
    repairs = [...repairs, ...repair(pass.written, problem)];
  }
}

function repair(written: string, problem: string): ChatMessage[] {
  const answer: ChatMessage[] =
    written.trim() === "" ? [] : [{ role: "assistant", text: written.trim(), toolCalls: [] }];
  const text = `Error: ${problem}. The call was not carried out. Call it correctly, or answer in words.`;
  return [...answer, { role: "user", text, images: [] }];
}

/** One run of the model. */
class Pass {
  readonly #request: LlmRequest;
  readonly #reader: MarkupReader;
  readonly #held = new Map<string, LlmPart[]>();
  #problem: string | null = null;
  #calls = 0;
  reason: LlmEndReason = "stop";
  usage: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
  /** What the model wrote, calls included, to show it to itself. */
  written = "";

  constructor(request: LlmRequest) {
    this.#request = request;
    this.#reader = new MarkupReader(request.tools.length > 0);
  }
  /** What is wrong with this run, for the model to read. */
  problem(): string | null {
    const { toolChoice, tools } = this.#request;
    if (this.#problem !== null) return this.#problem;
    if (toolChoice === "auto" || toolChoice === "none" || tools.length === 0 || this.#calls > 0) return null;
    return toolChoice === "required" ? "a function must be called now" : `${toolChoice.name} must be called now`;
  }
  *take(part: LlmPart): Iterable<LlmPart> {
    if (part.type === "text") {
      this.written += part.delta;
      yield* this.#markup(this.#reader.push(part.delta));
    } else if (part.type === "end") {
      this.reason = part.reason;
      this.usage = part.usage;
    } else {
      yield* this.#native(part);
    }
  }
  *finish(): Iterable<LlmPart> {
    yield* this.#markup(this.#reader.finish());
  }

  *#markup(parts: readonly MarkupPart[]): Iterable<LlmPart> {
    for (const part of parts) {
      if (part.type === "text") yield { type: "text", delta: part.text };
      else yield* this.#written(part.tag, part.body, part.closed);
    }
  }
  *#written(tag: string, body: string, closed: boolean): Iterable<LlmPart> {
    try {
      if (!closed) throw new SyntaxError(`the call lacks its </${tag}>`);
      for (const { name, argumentsJson } of callsIn(tag, body)) {
        const callId = randomId("call");
        yield* this.#call(callId, name, argumentsJson, [
          { type: "tool.started", callId, name },
          { type: "tool.delta", callId, delta: argumentsJson },
        ]);
      }
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#problem = error.message;
    }
  }
  /** A call is held back until it is whole, and known to be good. */
  *#native(part: Exclude<LlmPart, { type: "text" | "end" }>): Iterable<LlmPart> {
    const held = this.#held.get(part.callId) ?? [];
    this.#held.set(part.callId, held);
    if (part.type === "tool.completed") {
      this.#held.delete(part.callId);
      yield* this.#call(part.callId, part.name, part.argumentsJson === "" ? "{}" : part.argumentsJson, held);
    } else {
      held.push(part);
    }
  }
  *#call(callId: string, name: string, argumentsJson: string, held: readonly LlmPart[]): Iterable<LlmPart> {
    const { tools, parallelToolCalls, toolChoice } = this.#request;
    const allowed = typeof toolChoice === "object" ? tools.filter((tool) => tool.name === toolChoice.name) : tools;
    const problem = toolProblem(name, argumentsJson, allowed);
    if (problem !== null) {
      this.#problem = problem;
      this.written += `${name}(${argumentsJson})`;
      return;
    }
    if (this.#calls > 0 && !parallelToolCalls) return;
    this.#calls += 1;
    yield* held;
    yield { type: "tool.completed", callId, name, argumentsJson };
  }
}

class UsageSum {
  total: TokenUsage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
  add(usage: TokenUsage): void {
    this.total = {
      inputTokens: this.total.inputTokens + usage.inputTokens,
      cachedInputTokens: this.total.cachedInputTokens + usage.cachedInputTokens,
      outputTokens: this.total.outputTokens + usage.outputTokens,
    };
  }
}
