/** A text that grows, on an output that cannot be taken back. */
import type { CliOutput } from "./context.ts";

/** A model may write anything; a terminal must not obey it. */
export const withoutControls = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, "");

export class GrowingText {
  readonly #output: CliOutput;
  #printed = "";

  constructor(output: CliOutput) {
    this.#output = output;
  }
  /** `text` is cumulative. What contradicts the words that were printed begins a new line. */
  show(text: string): void {
    // A character whose last bytes are still to come shows as U+FFFD, and is waited for.
    const clean = withoutControls(text).replace(/\uFFFD+$/, "");
    if (clean.startsWith(this.#printed)) this.#output.write(clean.slice(this.#printed.length));
    else this.#output.write(`\n${clean}`);
    this.#printed = clean;
  }
  /** Ends the line, if there is one. */
  end(): void {
    if (this.#printed !== "" && !this.#printed.endsWith("\n")) this.#output.write("\n");
    this.#printed = "";
  }
}
