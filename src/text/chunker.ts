/**
 * A language model's text, as it streams, in clauses for a voice. The first clause is small, so that the voice begins
 * early; later ones are sentences, short ones joined. The clauses' texts put together are the input, to the letter, and
 * how the input is cut into deltas changes nothing: a clause ends at a place that the text alone decides.
 */
import { speakable } from "./speakable.ts";

export interface Clause {
  /** What was written, white space and markup included. */
  readonly text: string;
  /** What a voice says of it; empty where there is nothing to say: code, rules, emoji. */
  readonly spoken: string;
}

export interface ChunkerOptions {
  /** The first clause ends at a comma or the like after this many words, ... */
  readonly firstWordsMin?: number;
  /** ... and after this many at the latest, comma or not. */
  readonly firstWordsMax?: number;
  /** Later sentences are joined until they have this many characters. */
  readonly joinChars?: number;
  /** A sentence longer than this is divided. */
  readonly clauseCharsMax?: number;
  /** Language of the voice, for `speakable`. */
  readonly language?: string;
}

/** What a place in the text is, from the least reason to end a clause there to the best. */
type Boundary = "none" | "word" | "pause" | "sentence";

/** Text without any white space is divided after so many characters. */
const UNBROKEN_CHARS_MAX = 1000;

const FENCE_START = /^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}(?=[^`]*$)|~{3,})/;
/** A link, a tag or a formula that was opened in the last so many characters. */
const OPEN_CHARS_MAX = 60;
const OPEN_SPAN =
  /\[[^\]]{0,60}$|\]\([^)]{0,60}$|<[a-zA-Z/][^<>]{0,60}$|\\\((?:(?!\\\)).){0,60}$|\\\[(?:(?!\\\]).){0,60}$/;
const CLOSERS = /["'”’»)\]}*_~`]+$/;
/** Scripts without spaces between words. */
const UNSPACED = /[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]/;
const UNSPACED_STOP = /[。！？]$/;
const UNSPACED_PAUSE = /[、，；：]$/;
/** What can stand at the end of a clause of such a script: stops, pauses and what closes behind them. */
const UNSPACED_TAIL = /[。！？、，；：」』）"'”’»)\]}*_~`]/;
/** In front of a year. */
const DAY_OF_MONTH = /(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\s\d{1,2}(?:st|nd|rd|th)?,$/;
const ABBREVIATIONS = new Set(
  (
    "mr mrs ms dr prof st jr sr gen col sgt capt lt rev hon vs cf e.g i.e eg ie approx dept est fig figs vol no nos pp p ch " +
    "sec art ed eds inc ltd co corp ave blvd rd mt jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu " +
    "thur thurs fri sat sun a.m p.m u.s u.k u.n ph.d b.c a.d al ca min max avg incl excl etc"
  ).split(" "),
);
/** Words before which a speaker may breathe. */
const BREATHS = new Set(
  (
    "and but or so because although though since while when where which who that if unless until after before as than " +
    "with without from into for about through between during by to in on at"
  ).split(" "),
);

export class Chunker {
  readonly #firstWordsMin: number;
  readonly #firstWordsMax: number;
  readonly #joinChars: number;
  readonly #clauseCharsMax: number;
  readonly #language: string;
  #pending = "";
  /** Where the last line of `#pending` begins. */
  #lineStart = 0;
  /** The marks that opened the code block we are in. */
  #fence: string | null = null;
  /** The best places so far at which `#pending` could be divided; 0 is none. */
  #places = { sentence: 0, pause: 0, breath: 0 };
  /** How much the clauses so far give the voice to say. */
  #spokenSize = 0;
  #clauses: Clause[] = [];

  constructor(options: ChunkerOptions = {}) {
    this.#firstWordsMin = options.firstWordsMin ?? 3;
    this.#firstWordsMax = options.firstWordsMax ?? 10;
    this.#joinChars = options.joinChars ?? 60;
    this.#clauseCharsMax = options.clauseCharsMax ?? 240;
    this.#language = options.language ?? "en";
  }
  /** The clauses that `delta` completes. */
  push(delta: string): Clause[] {
    for (let i = 0; i < delta.length; i++) this.#step(delta[i]!);
    return this.#take();
  }
  /** The rest. What is pushed next begins a new text. */
  finish(): Clause[] {
    if (this.#pending !== "") this.#emit(this.#pending.length, "sentence");
    this.#fence = null;
    this.#spokenSize = 0;
    return this.#take();
  }
  #take(): Clause[] {
    const clauses = this.#clauses;
    this.#clauses = [];
    return clauses;
  }
  #step(char: string): void {
    if (char === "\n") {
      this.#pending += char;
      this.#endLine();
      return;
    }
    if (this.#fence === null && !/\s/.test(char) && this.#atGap(char)) this.#consider(char);
    this.#pending += char;
    if (this.#pending.length >= UNBROKEN_CHARS_MAX && !/[\ud800-\udbff]$/.test(this.#pending)) {
      this.#emit(this.#pending.length, "word");
    }
  }
  /** True if a word may end here: behind white space, or behind a stop of a script without spaces. */
  #atGap(next: string): boolean {
    const last = this.#pending.at(-1) ?? "";
    if (/\s/.test(last)) return this.#pending.trim() !== "";
    if (!UNSPACED_TAIL.test(last) || UNSPACED_TAIL.test(next)) return false;
    const body = this.#pending.replace(CLOSERS, "");
    return UNSPACED_STOP.test(body) || UNSPACED_PAUSE.test(body);
  }
  #endLine(): void {
    const line = this.#pending.slice(this.#lineStart);
    if (this.#fence !== null) {
      const mark = line.trim().replace(/^[>\s]+/, "");
      const closes = mark.startsWith(this.#fence) && /^[`~]+$/.test(mark);
      this.#emit(this.#pending.length, "sentence");
      if (closes) this.#fence = null;
      return;
    }
    const fence = FENCE_START.exec(line)?.[1];
    if (fence !== undefined) {
      if (this.#pending.slice(0, this.#lineStart).trim() !== "") {
        this.#emit(this.#lineStart, "sentence");
        return;
      }
      this.#fence = fence;
      this.#emit(this.#pending.length, "sentence");
      return;
    }
    this.#lineStart = this.#pending.length;
    if (this.#pending.trim() !== "" && !insideSpan(this.#pending)) this.#place("sentence");
  }
  /** Decides about the place in front of `next`. */
  #consider(next: string): void {
    const line = this.#pending.slice(this.#lineStart);
    const whole = FENCE_START.test(line) || /^\s*\|/.test(line) || insideSpan(this.#pending);
    this.#place(whole ? "none" : boundaryBefore(next, line));
  }
  #place(boundary: Boundary): void {
    const end = this.#pending.length;
    // Until the voice has something to say, and time is won by that, clauses are small.
    const early = this.#spokenSize < this.#joinChars / 2;
    const words = wordsOf(this.#pending);
    const last = words.at(-1);
    if (boundary === "sentence") {
      if (early || sizeOf(this.#pending) >= Math.min(this.#joinChars, this.#spokenSize)) {
        this.#emit(end, "sentence");
        return;
      }
      this.#places.sentence = end;
    } else if (boundary === "pause") {
      if (early && words.length >= this.#firstWordsMin) {
        this.#emit(end, "pause");
        return;
      }
      this.#places.pause = end;
    } else if (
      boundary === "word" &&
      last !== undefined &&
      words.length > this.#firstWordsMin &&
      BREATHS.has(last.toLowerCase())
    ) {
      this.#places.breath = this.#pending.trimEnd().length - last.length;
    }
    const wordsMax = boundary === "none" ? 2 * this.#firstWordsMax : this.#firstWordsMax;
    if (early && words.length >= wordsMax) this.#emit(this.#places.breath || end, "word");
    else if (sizeOf(this.#pending) >= this.#clauseCharsMax) this.#divide();
  }
  /** Divides a clause that has grown too long where it hurts least. */
  #divide(): void {
    const { sentence, pause, breath } = this.#places;
    const least = this.#pending.length / 3;
    if (sentence > 0) this.#emit(sentence, "sentence");
    else if (pause > least) this.#emit(pause, "pause");
    else if (breath > least) this.#emit(breath, "word");
    else if (!insideSpan(this.#pending) || this.#pending.length > 2 * this.#clauseCharsMax) {
      this.#emit(this.#pending.length, "word");
    }
  }
  /** Ends the clause at `end`, and goes through what is behind it again. */
  #emit(end: number, boundary: Boundary): void {
    const text = this.#pending.slice(0, end);
    const rest = this.#pending.slice(end);
    const spoken = this.#fence === null ? this.#spoken(text, boundary) : "";
    this.#clauses.push({ text, spoken });
    this.#spokenSize += sizeOf(spoken);
    this.#pending = "";
    this.#lineStart = 0;
    this.#places = { sentence: 0, pause: 0, breath: 0 };
    for (let i = 0; i < rest.length; i++) this.#step(rest[i]!);
  }
  /** A full stop that stands for the end of a line is wrong where the line goes on. */
  #spoken(text: string, boundary: Boundary): string {
    const spoken = speakable(text, this.#language);
    const added = boundary !== "sentence" && spoken.endsWith(".") && !/\.\W*$/.test(text);
    return added ? spoken.slice(0, -1) : spoken;
  }
}

function boundaryBefore(next: string, line: string): Boundary {
  const body = line.trimEnd().replace(CLOSERS, "");
  if (UNSPACED_STOP.test(body)) return "sentence";
  if (UNSPACED_PAUSE.test(body)) return "pause";
  if (/\d/.test(next) && (/\d$/.test(body) || DAY_OF_MONTH.test(body))) return "none";
  if (/[.!?…]$/.test(body)) {
    if (/\p{Ll}/u.test(next)) return "word";
    return isAbbreviation(body, line) ? "none" : "sentence";
  }
  if (/[,;:]$|[—–]$|\s-{1,2}$/.test(body)) return "pause";
  // A number and its unit, a sign and its number, belong together.
  if (/[\d$€£¥#~+=<>]$/.test(body) || /[\d$€£¥+=<>*/%°]/.test(next)) return "none";
  return "word";
}

/** A dot that ends no sentence: an abbreviation, an initial, the number of a list item. */
function isAbbreviation(body: string, line: string): boolean {
  if (!body.endsWith(".")) return false;
  if (/^\s*\(?\d{1,3}\.$/.test(line.trimEnd())) return true;
  const word = /[\p{L}.]+$/u.exec(body)?.[0].slice(0, -1) ?? "";
  return ABBREVIATIONS.has(word.toLowerCase()) || /^\p{Lu}$/u.test(word);
}

/**
 * True where a link, inline code, a tag or a formula is open in the last line: half of one cannot be said. What stays open
 * for long was no beginning.
 */
function insideSpan(text: string): boolean {
  const line = text.slice(text.lastIndexOf("\n") + 1);
  const ticks = [...line.matchAll(/`+/g)];
  if (ticks.length % 2 === 1 && line.length - ticks.at(-1)!.index < OPEN_CHARS_MAX) return true;
  return OPEN_SPAN.test(line);
}

/** Length in characters of an alphabet: a character that stands for a word or a syllable counts as three. */
function sizeOf(text: string): number {
  let size = text.length;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x3040 && UNSPACED.test(text[i]!)) size += 2;
  return size;
}

function wordsOf(text: string): string[] {
  const words = text.match(/\S*[\p{L}\p{N}]\S*/gu) ?? [];
  return UNSPACED.test(text) ? words.flatMap((word) => (UNSPACED.test(word) ? [...word] : [word])) : words;
}
