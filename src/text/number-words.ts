/** Numbers as an American English speaker says them. Digits come in as strings, so that no size is too large. */

const UNITS = (
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " +
  "seventeen eighteen nineteen"
).split(" ");
const TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES = ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion"];
const ORDINALS: Readonly<Record<string, string>> = {
  one: "first",
  two: "second",
  three: "third",
  five: "fifth",
  eight: "eighth",
  nine: "ninth",
  twelve: "twelfth",
};

/** "1234" -> one thousand two hundred thirty-four. Digits one by one where there is no word for the size. */
export function cardinal(digits: string): string {
  const trimmed = digits.replace(/^0+(?=\d)/, "");
  if (trimmed.length > 3 * SCALES.length) return digitByDigit(digits);
  if (trimmed === "0") return "zero";
  const words: string[] = [];
  for (let end = trimmed.length, scale = 0; end > 0; end -= 3, scale++) {
    const group = belowThousand(Number(trimmed.slice(Math.max(0, end - 3), end)));
    if (group !== "") words.unshift(scale === 0 ? group : `${group} ${SCALES[scale]!}`);
  }
  return words.join(" ");
}

/** "21" -> twenty-first. */
export function ordinal(digits: string): string {
  return cardinal(digits).replace(/[a-z]+$/, (last) => {
    const irregular = ORDINALS[last];
    if (irregular !== undefined) return irregular;
    return last.endsWith("y") ? `${last.slice(0, -1)}ieth` : `${last}th`;
  });
}

/** "1,234.50" -> one thousand two hundred thirty-four point five zero. */
export function decimal(number: string): string {
  const [whole = "", fraction] = number.replaceAll(",", "").split(".");
  const spoken = /^0\d/.test(whole) ? digitByDigit(whole) : cardinal(whole === "" ? "0" : whole);
  return fraction === undefined ? spoken : `${spoken} point ${digitByDigit(fraction)}`;
}

/** "0451" -> zero four five one. */
export function digitByDigit(digits: string): string {
  return Array.from(digits, (digit) => UNITS[Number(digit)] ?? "").join(" ");
}

/** 1905 -> nineteen oh five, 2026 -> twenty twenty-six, 2005 -> two thousand five. From 1000 to 9999. */
export function year(digits: string): string {
  const century = Number(digits.slice(0, 2));
  const rest = Number(digits.slice(2));
  if (century % 10 === 0 && rest < 10) return cardinal(digits);
  if (rest === 0) return `${belowThousand(century)} hundred`;
  return `${belowThousand(century)} ${rest < 10 ? `oh ${UNITS[rest]!}` : belowThousand(rest)}`;
}

/** The plural of a number word: twenty -> twenties, hundred -> hundreds. */
export function plural(word: string): string {
  if (word.endsWith("y")) return `${word.slice(0, -1)}ies`;
  return word.endsWith("x") ? `${word}es` : `${word}s`;
}

/** 0 is nothing. */
function belowThousand(n: number): string {
  const hundreds = Math.floor(n / 100);
  const rest = n % 100;
  const words = hundreds === 0 ? [] : [`${UNITS[hundreds]!} hundred`];
  if (rest >= 20) {
    const unit = rest % 10;
    words.push(unit === 0 ? TENS[Math.floor(rest / 10)]! : `${TENS[Math.floor(rest / 10)]!}-${UNITS[unit]!}`);
  } else if (rest > 0) {
    words.push(UNITS[rest]!);
  }
  return words.join(" ");
}
