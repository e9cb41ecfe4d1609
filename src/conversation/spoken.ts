/** What an answer's voice says at which time, so that the history can keep what was heard of it. */

import { heardText } from "../text/words.ts";

interface Clause {
  readonly text: string;
  readonly startMs: number;
  endMs: number;
}

/** A slow voice, in milliseconds per character: how long a clause that is still being made will at least last. */
const CHARACTER_MS = 60;

const ROUNDING = 1e-6;

export class SpokenText {
  readonly #clauses: Clause[] = [];
  #text = "";
  #ms = 0;
  #ended = false;

  /** Everything that was sent. */
  get text(): string {
    return this.#text;
  }
  get ms(): number {
    return this.#ms;
  }
  /** `text` is said by the next `ms`; with an empty text, the clause before goes on. */
  add(text: string, ms: number): void {
    const startMs = this.#ms;
    this.#ms += ms;
    this.#text += text;
    const last = this.#clauses.at(-1);
    if (text !== "" || last === undefined) this.#clauses.push({ text, startMs, endMs: this.#ms });
    else last.endMs = this.#ms;
  }
  /** No more audio of the last clause will come. */
  end(): void {
    this.#ended = true;
  }
  /** All of it was made, and the first `heardMs` hold it all. */
  isWhole(heardMs: number): boolean {
    return this.#ended && heardMs >= Math.floor(this.#ms);
  }
  /** The text that the first `heardMs` say: whole clauses, and of the one that was cut, whole words by its share. */
  heard(heardMs: number): string {
    let heard = "";
    for (const clause of this.#clauses) {
      if (heardMs <= clause.startMs) break;
      const isOpen = !this.#ended && clause === this.#clauses.at(-1);
      const lengthMs = clause.endMs - clause.startMs;
      const knownMs = isOpen ? Math.max(lengthMs, clause.text.length * CHARACTER_MS) : lengthMs;
      const share = (heardMs - clause.startMs) / knownMs;
      heard += share >= 1 - ROUNDING ? clause.text : heardText(clause.text, share);
    }
    return heard.trimEnd();
  }
}
