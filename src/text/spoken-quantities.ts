/** Amounts, measures, telephone numbers and plain numbers as an American English speaker says them. */
import { cardinal, decimal, digitByDigit, ordinal, plural } from "./number-words.ts";
import type { Rewrite } from "./rewrite.ts";

/** 1,234.5 or 1234.5 or .5 */
const NUMBER = "(?:\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?|\\d+(?:\\.\\d+)?|\\.\\d+)";
const DASH = "\\s?[-–—]\\s?";
const NOT_IN_NUMBER = "(?<![\\d.,\\p{L}])";
const MAGNITUDES: Readonly<Record<string, string>> = {
  k: "thousand",
  m: "million",
  mn: "million",
  b: "billion",
  bn: "billion",
  t: "trillion",
  tn: "trillion",
};

/** One, many, one of a hundred. */
const CURRENCIES: Readonly<Record<string, readonly [string, string, string]>> = {
  $: ["dollar", "dollars", "cent"],
  "€": ["euro", "euros", "cent"],
  "£": ["pound", "pounds", "penny"],
  "¥": ["yen", "yen", ""],
  "₹": ["rupee", "rupees", "paisa"],
  "₽": ["ruble", "rubles", "kopek"],
  "₩": ["won", "won", ""],
  USD: ["U S dollar", "U S dollars", "cent"],
  EUR: ["euro", "euros", "cent"],
  GBP: ["pound", "pounds", "penny"],
  JPY: ["yen", "yen", ""],
  CHF: ["Swiss franc", "Swiss francs", "centime"],
  CAD: ["Canadian dollar", "Canadian dollars", "cent"],
  AUD: ["Australian dollar", "Australian dollars", "cent"],
};
const PENCE: Readonly<Record<string, string>> = { penny: "pence", paisa: "paise" };
const SIGN = "(?:US|CA|AU|A|C)?([$€£¥₹₽₩])";
const CODE = "(USD|EUR|GBP|JPY|CHF|CAD|AUD)";

/** One, many. The first column is what is written behind a number. */
const UNITS: Readonly<Record<string, readonly [string, string]>> = {
  km: ["kilometer", "kilometers"],
  m: ["meter", "meters"],
  cm: ["centimeter", "centimeters"],
  mm: ["millimeter", "millimeters"],
  µm: ["micrometer", "micrometers"],
  nm: ["nanometer", "nanometers"],
  mi: ["mile", "miles"],
  ft: ["foot", "feet"],
  yd: ["yard", "yards"],
  kg: ["kilogram", "kilograms"],
  g: ["gram", "grams"],
  mg: ["milligram", "milligrams"],
  lb: ["pound", "pounds"],
  lbs: ["pound", "pounds"],
  oz: ["ounce", "ounces"],
  L: ["liter", "liters"],
  l: ["liter", "liters"],
  mL: ["milliliter", "milliliters"],
  ml: ["milliliter", "milliliters"],
  tbsp: ["tablespoon", "tablespoons"],
  tsp: ["teaspoon", "teaspoons"],
  mph: ["mile per hour", "miles per hour"],
  "km/h": ["kilometer per hour", "kilometers per hour"],
  kmh: ["kilometer per hour", "kilometers per hour"],
  "m/s": ["meter per second", "meters per second"],
  "m/s²": ["meter per second squared", "meters per second squared"],
  Hz: ["hertz", "hertz"],
  kHz: ["kilohertz", "kilohertz"],
  MHz: ["megahertz", "megahertz"],
  GHz: ["gigahertz", "gigahertz"],
  KB: ["kilobyte", "kilobytes"],
  kB: ["kilobyte", "kilobytes"],
  MB: ["megabyte", "megabytes"],
  GB: ["gigabyte", "gigabytes"],
  TB: ["terabyte", "terabytes"],
  KiB: ["kibibyte", "kibibytes"],
  MiB: ["mebibyte", "mebibytes"],
  GiB: ["gibibyte", "gibibytes"],
  kbps: ["kilobit per second", "kilobits per second"],
  Mbps: ["megabit per second", "megabits per second"],
  Gbps: ["gigabit per second", "gigabits per second"],
  W: ["watt", "watts"],
  kW: ["kilowatt", "kilowatts"],
  MW: ["megawatt", "megawatts"],
  kWh: ["kilowatt hour", "kilowatt hours"],
  V: ["volt", "volts"],
  mA: ["milliampere", "milliamperes"],
  kcal: ["kilocalorie", "kilocalories"],
  cal: ["calorie", "calories"],
  dB: ["decibel", "decibels"],
  px: ["pixel", "pixels"],
  fps: ["frame per second", "frames per second"],
  rpm: ["revolution per minute", "revolutions per minute"],
  ms: ["millisecond", "milliseconds"],
  s: ["second", "seconds"],
  sec: ["second", "seconds"],
  secs: ["second", "seconds"],
  min: ["minute", "minutes"],
  mins: ["minute", "minutes"],
  h: ["hour", "hours"],
  hr: ["hour", "hours"],
  hrs: ["hour", "hours"],
  "m²": ["square meter", "square meters"],
  "km²": ["square kilometer", "square kilometers"],
  "m³": ["cubic meter", "cubic meters"],
  "cm³": ["cubic centimeter", "cubic centimeters"],
  "sq ft": ["square foot", "square feet"],
  "°C": ["degree Celsius", "degrees Celsius"],
  "°F": ["degree Fahrenheit", "degrees Fahrenheit"],
  "℃": ["degree Celsius", "degrees Celsius"],
  "℉": ["degree Fahrenheit", "degrees Fahrenheit"],
  "°": ["degree", "degrees"],
  "%": ["percent", "percent"],
  "‰": ["per mille", "per mille"],
  "¢": ["cent", "cents"],
};
const UNIT = `(${Object.keys(UNITS)
  .sort((a, b) => b.length - a.length)
  .join("|")})`;

