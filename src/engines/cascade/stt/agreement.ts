/**
 * Live transcripts that are never taken back: a word is given out once two successive hypotheses agree on it and on all
 * words before it.
 */

/** Words as they are compared: case and punctuation still change while the audio grows. */
const bare = (word: string): string => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

export const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

export class Agreement {
  #last: string[] = [];
  #given: string[] = [];

  /** What was given out so far. */
  get text(): string {
    return this.#given.join(" ");
  }
  /** Takes the next hypothesis of the whole text; returns the words to append, with their leading space. */
  next(hypothesis: string): string {
    const words = wordsOf(hypothesis);
    let agreed = 0;
    while (agreed < words.length && agreed < this.#last.length && same(words[agreed], this.#last[agreed])) agreed += 1;
    this.#last = words;
    return this.#extends(words) ? this.#give(words.slice(this.#given.length, agreed)) : "";
  }
  /** The words of the final text that were not given out yet; nothing if it does not begin like what was. */
  finish(text: string): string {
    const words = wordsOf(text);
    return this.#extends(words) ? this.#give(words.slice(this.#given.length)) : "";
  }
  #extends(words: readonly string[]): boolean {
    return this.#given.every((word, i) => same(word, words[i]));
  }
  #give(words: readonly string[]): string {
    if (words.length === 0) return "";
    const delta = `${this.#given.length === 0 ? "" : " "}${words.join(" ")}`;
    this.#given.push(...words);
    return delta;
  }
}

const same = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && bare(a) === bare(b);
