/** Addresses, abbreviations and signs as an English speaker says them. */
import type { Rewrite } from "./rewrite.ts";

const TOP_LEVEL = "com|org|net|edu|gov|io|ai|dev|app|co|uk|de|fr|eu|ca|au|jp|us|info|me|tv|xyz";

export const ADDRESSES: readonly Rewrite[] = [
  [/(?<![\w.+-])([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)/g, (_, user, host) => `${spell(user!)} at ${spell(host!)}`],
  // The host says where a link goes; a path is not for ears.
  [
    /\b(?:[a-z][a-z\d+.-]*:\/\/|www\.)(?:www\.)?([^\s/?#"'<>()[\]]+)[^\s"'<>()[\]]*/gi,
    (whole, host) =>
      spell(host!.replace(/:\d+$/, "").replace(/[.,;:!?…]+$/, "")) + (/[.,;:!?]+$/.exec(whole!)?.[0] ?? ""),
  ],
  [
    new RegExp(`(?<![\\w.@-])((?:[a-zA-Z\\d-]+\\.)+(?:${TOP_LEVEL}))\\b(?![\\w@-])(?:/[^\\s"'<>()[\\]]*[\\w/])?`, "g"),
    (_, host) => spell(host!),
  ],
];

/** The dot belongs to these; where one ends a sentence, the sentence's dot stays. */
export const ABBREVIATIONS: readonly Rewrite[] = [
  [/\be\.\s?g\.,?/gi, "for example,"],
  [/\bi\.\s?e\.,?/gi, "that is,"],
  [/\betc\.(?=\s+\p{Lu}|\s*$)/gu, "et cetera."],
  [/\betc\b\.?/g, "et cetera"],
  [/\bvs\b\.?/g, "versus"],
  [/\bcf\./g, "compare"],
  [/\ba\.?k\.?a\.(?=\s)/gi, "also known as"],
  [/\bDr\.?(?=\s+\p{Lu})/gu, "Doctor"],
  [/(?<=\p{Lu}\p{Ll}+\s)Dr\./gu, "Drive"],
  [/\bMr\b\.?/g, "Mister"],
  [/\bMrs\b\.?/g, "Missus"],
  [/\bMs\b\.?(?=\s+\p{Lu})/gu, "Miz"],
  [/\bProf\./g, "Professor"],
  [/\bSt\.(?=\s+\p{Lu})/gu, "Saint"],
  [/(?<=\p{Lu}\p{Ll}+\s)St\./gu, "Street"],
  [/\bJr\b\.?/g, "Junior"],
  [/\bSr\.?(?!\p{L})/gu, "Senior"],
  [/\bAve\./g, "Avenue"],
  [/\bBlvd\.?/g, "Boulevard"],
  [/(?<=\p{Lu}\p{Ll}+\s)Rd\./gu, "Road"],
  [/\bMt\.(?=\s+\p{Lu})/gu, "Mount"],
  [/\bInc\.(?!\s*$)/g, "Incorporated"],
  [/\bLtd\.(?!\s*$)/g, "Limited"],
  [/\bCorp\.(?!\s*$)/g, "Corporation"],
  [/\b(?:No|Nr|no|nr)\.\s?(?=\d)|#(?=\d)|№\s?/g, "number "],
  [/\bFig\.\s?(?=\d)/gi, "figure "],
  [/\bVol\.\s?(?=\d)/gi, "volume "],
  [/\bCh\.\s?(?=\d)/g, "chapter "],
  [/\bpp\.\s?(?=\d)/g, "pages "],
  [/\bp\.\s?(?=\d)/g, "page "],
  [/\bapprox\./gi, "approximately"],
  [/\best\.\s?(?=\d)/g, "established "],
  [/\bdept\./gi, "department"],
  [/\bw\/o\b/g, "without"],
  [/\bw\/\s?(?=\p{L})/gu, "with "],
  [/\bb\/c\b/g, "because"],
  [/\bn\/a\b/gi, "not applicable"],
  [/\bPh\.?D\b\.?/g, "P H D"],
  // Letters with dots, as in U.S. or D.C., are said as letters. A last dot stays where a sentence may end.
  [
    /\b(?:\p{L}\.){2,}(?=(\s+\p{Lu}|\s*$)?)/gu,
    (letters, ending) =>
      letters!.replaceAll(".", " ").trim() + (ending === undefined || letters!.length > 6 ? "" : endDot(ending)),
  ],
];

/** Formulas and signs in front of numbers, while the numbers are still digits. */
export const FORMULAS: readonly Rewrite[] = [
  [/\\[()[\]]/g, " "],
  [/\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}/g, (_, above, below) => `${above} over ${below}`],
  [/\\sqrt\s*\{([^{}]*)\}/g, (_, inner) => `the square root of ${inner}`],
  [/√\s?(?=\w)/g, "the square root of "],
  [/\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}/g, (_, inner) => inner!],
  [/\\(?:times|cdot)\b/g, " × "],
  [/\\leq?\b/g, " ≤ "],
  [/\\geq?\b/g, " ≥ "],
  [/\\approx\b/g, " ≈ "],
  [/\\([a-zA-Z]+)/g, (_, name) => ` ${name} `],
  [/(?<=[\w)])\^(?:2(?!\d)|\{2\})/g, " squared"],
  [/(?<=[\w)])\^(?:3(?!\d)|\{3\})/g, " cubed"],
  [/(?<=[\w)])\^(?:\{([^{}]*)\}|([-−]?\w+))/g, (_, braced, plain) => ` to the power of ${braced ?? plain}`],
  [
    /(?<=\d)[⁰¹⁴-⁹⁻²³]{2,}|(?<=[\w)])[⁰¹⁴-⁹]/gu,
    (power) => ` to the power of ${power!.normalize("NFKC").replace("−", "-")}`,
  ],
  [/(?<=^|\s)#(?=\p{L})/gu, "hashtag "],
  [/(?:(?<=^|[\s(])~|(?<=^|[(,;:.]\s?)≈)\s?(?=[\d$€£¥])/g, "about "],
  [/(?<=^|\s)\+(?=\d)/g, "plus "],
  [/(?<=\d)\s[-−]\s(?=\d[\d.,]*\s*[=≈])/g, " minus "],
  [/(?<=\w)\s*\*\s*(?=\d)/g, " × "],
  [/(?<=[\w)]\s)<(?=\s)/g, "is less than"],
  [/(?<=[\w)]\s)>(?=\s)/g, "is greater than"],
  [/<(?=\s?[\d$€£¥])/g, "less than "],
  [/>(?=\s?[\d$€£¥])/g, "more than "],
];

