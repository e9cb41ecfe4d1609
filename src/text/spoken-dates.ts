/** Dates and times as an American English speaker says them. */
import { cardinal, digitByDigit, ordinal, plural, year } from "./number-words.ts";
import type { Rewrite } from "./rewrite.ts";

const MONTHS: readonly string[] =
  "January February March April May June July August September October November December".split(" ");
const MONTH = `(${MONTHS.join("|")}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\\b\\.?`;
const WEEKDAYS: Readonly<Record<string, string>> = {
  Mon: "Monday",
  Tue: "Tuesday",
  Tues: "Tuesday",
  Wed: "Wednesday",
  Thu: "Thursday",
  Thur: "Thursday",
  Thurs: "Thursday",
  Fri: "Friday",
  Sat: "Saturday",
  Sun: "Sunday",
};
const DAY = "(\\d{1,2})(?:st|nd|rd|th)?";
const DASH = "\\s?[-–—]\\s?";
const HALF_OF_DAY = "\\s?([AaPp])\\.?\\s?[Mm](?:\\b\\.?(?=\\s+[a-z,;:!?)]|[,;:!?)])|\\b)";

export const DATES: readonly Rewrite[] = [
  [/\b(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\.?(?=,\s+(?:\d|[A-Z][a-z]{2}))/g, (_, day) => WEEKDAYS[day!]!],
  [
    /(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?:(?:T|\s)(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?(?![\d-])/g,
    (whole, y, m, d, time, zone) => {
      const date = monthDayYear(m!, d!, y!);
      if (date === null) return whole!;
      const utc = zone === "Z" ? " U T C" : "";
      return time === undefined ? date : `${date}, ${clock(time)}${utc}`;
    },
  ],
  [
    /(?<![\d/.])(\d{1,2})([/.])(\d{1,2})\2((?:19|20)\d{2})(?![\d/])/g,
    (whole, first, separator, second, y) => {
      const dayFirst = separator === "." || Number(first) > 12;
      const date = dayFirst ? monthDayYear(second!, first!, y!) : monthDayYear(first!, second!, y!);
      return date ?? whole!;
    },
  ],
  [
    new RegExp(`\\b${MONTH}\\s+${DAY}${DASH}${DAY}(?:,?\\s+(\\d{4}))?(?![\\d:])`, "g"),
    (_, m, from, to, y) => `${month(m!)} ${ordinal(from!)} to ${ordinal(to!)}${y === undefined ? "" : `, ${year(y)}`}`,
  ],
  [
    new RegExp(`\\b${MONTH}\\s+${DAY}(?:,?\\s+(\\d{4})\\b)?(?![\\d:.,]*\\d|%)`, "g"),
    (_, m, d, y) => `${month(m!)} ${ordinal(d!)}${y === undefined ? "" : `, ${year(y)}`}`,
  ],
  [
    new RegExp(`(\\b[Tt]he\\s+)?\\b${DAY}(?:\\s+of)?\\s+${MONTH}(?:,?\\s+(\\d{4})\\b)?`, "g"),
    (_, the, d, m, y) => `${the ?? "the "}${ordinal(d!)} of ${month(m!)}${y === undefined ? "" : `, ${year(y)}`}`,
  ],
  [new RegExp(`\\b${MONTH},?\\s+((?:1\\d|20)\\d{2})\\b`, "g"), (_, m, y) => `${month(m!)} ${year(y!)}`],
];

export const TIMES: readonly Rewrite[] = [
  [
    new RegExp(`(?<![\\d:.])(\\d{1,2})(?::([0-5]\\d))?${DASH}(\\d{1,2})(?::([0-5]\\d))?${HALF_OF_DAY}`, "g"),
    (_, h, m, h2, m2, half) => `${twelveHours(h!, m)} to ${twelveHours(h2!, m2)} ${half!.toUpperCase()} M`,
  ],
  [
    new RegExp(`(?<![\\d:.])(\\d{1,2})(?::([0-5]\\d))?(?::[0-5]\\d)?${HALF_OF_DAY}`, "g"),
    (_, h, m, half) => `${twelveHours(h!, m)} ${half!.toUpperCase()} M`,
  ],
  [
    /(?<![\d:.])(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.\d+)?(?![\d:])/g,
    (_, h, m, s) => [cardinal(h!), minutes(m!), minutes(s!)].join(" "),
  ],
  [
    /(?<![\d:.])([01]?\d|2[0-4]):([0-5]\d)\s?[-–—]\s?([01]?\d|2[0-4]):([0-5]\d)(?![\d:])/g,
    (_, h, m, h2, m2) => `${clock(`${h}:${m}`)} to ${clock(`${h2}:${m2}`)}`,
  ],
  [/(?<![\d:.])([01]?\d|2[0-4]):[0-5]\d(?![\d:])/g, (time) => clock(time!)],
  // A score, a ratio.
  [/(?<![\d:.])(\d+):(\d+)(?![\d:])/g, (_, a, b) => `${cardinal(a!)} to ${cardinal(b!)}`],
];

export const YEARS: readonly Rewrite[] = [
  [
    /(?<![\d.,/-])(1[1-9]\d{2}|20\d{2})\s?[-–—]\s?(1[1-9]\d{2}|20\d{2})(?![\d.,]*\d|[/-]\d)/g,
    (_, from, to) => `${year(from!)} to ${year(to!)}`,
  ],
  [
    /(?<![\d.,/-])(1[1-9]\d{2}|20\d{2})[-–](\d{2})(?![\d.,]*\d|[/-]\d)/g,
    (_, from, to) => `${year(from!)} to ${minutes(to!)}`,
  ],
  [/(?<![\w.,/-])(1[1-9]|20)(\d)0['’]?s\b/g, (_, century, decade) => decades(`${century}${decade}0`)],
  [
    /(?:['’]|\b(?<=\b(?:[Tt]he|[Hh]er|[Hh]is|[Mm]y|[Tt]heir|[Yy]our|[Ee]arly|[Mm]id|[Ll]ate)[\s-]))([2-9]0)['’]?s\b/g,
    (_, decade) => plural(cardinal(decade!)),
  ],
  [/(?<![\w.,/$€£¥-])(1[1-9]\d{2}|20\d{2})(?![\w%°]|[.,/:-]\d)/g, (y) => year(y!)],
];

function month(name: string): string {
  return MONTHS.find((full) => full.startsWith(name.slice(0, 3))) ?? name;
}

function monthDayYear(m: string, d: string, y: string): string | null {
  const name = MONTHS[Number(m) - 1];
  if (name === undefined || Number(d) < 1 || Number(d) > 31) return null;
  return `${name} ${ordinal(d)}, ${year(y)}`;
}

/** 15:30 -> fifteen thirty, 9:05 -> nine oh five, 12:00 -> twelve o'clock, 15:00 -> fifteen hundred. */
function clock(time: string): string {
  const [h = "0", m = "00"] = time.split(":");
  if (m !== "00") return `${cardinal(h)} ${minutes(m)}`;
  if (Number(h) >= 1 && Number(h) <= 12) return `${cardinal(h)} o'clock`;
  return Number(h) === 0 ? "midnight" : `${cardinal(h)} hundred`;
}

/** In front of A M or P M. */
function twelveHours(h: string, m: string | undefined): string {
  return m === undefined || m === "00" ? cardinal(h) : `${cardinal(h)} ${minutes(m)}`;
}

/** Two digits behind others: 05 -> oh five. */
function minutes(digits: string): string {
  if (digits === "00") return "hundred";
  return digits.startsWith("0") ? `oh ${digitByDigit(digits.slice(1))}` : cardinal(digits);
}

/** 1980 -> nineteen eighties, 2000 -> two thousands. */
function decades(digits: string): string {
  const words = year(digits).split(" ");
  return [...words.slice(0, -1), plural(words.at(-1)!)].join(" ");
}
