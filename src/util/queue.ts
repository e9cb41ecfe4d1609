/** A bounded queue between one writer and one reader: the reader iterates, the writer never waits. */
import { assert } from "./assert.ts";

export type OverflowPolicy =
  /** `push` returns false and drops the value; the writer decides what that means. */
  | "refuse"
  /** The oldest value goes. */
  | "drop-oldest";

export class Queue<T> implements AsyncIterable<T> {
  readonly itemsMax: number;
  readonly #overflow: OverflowPolicy;
  #items: T[] = [];
  #head = 0;
  #closed = false;
  #failure: { readonly error: unknown } | null = null;
  #wake: (() => void) | null = null;

  constructor(itemsMax: number, overflow: OverflowPolicy = "refuse") {
    assert(itemsMax > 0, `queue limit must be positive, got ${itemsMax}`);
    this.itemsMax = itemsMax;
    this.#overflow = overflow;
  }
  get size(): number {
    return this.#items.length - this.#head;
  }
  get closed(): boolean {
    return this.#closed;
  }
  /** False if the value was not taken: the queue is closed, or full under `refuse`. */
  push(value: T): boolean {
    if (this.#closed) return false;
    if (this.size >= this.itemsMax) {
      if (this.#overflow === "refuse") return false;
      this.#take();
    }
    this.#items.push(value);
    this.#signal();
    return true;
  }
  /** Drops what is queued, without closing. Returns what was dropped. */
  clear(): T[] {
    const dropped = this.#items.slice(this.#head);
    this.#items = [];
    this.#head = 0;
    return dropped;
  }
  /** No more values; the reader drains what is queued and then ends. */
  close(): void {
    this.#closed = true;
    this.#signal();
  }
  /** Closes at once: what is queued is dropped, the reader throws. */
  fail(error: unknown): void {
    this.clear();
    this.#failure = { error };
    this.close();
  }
  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      while (this.size > 0) yield this.#take();
      if (this.#failure !== null) throw this.#failure.error;
      if (this.#closed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
  #take(): T {
    const value = this.#items[this.#head] as T;
    this.#head += 1;
    if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    } else if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    }
    return value;
  }
  #signal(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
