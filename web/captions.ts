/** Both sides of the conversation as text. Words that were cut off are struck out. */
import { element, make } from "./page.ts";
import type { Caption } from "./talk-model.ts";

const NAMES = { you: "You", assistant: "Antiphon", function: "Function" } as const;
/** Closer to the end than this, the list follows what is new. */
const FOLLOW_PX = 120;
const ANNOUNCED_MAX = 20;

export class Captions {
  readonly #list = element("captions");
  readonly #scroll = element("scroll");
  readonly #welcome = element("welcome");
  /** What grows word by word would be read aloud again with each word: a screen reader is told once, at the end. */
  readonly #announcer = element("announcer");
  readonly #announced = new Set<string>();
  readonly #rows = new Map<string, { readonly row: HTMLElement; shown: string }>();

  constructor() {
    // The arrow keys scroll it.
    this.#scroll.tabIndex = 0;
    // What was in sight stays in sight when panels come and go.
    let isAtEnd = true;
    this.#scroll.addEventListener("scroll", () => {
      isAtEnd = this.#isAtEnd;
    });
    new ResizeObserver(() => {
      if (isAtEnd) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    }).observe(this.#scroll);
  }

  get #isAtEnd(): boolean {
    return this.#scroll.scrollHeight - this.#scroll.scrollTop - this.#scroll.clientHeight < FOLLOW_PX;
  }

  render(captions: readonly Caption[]): void {
    const isAtEnd = this.#isAtEnd;
    for (const caption of captions) {
      const shown = `${caption.status}${caption.heardLength}${caption.text}`;
      const known = this.#rows.get(caption.itemId);
      if (known?.shown === shown) continue;
      const row = known?.row ?? this.#list.appendChild(make("li", `caption ${caption.speaker}`));
      row.replaceChildren(make("span", "who", NAMES[caption.speaker]), words(caption));
      row.dataset["status"] = caption.status;
      // A turn in which nothing was said leaves no line.
      row.hidden = caption.status === "done" && caption.text === "";
      this.#rows.set(caption.itemId, { row, shown });
      if (caption.status === "done" && caption.text !== "") this.#announceOnce(caption);
    }
    this.#welcome.hidden = this.#list.children.length > 0;
    if (isAtEnd) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  note(text: string): void {
    this.#announce(text);
    this.#list.append(make("li", "note", text));
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.#welcome.hidden = true;
  }

  #announceOnce({ itemId, speaker, text }: Caption): void {
    if (this.#announced.has(itemId)) return;
    this.#announced.add(itemId);
    this.#announce(`${NAMES[speaker]}: ${text.trim()}`);
  }
  #announce(text: string): void {
    this.#announcer.append(make("p", "", text));
    if (this.#announcer.childElementCount > ANNOUNCED_MAX) this.#announcer.firstElementChild?.remove();
  }

  clear(): void {
    this.#announcer.replaceChildren();
    this.#announced.clear();
    this.#list.replaceChildren();
    this.#rows.clear();
    this.#welcome.hidden = false;
  }
}

function words({ text, status, heardLength }: Caption): HTMLElement {
  if (status === "failed") return make("p", "missing", "This could not be understood.");
  if (text === "") {
    const dots = make("p", "dots", make("i", ""), make("i", ""), make("i", ""));
    dots.setAttribute("aria-hidden", "true");
    return dots;
  }
  if (heardLength === null || heardLength >= text.trimEnd().length) return make("p", "", text);
  // The space between the two belongs to neither, and is not struck.
  const rest = text.slice(heardLength);
  const unheard = make("s", "", make("span", "hidden", "Cut off: "), rest.trim());
  return make("p", "", text.slice(0, heardLength), /^\s/.test(rest) ? " " : "", unheard);
}
