/**
 * Who may use which of a model's few conversation states. A session gets the one that it used last, if it is free, or the
 * one that has been idle longest; when all are in use it waits, first come, first served.
 */
interface Entry<Slot> {
  readonly slot: Slot;
  key: string | null;
  busy: boolean;
  usedAt: number;
  /** Its user was cancelled and will be gone in a moment; the same session's next one waits for that. */
  leaving: boolean;
  heir: ((entry: Entry<Slot>) => void) | null;
}

export class SlotPool<Slot> {
  readonly #entries: Entry<Slot>[];
  #waiting: ((entry: Entry<Slot>) => void)[] = [];
  #uses = 0;

  constructor(slots: readonly Slot[]) {
    this.#entries = slots.map((slot) => ({ slot, key: null, busy: false, usedAt: 0, leaving: false, heir: null }));
  }
  get size(): number {
    return this.#entries.length;
  }
  /** @throws the signal's reason, if it aborts before there is a free slot */
  async take(key: string, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    const leaving = this.#entries.find((own) => own.key === key && own.busy && own.leaving && own.heir === null);
    const entry =
      leaving !== undefined ? await inherited(leaving, signal) : (this.#free(key) ?? (await this.#wait(signal)));
    entry.busy = true;
    entry.leaving = false;
    entry.key = key;
    entry.usedAt = ++this.#uses;
    return entry.slot;
  }
  give(slot: Slot): void {
    const entry = this.#entries.find((candidate) => candidate.slot === slot);
    if (entry === undefined) return;
    const next = entry.heir ?? this.#waiting.shift();
    entry.heir = null;
    if (next === undefined) entry.busy = false;
    else next(entry);
  }
  /** The slot's user was cancelled. */
  leave(slot: Slot): void {
    const entry = this.#entries.find((candidate) => candidate.slot === slot);
    if (entry !== undefined) entry.leaving = true;
  }
  /** What is kept for `key` may be overwritten first. */
  forget(key: string): void {
    for (const entry of this.#entries) if (entry.key === key) entry.key = null;
  }
  #free(key: string): Entry<Slot> | null {
    const free = this.#entries.filter(({ busy }) => !busy);
    const own = free.find((candidate) => candidate.key === key);
    return own ?? free.sort((a, b) => rank(a) - rank(b))[0] ?? null;
  }
  #wait(signal: AbortSignal): Promise<Entry<Slot>> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== wake);
        reject(signal.reason);
      };
      const wake = (entry: Entry<Slot>): void => {
        signal.removeEventListener("abort", onAbort);
        resolve(entry);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(wake);
    });
  }
}

/** Nobody's first, then the longest idle. */
const rank = (entry: { readonly key: string | null; readonly usedAt: number }): number =>
  entry.key === null ? 0 : entry.usedAt;

/** The session's own slot, once its cancelled user is gone: what it holds is worth the wait. */
function inherited<Slot>(entry: Entry<Slot>, signal: AbortSignal): Promise<Entry<Slot>> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      entry.heir = null;
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    entry.heir = (own) => {
      signal.removeEventListener("abort", onAbort);
      resolve(own);
    };
  });
}