const FRACTION_SIGNS: Readonly<Record<string, string>> = {
  "½": "1/2",
  "⅓": "1/3",
  "⅔": "2/3",
  "¼": "1/4",
  "¾": "3/4",
  "⅕": "1/5",
  "⅛": "1/8",
  "⅜": "3/8",
  "⅝": "5/8",
  "⅞": "7/8",
};

export const PHONES: readonly Rewrite[] = [
  [
    /(?<![\w.,/-])(?:\+?1[\s.-])?(?:\(\d{3}\)\s?|\d{3}[\s.-])\d{3}[.-]\d{4}(?![\w-])/g,
    (digits) => digitGroups(digits!),
  ],
  [/(?<![\w.,/])\+\d{1,3}(?:[\s.-]?\(?\d{1,4}\)?){2,6}(?![\w-])/g, (digits) => `plus ${digitGroups(digits!)}`],
  [/(?<![\w.,/-])\d{3}-\d{4}(?![\w-])/g, (digits) => digitGroups(digits!)],
];

export const MONEY: readonly Rewrite[] = [
  [
    new RegExp(`([-−])?${SIGN}(${NUMBER})${DASH}(?:${SIGN})?(${NUMBER})(?:\\s?(k|K|[mM]n?|[bB]n?|[tT]n?)\\b)?`, "g"),
    (_, minus, sign, from, __, to, scale) =>
      `${minus === undefined ? "" : "minus "}${/\.\d\d$/.test(from!) ? money(sign!, from!, scale) : decimal(from!)} to ${money(sign!, to!, scale)}`,
  ],
  [
    new RegExp(
      `([-−])?${SIGN}\\s?([-−])?(${NUMBER})(?:\\s?(thousand|million|billion|trillion|k|K|[mM]n?|[bB]n?|[tT]n?)\\b)?`,
      "g",
    ),
    (_, minus, sign, minus2, amount, scale) =>
      `${minus === undefined && minus2 === undefined ? "" : "minus "}${money(sign!, amount!, scale)}`,
  ],
  [
    new RegExp(
      `${NOT_IN_NUMBER}(${NUMBER})(?:\\s?(thousand|million|billion|trillion|k|K|[mM]n?|[bB]n?)\\b)?\\s?(?:${CODE}\\b|([€£₹₽₩]))`,
      "gu",
    ),
    (_, amount, scale, code, sign) => money(code ?? sign!, amount!, scale),
  ],
  [new RegExp(`\\b${CODE}\\s?(${NUMBER})`, "g"), (_, code, amount) => money(code!, amount!, undefined)],
  // "$5/month" has become "five dollars/month".
  [/(?<=\b(?:dollars?|euros?|pounds?|yen|cents?|pence))\s?\/\s?(?=\p{L})/gu, " per "],
];

