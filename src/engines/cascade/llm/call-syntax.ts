/** Reads `name(argument=value, …)` lines with Python-like or JSON-like literals. */

export interface WrittenCall {
  readonly name: string;
  readonly argumentsJson: string;
}

/** @throws {SyntaxError} with what was expected and where */
export function parseCalls(text: string): WrittenCall[] {
  const reader = new Reader(text);
  const calls: WrittenCall[] = [];
  while (!reader.atEnd()) calls.push(reader.call());
  if (calls.length === 0) throw new SyntaxError("the block holds no call");
  return calls;
}

const WORDS: Readonly<Record<string, unknown>> = {
  True: true,
  False: false,
  None: null,
  true: true,
  false: false,
  null: null,
};
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

class Reader {
  readonly #text: string;
  #at = 0;
  constructor(text: string) {
    this.#text = text;
  }
  atEnd(): boolean {
    this.#match(/[\s;]*/y);
    return this.#at >= this.#text.length;
  }
  call(): WrittenCall {
    const name = this.#need(/[A-Za-z_][\w.-]*/y, "a function name");
    this.#need(/\s*\(\s*/y, "(");
    const values: Record<string, unknown> = {};
    while (this.#match(/\s*\)/y) === null) {
      const key = this.#need(/[A-Za-z_][\w-]*/y, "an argument name");
      this.#need(/\s*[=:]\s*/y, "=");
      values[key] = this.#value();
      if (this.#match(/\s*,\s*/y) === null && this.#peek(/\s*\)/y) === null) throw this.#error(", or )");
    }
    return { name, argumentsJson: JSON.stringify(values) };
  }

  #value(): unknown {
    this.#match(/\s*/y);
    const quote = this.#match(/"""|'''|"|'/y);
    if (quote !== null) return this.#string(quote);
    if (this.#match(/[[(]\s*/y) !== null) return this.#list();
    if (this.#match(/\{\s*/y) !== null) return this.#record();
    const number = this.#match(/[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?/y);
    if (number !== null) return Number(number);
    const word = this.#match(/[A-Za-z]+/y);
    if (word !== null && word in WORDS) return WORDS[word];
    throw this.#error("a literal value");
  }
  #string(quote: string): string {
    let out = "";
    for (;;) {
      if (this.#text.startsWith(quote, this.#at)) {
        this.#at += quote.length;
        return out;
      }
      const character = this.#text[this.#at];
      if (character === undefined) throw this.#error(`closing ${quote}`);
      this.#at += 1;
      out += character === "\\" ? this.#escape() : character;
    }
  }
  #escape(): string {
    const unicode = this.#match(/u[0-9a-fA-F]{4}/y);
    if (unicode !== null) return String.fromCharCode(Number.parseInt(unicode.slice(1), 16));
    const character = this.#text[this.#at] ?? "";
    this.#at += 1;
    return ESCAPES[character] ?? character;
  }
  #list(): unknown[] {
    const values: unknown[] = [];
    while (this.#match(/\s*[\])]/y) === null) {
      values.push(this.#value());
      if (this.#match(/\s*,\s*/y) === null && this.#peek(/\s*[\])]/y) === null) throw this.#error(", or ]");
    }
    return values;
  }
  #record(): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    while (this.#match(/\s*\}/y) === null) {
      const key = this.#value();
      this.#need(/\s*:\s*/y, ":");
      values[String(key)] = this.#value();
      if (this.#match(/\s*,\s*/y) === null && this.#peek(/\s*\}/y) === null) throw this.#error(", or }");
    }
    return values;
  }
  #match(pattern: RegExp): string | null {
    const found = this.#peek(pattern);
    if (found !== null) this.#at += found.length;
    return found;
  }
  #peek(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0] ?? null;
  }
  #need(pattern: RegExp, what: string): string {
    const found = this.#match(pattern);
    if (found === null) throw this.#error(what);
    return found;
  }
  #error(expected: string): SyntaxError {
    return new SyntaxError(`expected ${expected} at character ${this.#at} of the call`);
  }
}
