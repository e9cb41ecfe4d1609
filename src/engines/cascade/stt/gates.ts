/** What recognizers make up from noise, kept from the conversation: loops, and more words than anyone can say. */
import { wordsOf } from "./agreement.ts";

/** Fast speech is about 25 letters a second; short calls get some room. */
const LETTERS_PER_SECOND_MAX = 35;
const LETTERS_EXTRA = 30;
/** A phrase this often in a row is a loop. */
const LOOP_TIMES = 4;
const LOOP_WORDS_MAX = 8;
/** What recognizers trained on subtitles say about silence. Believed only where enough of the audio was voiced. */
const PHANTOMS = new Set([
  "thank you",
  "thanks for watching",
  "thank you for watching",
  "you",
  "bye",
  "so",
  "okay",
  "oh",
]);
const PHANTOM_VOICED_MS = 190;

/** The transcript as far as it can be believed; often empty where it cannot. */
export function believable(text: string, audioSeconds: number, voicedMs: number): string {
  const trimmed = text.replace(/\s+/g, " ").replace(/^["'“”\s]+|["“”\s]+$/g, "");
  const plain = trimmed.toLowerCase().replace(/[^\p{L}\p{N} ]/gu, "");
  if (plain.trim() === "") return "";
  if (voicedMs < PHANTOM_VOICED_MS && PHANTOMS.has(plain)) return "";
  const looped = cutLoop(trimmed);
  return looped.length > audioSeconds * LETTERS_PER_SECOND_MAX + LETTERS_EXTRA ? "" : looped;
}

/** Cuts a phrase that repeats without end down to its first saying. */
function cutLoop(text: string): string {
  const words = wordsOf(text);
  const keys = words.map((word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ""));
  for (let size = 1; size <= LOOP_WORDS_MAX; size++) {
    for (let start = 0; start + size * LOOP_TIMES <= keys.length; start++) {
      let times = 1;
      while (repeats(keys, start, start + times * size, size)) times += 1;
      if (times >= LOOP_TIMES) {
        const rest = words.slice(start + times * size);
        const kept = [...words.slice(0, start + size), ...(rest.length > size ? rest : [])];
        return cutLoop(kept.join(" "));
      }
    }
  }
  return words.join(" ");
}

function repeats(keys: readonly string[], a: number, b: number, size: number): boolean {
  if (b + size > keys.length) return false;
  for (let i = 0; i < size; i++) if (keys[a + i] !== keys[b + i]) return false;
  return true;
}
