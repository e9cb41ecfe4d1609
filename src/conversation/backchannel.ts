/** Signs of listening: what people say over somebody who speaks, without wanting the word. */
const SIGNS = new Set(
  "mm mmm mhm hm hmm mhmm mmhmm mmhm uh huh uhhuh aha ah oh ok okay yeah yep yes yup right sure ja jaja genau si sí oui d'accord"
    .split(" ")
    .map((sign) => sign.normalize("NFC")),
);
const WORDS_MAX = 3;

/** True for a few of those signs and nothing else. "Wait", "no" and "stop" want the word. */
export function isBackchannel(text: string): boolean {
  const words =
    text
      .normalize("NFC")
      .toLowerCase()
      .replace(/[-–—]/g, "")
      .match(/[\p{L}']+/gu) ?? [];
  return words.length > 0 && words.length <= WORDS_MAX && words.every((word) => SIGNS.has(word));
}
