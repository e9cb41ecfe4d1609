/**
 * Takes apart what a model streams: text to be spoken, and blocks that never are (its thoughts, tool calls written as
 * text). Tags may arrive in pieces; nothing that could still become one goes out.
 */

export type MarkupPart =
  | { readonly type: "text"; readonly text: string }
  /** The inside of a finished block that holds a tool call; `closed` is false if the stream ended within it. */
  | { readonly type: "call"; readonly tag: string; readonly body: string; readonly closed: boolean };

interface Block {
  readonly tag: string;
  readonly open: string;
  readonly close: string;
  readonly call: boolean;
}

const THOUGHTS: readonly Block[] = ["think", "thinking"].map((tag) => block(tag, false));
const CALLS: readonly Block[] = ["code", "tool_call"].map((tag) => block(tag, true));

function block(tag: string, call: boolean): Block {
  return { tag, open: `<${tag}>`, close: `</${tag}>`, call };
}

export class MarkupReader {
  readonly #blocks: readonly Block[];
  #held = "";
  #inside: Block | null = null;
  #body = "";

  /** @param calls whether the model writes its tool calls as text */
  constructor(calls: boolean) {
    this.#blocks = calls ? [...THOUGHTS, ...CALLS] : THOUGHTS;
  }
  push(delta: string): MarkupPart[] {
    this.#held += delta;
    const parts: MarkupPart[] = [];
    while (this.#step(parts));
    return parts;
  }
  /** What is left when the stream ends. */
  finish(): MarkupPart[] {
    const { tag, call } = this.#inside ?? { tag: "", call: false };
    const rest = this.#held;
    this.#held = "";
    if (this.#inside === null) return rest === "" ? [] : [{ type: "text", text: rest }];
    this.#inside = null;
    return call ? [{ type: "call", tag, body: this.#body + rest, closed: false }] : [];
  }

  /** Works off the front of what is held. True while there is more to do. */
  #step(parts: MarkupPart[]): boolean {
    if (this.#inside !== null) return this.#stepInside(this.#inside, parts);
    const openings = this.#blocks.map(({ open }) => open);
    const at = earliest(this.#held, openings);
    const safe = at?.index ?? this.#held.length - unfinished(this.#held, openings);
    if (safe > 0) parts.push({ type: "text", text: this.#held.slice(0, safe) });
    if (at === null) {
      this.#held = this.#held.slice(safe);
      return false;
    }
    this.#held = this.#held.slice(at.index + at.tag.length);
    this.#inside = this.#blocks.find(({ open }) => open === at.tag) ?? null;
    this.#body = "";
    return true;
  }
  #stepInside(inside: Block, parts: MarkupPart[]): boolean {
    const end = this.#held.indexOf(inside.close);
    if (end < 0) {
      const safe = this.#held.length - unfinished(this.#held, [inside.close]);
      // Thoughts are not kept: they may be long.
      if (inside.call) this.#body += this.#held.slice(0, safe);
      this.#held = this.#held.slice(safe);
      return false;
    }
    this.#body += this.#held.slice(0, end);
    if (inside.call) parts.push({ type: "call", tag: inside.tag, body: this.#body, closed: true });
    this.#held = this.#held.slice(end + inside.close.length);
    this.#inside = null;
    return true;
  }
}

function earliest(text: string, tags: readonly string[]): { index: number; tag: string } | null {
  let best: { index: number; tag: string } | null = null;
  for (const tag of tags) {
    const index = text.indexOf(tag);
    if (index >= 0 && (best === null || index < best.index)) best = { index, tag };
  }
  return best;
}

/** The length of the longest end of `text` that is the beginning of a tag. */
function unfinished(text: string, tags: readonly string[]): number {
  let longest = 0;
  for (const tag of tags) {
    for (let length = Math.min(tag.length - 1, text.length); length > longest; length--) {
      if (text.endsWith(tag.slice(0, length))) longest = length;
    }
  }
  return longest;
}
