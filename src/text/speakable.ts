/** What a voice says of a text: no markup, no emoji; numbers, dates, amounts, abbreviations and signs as words. */
import { plainText } from "./plain-text.ts";
import { type Rewrite, rewrite } from "./rewrite.ts";
import { DATES, TIMES, YEARS } from "./spoken-dates.ts";
import { MONEY, PHONES, QUANTITIES } from "./spoken-quantities.ts";
import { ABBREVIATIONS, ADDRESSES, FORMULAS, SIGNS } from "./spoken-words.ts";

/** Typographic forms to plain ones. */
const PLAIN_FORMS: readonly Rewrite[] = [
  [/[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]/g, ""],
  [/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\t\n\r\f\v]/g, " "],
  [/[\u2018\u2019\u201b\u02bc\u2032]/g, "'"],
  [/[\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033]/g, '"'],
  [/[\u2010\u2011]/g, "-"],
  [/\s*\u2026|\.{3,}/g, "…"],
  [/[\u2080-\u2089]/g, (digit) => digit!.normalize("NFKC")],
];

/** In this order: each finds its digits and signs still as they were written. */
const ENGLISH = [ADDRESSES, DATES, PHONES, MONEY, TIMES, ABBREVIATIONS, FORMULAS, YEARS, QUANTITIES, SIGNS].flat();

/**
 * Markdown, or any text, as words and punctuation; empty if there is nothing to say. Never fails, whatever the text.
 * Numbers and signs are said in English; for another `language` (BCP 47) they are left to the voice.
 */
export function speakable(text: string, language = "en"): string {
  let spoken = plainText(text);
  spoken = rewrite(spoken, PLAIN_FORMS);
  return tidy(/^en\b/i.test(language) ? rewrite(spoken, ENGLISH) : spoken);
}

/** Letters, digits, and the punctuation that shapes how a sentence sounds. */
function tidy(text: string): string {
  const tidied = text
    .replace(/:{2,}/g, " ")
    .replace(/(?<![\p{L}\p{N}])'|'(?![\p{L}\p{N}])|"/gu, "")
    .replace(/[\s()[\]{}|]+$/, "")
    .replace(/\s*(?:[—–]|\s-+(?=\s|$)|--+)\s*|\s*[()[\]{}|]+\s*/g, ", ")
    .replace(/[^\p{L}\p{M}\p{N}\s.,!?;:'…。、，！？；：-]/gu, " ")
    .replace(/(?<![\p{L}\p{N}])-+|-+(?![\p{L}\p{N}])/gu, " ")
    .replace(/\s+/g, " ")
    .replace(/\s+(?=[.,!?;:…])/g, "")
    .replace(/[,;:](?:\s*,)+/g, ",")
    .replace(/,+(?=[.!?;:…])/g, "")
    .replace(/([.!?;:…])\s*,+/g, "$1")
    .replace(/([!?])[!?.]+/g, "$1")
    .replace(/^[\s.,!?;:…]+/, "")
    .trim();
  return /[\p{L}\p{N}]/u.test(tidied) ? tidied : "";
}
