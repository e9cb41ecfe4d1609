/** The conversation: items in order, each in one place. Items are values; a change puts a new one in the old place. */
import type { ContentPart, ConversationItem } from "../engines/engine.ts";
import { assert } from "../util/assert.ts";
import type { IdSource } from "../util/ids.ts";

export type ItemStatus = "completed" | "incomplete" | "in_progress";

export type ItemContent =
  | { readonly type: "text"; readonly text: string }
  /** Speech, the user's or the assistant's. `transcript` is null while unknown or failed. */
  | { readonly type: "speech"; readonly transcript: string | null }
  | { readonly type: "image"; readonly url: string; readonly detail: "auto" | "low" | "high" };

export interface MessageItem {
  readonly type: "message";
  readonly id: string;
  readonly status: ItemStatus;
  readonly role: "system" | "user" | "assistant";
  readonly content: readonly ItemContent[];
  /** The user cut this answer off; its content is what was heard. */
  readonly interrupted: boolean;
}

export interface CallItem {
  readonly type: "call";
  readonly id: string;
  readonly status: ItemStatus;
  readonly callId: string;
  readonly name: string;
  readonly argumentsJson: string;
}

export interface ResultItem {
  readonly type: "result";
  readonly id: string;
  readonly status: ItemStatus;
  readonly callId: string;
  readonly output: string;
}

export type Item = MessageItem | CallItem | ResultItem;

export class Items {
  #order: string[] = [];
  readonly #byId = new Map<string, Item>();
  /** Ids that were told before their items exist, such as that of a segment which is still being spoken. */
  readonly #promised = new Set<string>();
  readonly #ids: IdSource;

  constructor(ids: IdSource) {
    this.#ids = ids;
  }
  get count(): number {
    return this.#order.length;
  }
  /** A new id, which no client can take any more. */
  promise(): string {
    let id = this.#ids("item");
    while (this.isTaken(id)) id = this.#ids("item");
    this.#promised.add(id);
    return id;
  }
  isTaken(id: string): boolean {
    return this.#byId.has(id) || this.#promised.has(id);
  }
  get(id: string): Item | undefined {
    return this.#byId.get(id);
  }
  hasCall(callId: string): boolean {
    return [...this.#byId.values()].some((item) => item.type === "call" && item.callId === callId);
  }
  hasResult(callId: string): boolean {
    return [...this.#byId.values()].some((item) => item.type === "result" && item.callId === callId);
  }
  /** The id of the item before `id`; null for the first. */
  previousId(id: string): string | null {
    return this.#order[this.#order.indexOf(id) - 1] ?? null;
  }
  get lastId(): string | null {
    return this.#order.at(-1) ?? null;
  }
  /** Puts `item` at the end, or behind `afterId`, or first where that is null. */
  add(item: Item, afterId: string | null = this.lastId): void {
    assert(!this.#byId.has(item.id), `item ${item.id} exists already`);
    assert(afterId === null || this.#byId.has(afterId), `no item ${afterId}`);
    this.#promised.delete(item.id);
    this.#byId.set(item.id, item);
    this.#order.splice(afterId === null ? 0 : this.#order.indexOf(afterId) + 1, 0, item.id);
  }
  /** Changes the item in its place. */
  set(item: Item): void {
    assert(this.#byId.has(item.id), `no item ${item.id}`);
    this.#byId.set(item.id, item);
  }
  remove(id: string): void {
    this.#byId.delete(id);
    this.#order = this.#order.filter((other) => other !== id);
  }
  /** The conversation as the model is to see it: what was said and heard, without what is not yet known. */
  snapshot(): ConversationItem[] {
    return this.#order.flatMap((id) => toEngineItem(this.#byId.get(id) as Item) ?? []);
  }
}

/** Null for an item that says nothing: an unheard answer, speech without a transcript, a call that was broken off. */
export function toEngineItem(item: Item): ConversationItem | null {
  if (item.type === "call") {
    const { id, callId, name, argumentsJson } = item;
    return item.status === "completed" ? { type: "tool_call", id, callId, name, argumentsJson } : null;
  }
  if (item.type === "result") return { type: "tool_result", id: item.id, callId: item.callId, output: item.output };
  const content = item.content.flatMap((part) => toEnginePart(part, item.role) ?? []);
  if (content.length === 0) return null;
  return { type: "message", id: item.id, role: item.role, content, interrupted: item.interrupted };
}

function toEnginePart(part: ItemContent, role: MessageItem["role"]): ContentPart | null {
  if (part.type === "image") return part;
  if (part.type === "text") return part.text === "" ? null : part;
  if (part.transcript === null || part.transcript.trim() === "") return null;
  return role === "user" ? { type: "audio", transcript: part.transcript } : { type: "text", text: part.transcript };
}
