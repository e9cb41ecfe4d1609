/**
 * Markdown and HTML as plain text. It is no parser: it takes what a language model writes, whole or cut off anywhere, and
 * leaves none of the markup. Lines that stand alone (list items, headings, table rows) end as sentences do.
 */

const HTML_ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  mdash: "—",
  ndash: "–",
  hellip: "…",
};

/** Pictures, their modifiers, flags and key caps; not digits, (c) or other signs that are text by default. */
const EMOJI =
  /[\p{Emoji_Presentation}\p{Extended_Pictographic}\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}\u{e0020}-\u{e007f}]|[\u200d\ufe0e\ufe0f\u20e3]/gu;
/** Signs that are pictographs by their class and are spoken or dropped as signs. */
const SPOKEN_SIGNS = /[\u2190-\u21ff\u00a9\u00ae\u2122]/u;

/** The marks that open or close a code block, in a quotation or a list item too, and what stands behind them. */
const FENCE = /^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?(```+|~~~+)(.*)$/;

export function plainText(markdown: string): string {
  const parts: string[] = [];
  let open = false;
  for (const line of withoutCodeBlocks(markdown.replace(/<!--[\s\S]*?(?:-->|$)/g, ""))) {
    const { text, standsAlone } = plainLine(line);
    // A paragraph ends where another or a list begins, whether it has a full stop or not.
    if (open && (standsAlone || text === "")) parts.push(ended(parts.pop()!));
    open = text !== "" && !standsAlone;
    if (text !== "") parts.push(standsAlone ? ended(text) : text);
  }
  return parts.join(" ");
}

function ended(text: string): string {
  return /[.!?:;,…。！？、，；：]["'”’)\]]*$/u.test(text) ? text : `${text}.`;
}

function withoutCodeBlocks(markdown: string): string[] {
  const kept: string[] = [];
  let fence: string | null = null;
  for (const line of markdown.replace(/\r\n?/g, "\n").split("\n")) {
    const [, mark, info = ""] = FENCE.exec(line) ?? [];
    if (fence === null && mark !== undefined && !(mark.startsWith("`") && info.includes("`"))) {
      fence = mark;
    } else if (fence !== null) {
      if (mark?.startsWith(fence) && info.trim() === "") fence = null;
    } else kept.push(line);
  }
  return kept;
}

function plainLine(line: string): { text: string; standsAlone: boolean } {
  const body = line.trim().replace(/^(?:>(?!\s?\d)\s*)+/, "");
  // Rules, table separators and the underline of a heading.
  if (/^(?:[-*_=]\s*){3,}$/.test(body) || (/^[\s:|-]+$/.test(body) && body.includes("--"))) {
    return { text: "", standsAlone: true };
  }
  const mark = /^(?:#{1,6}(?=\s|$)\s*|[-*+•◦▪‣]\s+(?:\[[ xX]\]\s+)?)/.exec(body)?.[0];
  const row = /^\|.*\|$/.test(body);
  const content = row ? cells(body) : body.slice(mark?.length ?? 0).replace(/\s#+$/, "");
  const text = plainSpans(content).replace(/\s+/g, " ").trim();
  const silent = !/[\p{L}\p{N}]/u.test(text) && !/^[.,!?;:…'"”’)\]—–\s]+$/u.test(text);
  return { text: silent ? "" : text, standsAlone: row || mark !== undefined || /^\d{1,3}[.)]\s/.test(body) };
}

/** The cells of a table row that have something in them, as an enumeration. */
function cells(row: string): string {
  return row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())
    .filter((cell) => cell !== "")
    .join(", ");
}

/** Links to their text, marks to nothing. */
function plainSpans(line: string): string {
  let text = line
    // Citations: [1], [2, 3], [^4], 【5†source】.
    .replace(/\s*\[\^?\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\](?!\()|\s*【[^】]{0,80}】|\[\^[^\]\s]{1,80}\]:?/g, "")
    // Pictures and links, also with the address cut off; <https://…> is an address.
    .replace(/!\[([^\]]{0,500})\]\([^)]{0,1000}\)?/g, "$1")
    .replace(/\[([^\]]{0,500})\]\((?:[^()]|\([^()]{0,200}\)){0,1000}\)?/g, "$1")
    .replace(/\[([^\]]{1,500})\]\[[^\]]{0,200}\]/g, "$1")
    .replace(/<((?:https?:\/\/|mailto:)[^>\s]+)>/g, "$1")
    .replace(/<([^\s<>@]+@[^\s<>@]+)>/g, "$1")
    .replace(/<br\s*\/?>/gi, ", ")
    .replace(/<\/?[a-zA-Z][^<>]*>/g, " ")
    .replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi, entity);
  // Underscores and asterisks that open or close a span; not those inside a word or between spaces.
  text = text
    .replace(/~~/g, "")
    .replace(/(^|[^\w\\])_{1,3}(?=[^\s_])/g, "$1")
    .replace(/([^\s_\\])_{1,3}(?=[^\w]|$)/g, "$1")
    .replace(/\*{2,}/g, "")
    .replace(/(^|[^\d\s])\*(?=\S)|(\S)\*(?=\s|[^\w\s]|$)|(^|\s)\*(?=[^\s\d])/g, "$1$2$3")
    .replace(/`+/g, "")
    .replace(/(?<=\w)\(\)/g, "")
    .replace(/\\([!-'*-/:-@^-`{-~])/g, "$1");
  return text.replace(EMOJI, (sign) => (SPOKEN_SIGNS.test(sign) ? sign : " "));
}

function entity(whole: string, decimalCode?: string, hexCode?: string, name?: string): string {
  if (name !== undefined) return HTML_ENTITIES[name.toLowerCase()] ?? whole;
  const code = decimalCode === undefined ? Number.parseInt(hexCode ?? "", 16) : Number(decimalCode);
  return code > 31 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : " ";
}
