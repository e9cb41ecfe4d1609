/** For the curious: how long each turn took, and every event as it went over the wire. */
import { element, make } from "./page.ts";
import type { TurnLatency } from "./talk-model.ts";

const EVENTS_MAX = 500;
const AUDIO_TYPES = ["input_audio_buffer.append", "response.output_audio.delta", "response.audio.delta"];
/** A full-duplex session sends audio both ways at once, with text between. */
const RUN_ROWS = 4;
/** Audio is long and says nothing to the eye. */
const BASE64_SHOWN_MAX = 64;

type Direction = "sent" | "received";

interface Entry {
  readonly atMs: number;
  readonly direction: Direction;
  readonly event: { readonly type: string };
  readonly row: HTMLElement;
  readonly summary: HTMLElement;
  count: number;
}

export class Details {
  readonly #panel = element("details");
  readonly #toggle = element<HTMLButtonElement>("toggle-details");
  readonly #latency = element("latency");
  readonly #list = element("events");
  readonly #filter = element<HTMLInputElement>("event-filter");
  #entries: Entry[] = [];
  #startMs = performance.now();
  #latencyShown = "";

  constructor() {
    this.#toggle.addEventListener("click", () => this.#show(this.#panel.hidden === true));
    this.#panel.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      this.#show(false);
      this.#toggle.focus();
    });
    this.#filter.addEventListener("input", () => {
      for (const { row, event } of this.#entries) row.hidden = !this.#matches(event.type);
    });
    element("copy-events").addEventListener("click", () => void this.#copy());
  }

  began(): void {
    this.#startMs = performance.now();
    this.#entries = [];
    this.#list.replaceChildren();
    element("connect-time").textContent = "";
  }

  connected(ms: number): void {
    element("connect-time").textContent = `From the click to the session: ${Math.round(ms)} ms.`;
  }

  /** Audio comes fifty times a second: a run of it is one row with a count. */
  add(direction: Direction, event: { readonly type: string }): void {
    const last = this.#entries.slice(-RUN_ROWS).findLast((entry) => entry.event.type === event.type);
    if (last !== undefined && AUDIO_TYPES.includes(event.type)) {
      last.count += 1;
      last.summary.dataset["count"] = `× ${last.count}`;
      return;
    }
    const atMs = performance.now() - this.#startMs;
    const isAtEnd = this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < 60;
    const summary = make("summary", "", make("time", "", (atMs / 1000).toFixed(2)), make("b", "", event.type));
    const arrow = make("span", "hidden", direction === "sent" ? "sent" : "received");
    summary.prepend(arrow);
    const disclosure = make("details", "", summary);
    disclosure.addEventListener("toggle", () => {
      if (disclosure.childElementCount === 1)
        disclosure.append(make("pre", "", JSON.stringify(shorten(event), null, 2)));
      if (disclosure.open) disclosure.scrollIntoView({ block: "nearest" });
    });
    const row = make("li", direction, disclosure);
    row.hidden = !this.#matches(event.type);
    this.#entries.push({ atMs, direction, event, row, summary, count: 1 });
    this.#list.append(row);
    if (this.#entries.length > EVENTS_MAX) this.#entries.shift()?.row.remove();
    if (isAtEnd) this.#list.scrollTop = this.#list.scrollHeight;
  }

  renderLatency(turns: readonly TurnLatency[]): void {
    const shown = JSON.stringify(turns.slice(-20));
    if (shown === this.#latencyShown) return;
    this.#latencyShown = shown;
    const cell = (ms: number | null, kind = ""): HTMLElement =>
      make("td", kind, ms === null ? "–" : String(Math.round(ms)));
    const rows = turns.map((turn, index) => {
      const heading = make("th", "", String(index + 1));
      heading.scope = "row";
      return make(
        "tr",
        "",
        heading,
        cell(turn.transcriptMs, "of-openai"),
        cell(turn.firstWordMs),
        cell(turn.firstSoundMs),
      );
    });
    this.#latency.replaceChildren(...rows.slice(-20).reverse());
  }

  #show(isShown: boolean): void {
    this.#panel.hidden = !isShown;
    this.#toggle.setAttribute("aria-expanded", String(isShown));
    document.body.toggleAttribute("data-details", isShown);
  }

  #matches(type: string): boolean {
    return type.includes(this.#filter.value.trim().toLowerCase());
  }

  async #copy(): Promise<void> {
    const lines = this.#entries
      .filter(({ event }) => this.#matches(event.type))
      .map(({ atMs, direction, event }) => JSON.stringify({ atMs: Math.round(atMs), direction, ...shorten(event) }));
    const button = element("copy-events");
    await navigator.clipboard.writeText(lines.join("\n")).then(
      () => (button.textContent = "Copied"),
      () => (button.textContent = "Not allowed"),
    );
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }
}

function shorten(event: object): object {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]) => {
      const isAudio = (name === "audio" || name === "delta") && typeof value === "string";
      if (!isAudio || value.length <= BASE64_SHOWN_MAX) return [name, value];
      return [name, `${value.slice(0, 24)}… (${value.length} characters)`];
    }),
  );
}