/** A full stop behind a unit's name that ends no sentence. */
const UNIT_DOT = "(?:\\.(?=\\s+\\p{Ll}))?";
const NOT_IN_UNIT = "(?![\\p{L}\\d²³/])";

export const QUANTITIES: readonly Rewrite[] = [
  [/[½⅓⅔¼¾⅕⅛⅜⅝⅞]/g, (sign) => ` ${FRACTION_SIGNS[sign!]!}`],
  [/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)/g, (address) => address!.split(".").map(part).join(" dot ")],
  // Versions have more points than numbers do.
  [
    /(?<![\w.])([vV]\.?\s?)?(\d+(?:\.\d+){2,})(?![\w]|\.\d)/g,
    (_, v, parts) => (v === undefined ? "" : "version ") + parts!.split(".").map(part).join(" point "),
  ],
  [
    /(?<![\w.'])(\d{1,2})['′]\s?(\d{1,2})(?:["″]|'')/g,
    (_, feet, inches) => `${cardinal(feet!)} ${feet === "1" ? "foot" : "feet"} ${cardinal(inches!)}`,
  ],
  [/(?<![\w.])[vV](\d+(?:\.\d+)?)\b/g, (_, number) => `version ${decimal(number!)}`],
  [/(?<![\w.])(?:24\/7|50\/50)\b/g, (pair) => pair!.split("/").map(cardinal).join(" ")],
  [
    new RegExp(
      `${NOT_IN_NUMBER}(\\d+)\\s+(\\d{1,2})[/⁄](\\d{1,3})(?![\\d/])(?:\\s?${UNIT}${NOT_IN_UNIT}${UNIT_DOT})?`,
      "gu",
    ),
    (_, whole, above, below, unit) =>
      `${cardinal(whole!)} and ${fraction(above!, below!).replace(/^one /, "a ")}${unit === undefined ? "" : ` ${unitName(unit, "many")}`}`,
  ],
  [
    new RegExp(
      `${NOT_IN_NUMBER}(?<!/)(\\d{1,4})[/⁄](\\d{1,4})(?![\\d/])(?:\\s?${UNIT}${NOT_IN_UNIT}${UNIT_DOT})?`,
      "gu",
    ),
    (_, above, below, unit) => fraction(above!, below!) + (unit === undefined ? "" : ` ${unitName(unit, "one")}`),
  ],
  [/(?<=(?:^|[\s(=<>≤≥≈,:]))[-−](?=\.?\d)/g, "minus "],
  // 5-10 km, 20–25 %
  [
    new RegExp(`${NOT_IN_NUMBER}(${NUMBER})${DASH}(${NUMBER})[\\s-]?${UNIT}(?![\\p{L}\\d])${UNIT_DOT}`, "gu"),
    (_, from, to, unit) => `${decimal(from!)} to ${measure(to!, unit!)}`,
  ],
  [
    new RegExp(`${NOT_IN_NUMBER}(${NUMBER})-${UNIT}${NOT_IN_UNIT}`, "gu"),
    (_, number, unit) => `${decimal(number!)}-${unitName(unit!, "one")}`,
  ],
  [
    new RegExp(`${NOT_IN_NUMBER}(${NUMBER})\\s?${UNIT}${NOT_IN_UNIT}${UNIT_DOT}`, "gu"),
    (_, number, unit) => measure(number!, unit!),
  ],
  // 7.9B is an amount, 4B a room or a model.
  [new RegExp(`${NOT_IN_NUMBER}(\\d*\\.\\d+)\\s?(k|K|M|B|bn)\\b`, "gu"), (_, number, scale) => scaled(number!, scale!)],
  [new RegExp(`${NOT_IN_NUMBER}(${NUMBER})\\s?(k|M|bn)\\b`, "gu"), (_, number, scale) => scaled(number!, scale!)],
  [
    new RegExp(`${NOT_IN_NUMBER}(${NUMBER})\\s?[x×]\\s?(?=\\d)`, "gu"),
    (whole, number) => `${decimal(number!)} ${whole!.includes(" ") ? "times" : "by"} `,
  ],
  [new RegExp(`${NOT_IN_NUMBER}(${NUMBER})[x×]\\b`, "gu"), (_, number) => `${decimal(number!)} times`],
  [/(?<![\d.,])(\d+)(?:st|nd|rd|th)\b/g, (_, digits) => ordinal(digits!)],
  [/(?<![\w.])(\d+)p\b/g, (_, digits) => `${resolution(digits!)} p`],
  [new RegExp(`${NOT_IN_NUMBER}(${NUMBER})\\s?[–—-]\\s?(?=\\.?\\d)`, "gu"), (_, from) => `${decimal(from!)} to `],
  // Too long to be an amount: a number that names something.
  [/(?<![\d.,])\d{10,}(?![\d]|[.,]\d)/g, (digits) => digitByDigit(digits!)],
  // Digits beside letters are words of their own: GPT-4, H2O.
  [/(?<=\p{L})-?(?=\d)|(?<=\d)(?=\p{L})/gu, " "],
  [new RegExp(NUMBER, "g"), (number) => decimal(number!)],
];

function money(sign: string, amount: string, scale: string | undefined): string {
  const [one, many, hundredth] = CURRENCIES[sign] ?? ["", "", ""];
  if (scale !== undefined) return `${decimal(amount)} ${MAGNITUDES[scale.toLowerCase()] ?? scale} ${many}`;
  const [whole = "0", cents] = amount.replaceAll(",", "").split(".");
  if (cents?.length !== 2 || hundredth === "") return `${decimal(amount)} ${amount === "1" ? one : many}`;
  const main = `${cardinal(whole === "" ? "0" : whole)} ${whole === "1" ? one : many}`;
  if (cents === "00") return main;
  const small = `${cardinal(cents)} ${Number(cents) === 1 ? hundredth : (PENCE[hundredth] ?? plural(hundredth))}`;
  return Number(whole) === 0 ? small : `${main} and ${small}`;
}

function measure(number: string, unit: string): string {
  return `${decimal(number)} ${unitName(unit, number === "1" ? "one" : "many")}`;
}

function unitName(unit: string, count: "one" | "many"): string {
  return UNITS[unit]?.[count === "one" ? 0 : 1] ?? unit;
}

function scaled(number: string, scale: string): string {
  return `${decimal(number)} ${MAGNITUDES[scale.toLowerCase()]!}`;
}

function fraction(above: string, below: string): string {
  const denominator = Number(below);
  if (denominator === 0 || denominator > 100) return `${cardinal(above)} over ${cardinal(below)}`;
  if (Number(above) >= denominator || denominator === 1) return `${cardinal(above)} out of ${cardinal(below)}`;
  const name = denominator === 2 ? "half" : denominator === 4 ? "quarter" : ordinal(below);
  return `${cardinal(above)} ${Number(above) === 1 ? name : plural(name)}`;
}

/** 1080 -> ten eighty, 720 -> seven twenty. */
function resolution(digits: string): string {
  if (digits.length !== 3 && digits.length !== 4) return cardinal(digits);
  return `${cardinal(digits.slice(0, -2))} ${cardinal(digits.slice(-2))}`;
}

/** A part of a version or of an internet address. */
function part(digits: string): string {
  return digits.length > 2 ? digitByDigit(digits) : cardinal(digits);
}

/** Digits one by one, with a pause between the groups. */
function digitGroups(text: string): string {
  return (text.match(/\d+/g) ?? []).map(digitByDigit).join(", ");
}
