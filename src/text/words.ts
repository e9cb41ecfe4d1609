/** Text as words: to cut it where a listener was cut off. */
export interface WordSpan {
  /** Lower case, compatibility forms resolved, apostrophes straight. */
  readonly word: string;
  /** Where it is in the text, in UTF-16 units, up to and not including `end`. */
  readonly start: number;
  readonly end: number;
}

/**
 * Letters and digits, with an apostrophe inside a word or a separator inside a number; a hyphen divides. In scripts without
 * spaces each character is a word.
 */
const WORD =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]\p{M}*|(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])[\p{L}\p{M}\p{N}])+(?:(?:['’](?=\p{L})|(?<=\p{N})[.,:](?=\p{N}))(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])[\p{L}\p{M}\p{N}])+)*/gu;

export function wordSpans(text: string): WordSpan[] {
  return Array.from(text.matchAll(WORD), (match) => ({
    word: normalized(match[0]),
    start: match.index,
    end: match.index + match[0].length,
  }));
}

export function words(text: string): string[] {
  return wordSpans(text).map((span) => span.word);
}

/**
 * The beginning of `text` that was heard when `fraction` (0 to 1) of its audio was: whole words, those of which more than
 * half was heard, with the punctuation behind them. A word takes as long as it has letters, a mark behind it a pause; code
 * blocks, addresses of links and tags take no time.
 */
export function heardText(text: string, fraction: number): string {
  if (!(fraction > 0)) return "";
  if (fraction >= 1) return text;
  const spans = wordSpans(text);
  const isSilent = silence(text);
  const units = spans.map((span) => (isSilent(span.start) ? 0 : speechUnits(span.word)));
  const durations = spans.map((span, i) => {
    const pause = isSilent(span.start) ? 0 : pauseUnits(text.slice(span.end, spans[i + 1]?.start));
    return units[i]! + pause;
  });
  const heardUnits = fraction * durations.reduce((sum, duration) => sum + duration, 0);
  let elapsed = 0;
  let heard = 0;
  for (; heard < spans.length; heard++) {
    if (elapsed + units[heard]! / 2 >= heardUnits) break;
    elapsed += durations[heard]!;
  }
  if (heard === 0) return "";
  if (heard === spans.length) return text;
  const end = spans[heard - 1]!.end;
  return text.slice(0, end) + (/^[^\s\p{L}\p{N}([{<"“‘«]*/u.exec(text.slice(end, spans[heard]!.start))?.[0] ?? "");
}

function normalized(word: string): string {
  return word.normalize("NFKC").toLowerCase().replaceAll("’", "'");
}

/** Code blocks, targets of links, what stands behind the host of an address, tags. */
const SILENT =
  /^[ \t]*(```|~~~)[\s\S]*?(?:^[ \t]*\1.*$|$(?![\s\S]))|(?<=\])\([^)\s]*\)?|(?<=:\/\/[^\s/]{1,200})\/[^\s)]*|<\/?[a-zA-Z][^<>]*>/gm;

/** Tells whether what stands at an index is passed over in silence. */
function silence(text: string): (index: number) => boolean {
  const ranges = Array.from(text.matchAll(SILENT), (match) => [match.index, match.index + match[0].length] as const);
  return (index) => ranges.some(([from, to]) => index >= from && index < to);
}

/** About one a letter, with a share for the word itself; a digit is a word, a character of an unspaced script a syllable. */
function speechUnits(word: string): number {
  let units = 1;
  for (const char of word) {
    if (/\p{N}/u.test(char)) units += 4;
    else if (/[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u.test(char)) units += 2;
    else if (/\p{L}/u.test(char)) units += 1;
  }
  return units;
}

/** The silence for what stands between two words. */
function pauseUnits(between: string): number {
  if (/[.!?…。！？\n]/.test(between)) return 5;
  return /[,;:—–，、；：]|(?<!\])\(|\)/.test(between) ? 3 : 0;
}
