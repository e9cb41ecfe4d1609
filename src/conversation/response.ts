/**
 * One response, from `created` to `done`: which output items are open, what each has said, and in which order that is
 * told. A message's item opens with its first word or sound, a call's when the model begins it.
 */

import type { EngineEvent, TokenUsage } from "../engines/engine.ts";
import type { AppError } from "../errors.ts";
import type { ResponseOptions } from "./commands.ts";
import type { CancelCause, Emit, ItemPlace, ResponseView } from "./events.ts";
import type { CallItem, Item, ItemStatus, Items, MessageItem } from "./items.ts";
import type { Cut, SpeechChunk } from "./playback.ts";
import type { SessionSettings } from "./settings.ts";
import { SpokenText } from "./spoken.ts";

export interface ResponseContext {
  readonly id: string;
  /** Null for an out-of-band response, which touches no conversation. */
  readonly conversationId: string | null;
  readonly items: Items;
  readonly settings: SessionSettings;
  readonly options: ResponseOptions;
  readonly emit: Emit;
  readonly play: (chunk: SpeechChunk) => void;
}

interface Message {
  readonly place: ItemPlace;
  readonly spoken: SpokenText;
  text: string;
}

interface Call {
  readonly place: ItemPlace;
  readonly callId: string;
  readonly name: string;
  argumentsJson: string;
}

type Ending = Pick<ResponseView, "status" | "reason" | "error">;

export class Response {
  readonly id: string;
  readonly options: ResponseOptions;
  readonly #context: ResponseContext;
  readonly #output: Item[] = [];
  #message: Message | null = null;
  readonly #calls = new Map<string, Call>();
  #ending: Ending = { status: "in_progress", reason: null, error: null };
  #usage: TokenUsage | null = null;
  #truncatedMs: number | null = null;

