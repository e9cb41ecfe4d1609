/** The user's words as the RNN-T branch writes them, grown symbol by symbol. */
import { symbolsText } from "./networks/rnnt.ts";

export class TranscriptText {
  readonly #vocabulary: readonly string[];
  #raw = "";
  #text = "";

  constructor(vocabulary: readonly string[]) {
    this.#vocabulary = vocabulary;
  }
  /** What a frame's symbols add; null where they say nothing. The text has no space at its ends. */
  push(symbols: readonly number[]): { readonly delta: string; readonly text: string } | null {
    const spoken = symbolsText(symbols, this.#vocabulary);
    if (spoken === "") return null;
    this.#raw += spoken;
    const text = this.#raw.trim();
    const delta = text.startsWith(this.#text) ? text.slice(this.#text.length) : text;
    this.#text = text;
    return { delta, text };
  }
}