/** What is left when numbers are words. */
export const SIGNS: readonly Rewrite[] = [
  [/(?<=[\w)])²/g, " squared"],
  [/(?<=[\w)])³/g, " cubed"],
  [/\bC\+\+/g, "C plus plus"],
  [/\b([CF])#/g, (_, letter) => `${letter} sharp`],
  [/(?<=^|[\s(])@\s?(?=\w)/g, "at "],
  [/\band\/or\b/g, "and or"],
  [
    /\b(he|she|him|her|his|hers|yes|no|true|false|on|off)\/(he|she|they|him|her|his|hers|yes|no|true|false|on|off)\b/gi,
    (_, a, b) => `${a} or ${b}`,
  ],
  [/(?<=[A-Z]{2})\/(?=[A-Z]{2})/g, " "],
  [/(?<=\w)\s*\/\s*(?=\w)/g, " slash "],
  [/\s*&\s*/g, " and "],
  [/\s*[≈≅]\s*/g, " is about "],
  [/\s*(?:!==?|≠)\s*/g, " does not equal "],
  [/\s*(?:<=|≤)\s*/g, " is at most "],
  [/\s*(?:>=|≥)\s*/g, " is at least "],
  [/\s*(?:[-=]+>|[→⇒➔])\s*/g, " to "],
  [/\s*(?:<-+|[←⇐])\s*/g, " from "],
  [/(?<=[\w)])\s*={1,3}\s*(?=[\w(])/g, " equals "],
  [/\s*±\s*/g, " plus or minus "],
  [/\s*÷\s*/g, " divided by "],
  [/\s*×\s*/g, " times "],
  [/(?<=[\w)])\s*\+\s*(?=[\w(])/g, " plus "],
  [/(?<=[\w)])\+(?=\s|[.,!?)]|$)/g, " plus"],
  // A dot inside a word is said: node.js, config.ts.
  [/(?<=\p{L})\.(?=\p{L})/gu, " dot "],
  [/§\s?/g, "section "],
  [/\s*%/g, " percent"],
  [/\s*°/g, " degrees"],
];

/** An address, letter signs as words. */
function spell(address: string): string {
  return address
    .replace(/\./g, " dot ")
    .replace(/_/g, " underscore ")
    .replace(/-/g, " dash ")
    .replace(/\+/g, " plus ")
    .replace(/\s+/g, " ")
    .trim();
}

function endDot(ending: string): string {
  return /\p{Lu}/u.test(ending) ? "" : ".";
}