  constructor(context: ResponseContext) {
    this.id = context.id;
    this.options = context.options;
    this.#context = context;
  }
  /** Something of it can be heard or read. */
  get hasOutput(): boolean {
    return this.#output.length > 0;
  }
  get view(): ResponseView {
    const { settings, conversationId, options } = this.#context;
    const { status } = this.#ending;
    return {
      id: this.id,
      ...this.#ending,
      output: [...this.#output],
      conversationId,
      modality: settings.modality,
      voice: settings.voice,
      outputFormat: settings.outputFormat,
      outputTokensMax: settings.outputTokensMax,
      metadata: options.metadata,
      usage: status === "in_progress" ? null : this.#finalUsage(),
    };
  }
  /** What the item's voice said when; undefined where it has none here. */
  spokenOf(itemId: string): SpokenText | undefined {
    return this.#message?.place.itemId === itemId ? this.#message.spoken : undefined;
  }

  text(delta: string): void {
    if (delta === "") return;
    const message = this.#openMessage();
    message.text += delta;
    this.#updateMessage(message, "in_progress");
    this.#context.emit({ type: "text.delta", ...message.place, delta });
  }
  /** The transcript's next piece and the audio that says it; neither, where only the message begins. */
  speech(text: string, pcm: Float32Array, hz: number): void {
    const message = this.#openMessage();
    if (text === "" && pcm.length === 0) return;
    message.spoken.add(text, (pcm.length * 1000) / hz);
    message.text += text;
    if (text !== "") {
      this.#updateMessage(message, "in_progress");
      this.#context.emit({ type: "speech.delta", ...message.place, delta: text });
    }
    if (pcm.length > 0) this.#context.play({ responseId: this.id, itemId: message.place.itemId, pcm, hz });
  }
  /** The client says that it played only so much; later audio is not heard either. False where the item is another's. */
  truncate(itemId: string, audioEndMs: number): boolean {
    if (this.#message?.place.itemId !== itemId) return false;
    this.#truncatedMs = audioEndMs;
    return true;
  }
  placeOf(itemId: string): ItemPlace {
    const index = this.#output.findIndex((item) => item.id === itemId);
    return { responseId: this.id, itemId, outputIndex: Math.max(0, index) };
  }

  tool(event: Extract<EngineEvent, { type: "tool.started" | "tool.delta" | "tool.completed" }>): void {
    const call =
      this.#calls.get(event.callId) ?? this.#openCall(event.callId, event.type === "tool.delta" ? "" : event.name);
    if (event.type === "tool.started") return;
    if (event.type === "tool.delta") {
      this.#appendCall(call, event.delta);
      return;
    }
    const { argumentsJson, name } = event;
    if (argumentsJson.startsWith(call.argumentsJson)) {
      this.#appendCall(call, argumentsJson.slice(call.argumentsJson.length));
    }
    call.argumentsJson = argumentsJson;
    this.#context.emit({ type: "call.done", ...call.place, callId: call.callId, name, argumentsJson });
    this.#calls.delete(event.callId);
    this.#closeItem(call.place, callItem(call, "completed", name));
  }

  /** The engine has finished: closes what is open and tells that the response is done. */
  end(event: Extract<EngineEvent, { type: "response.ended" }>): void {
    this.#usage = event.usage;
    if (event.status === "completed") this.#message?.spoken.end();
    this.#ending = { status: event.status, reason: event.reason, error: event.error };
    this.#closeAll(event.status === "completed" ? "completed" : "incomplete", event.status !== "failed");
    if (event.error !== null) this.#context.emit({ type: "error", error: event.error });
    this.#context.emit({ type: "response.done", response: this.view });
  }
  fail(error: AppError): void {
    const usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
    this.end({ type: "response.ended", responseId: this.id, status: "failed", reason: null, usage, error });
  }
  /** Broken off. `cuts` says of each item how much was heard; it keeps just that. */
  cancel(cause: CancelCause, cuts: readonly Cut[], onClosed: () => void): void {
    this.#ending = { status: "cancelled", reason: cause, error: null };
    this.#closeAll("incomplete", false, cuts);
    onClosed();
    this.#context.emit({ type: "response.done", response: this.view });
  }

  #openMessage(): Message {
    if (this.#message !== null) return this.#message;
    const { modality } = this.#context.settings;
    const place = this.#newPlace();
    const message: Message = { place, spoken: new SpokenText(), text: "" };
    this.#message = message;
    this.#openItem(place, this.#messageItem(message, "in_progress", []));
    this.#setItem(this.#messageItem(message, "in_progress"));
    this.#context.emit({ type: "part.added", ...place, modality });
    return message;
  }
  #openCall(callId: string, name: string): Call {
    const call: Call = { place: this.#newPlace(), callId, name, argumentsJson: "" };
    this.#calls.set(callId, call);
    this.#openItem(call.place, callItem(call, "in_progress"));
    return call;
  }
  #appendCall(call: Call, delta: string): void {
    if (delta === "") return;
    call.argumentsJson += delta;
    this.#setItem(callItem(call, "in_progress"));
    this.#context.emit({ type: "call.delta", ...call.place, callId: call.callId, delta });
  }
  #newPlace(): ItemPlace {
    return { responseId: this.id, itemId: this.#context.items.promise(), outputIndex: this.#output.length };
  }
  #openItem(place: ItemPlace, item: Item): void {
    const { conversationId, items, emit } = this.#context;
    const firstCall = this.#output.find((other) => other.type === "call");
    this.#output.push(item);
    emit({ type: "output.added", ...place, item });
    if (conversationId === null) return;
    // What is spoken leads to the calls, however late its voice is ready: a call's result follows the call.
    const isLate = item.type === "message" && firstCall !== undefined && items.get(firstCall.id) !== undefined;
    items.add(item, isLate ? items.previousId(firstCall.id) : items.lastId);
    emit({ type: "item.added", item, previousId: items.previousId(item.id), ofResponse: true });
  }
  #updateMessage(message: Message, status: ItemStatus): void {
    this.#setItem(this.#messageItem(message, status));
  }
  #setItem(item: Item): void {
    this.#output[this.#output.findIndex((other) => other.id === item.id)] = item;
    const { items } = this.#context;
    if (items.get(item.id) !== undefined) items.set(item);
  }
  #messageItem(message: Message, status: ItemStatus, content?: MessageItem["content"]): MessageItem {
    const { modality } = this.#context.settings;
    const { text } = message;
    return {
      type: "message",
      id: message.place.itemId,
      status,
      role: "assistant",
      content: content ?? [modality === "audio" ? { type: "speech", transcript: text } : { type: "text", text }],
      interrupted: false,
    };
  }

  #closeAll(status: ItemStatus, whole: boolean, cuts: readonly Cut[] = []): void {
    const message = this.#message;
    if (message !== null) {
      const { modality } = this.#context.settings;
      this.#context.emit({ type: "part.done", ...message.place, modality, text: message.text, whole });
      this.#closeItem(message.place, this.#closedMessage(message, status, cuts));
    }
    for (const call of [...this.#calls.values()]) {
      const { callId, name, argumentsJson } = call;
      this.#calls.delete(callId);
      this.#context.emit({ type: "call.done", ...call.place, callId, name, argumentsJson });
      this.#closeItem(call.place, callItem(call, "incomplete"));
    }
  }
  #closedMessage(message: Message, status: ItemStatus, cuts: readonly Cut[]): MessageItem {
    const item = this.#messageItem(message, status);
    const wasCancelled = this.#ending.status === "cancelled";
    if (this.#context.settings.modality === "text") return { ...item, interrupted: wasCancelled };
    if (this.#truncatedMs !== null) return heardItem(item, message.spoken.heard(this.#truncatedMs));
    if (!wasCancelled) return item;
    const cut = cuts.find((other) => other.itemId === item.id);
    return heardItem(item, message.spoken.heard(cut?.heardMs ?? message.spoken.ms));
  }
  #closeItem(place: ItemPlace, item: Item): void {
    const { items, emit } = this.#context;
    this.#setItem(item);
    emit({ type: "output.done", ...place, item });
    if (items.get(item.id) === undefined) return;
    emit({ type: "item.done", item, previousId: items.previousId(item.id), ofResponse: true });
  }
  /** A broken-off response has no count from the engine: then it is what was sent, at four characters a token. */
  #finalUsage(): ResponseView["usage"] {
    const audioMs = this.#message?.spoken.ms ?? 0;
    if (this.#usage !== null) return { ...this.#usage, audioMs };
    const characters =
      (this.#message?.text.length ?? 0) + this.#output.reduce((sum, item) => sum + argumentsLength(item), 0);
    return { inputTokens: 0, cachedInputTokens: 0, outputTokens: Math.ceil(characters / 4), audioMs };
  }
}

/** An answer of which only `text` was heard. */
export function heardItem(item: MessageItem, text: string): MessageItem {
  return { ...item, status: "incomplete", interrupted: true, content: [{ type: "speech", transcript: text }] };
}

/** An answer that was heard to its end after all. */
export function wholeItem(item: MessageItem, text: string): MessageItem {
  return { ...item, status: "completed", interrupted: false, content: [{ type: "speech", transcript: text }] };
}

const argumentsLength = (item: Item): number => (item.type === "call" ? item.argumentsJson.length : 0);

function callItem(call: Call, status: ItemStatus, name: string = call.name): CallItem {
  const { callId, argumentsJson } = call;
  return { type: "call", id: call.place.itemId, status, callId, name, argumentsJson };
}
