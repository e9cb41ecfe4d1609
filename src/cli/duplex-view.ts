/** Two voices that speak at the same time, on paper: a line for as long as nobody else says something. */

import type { CliContext, CliOutput } from "./context.ts";
import { withoutControls } from "./growing-text.ts";
import { type Style, styled } from "./terminal.ts";

export type Channel = "user" | "assistant" | "function";

const STYLES: Readonly<Record<Channel, Style>> = { user: "dim", assistant: "bold", function: "cyan" };

export class DuplexView {
  readonly #output: CliOutput;
  readonly #context: Pick<CliContext, "color">;
  readonly #printed: Record<Channel, string> = { user: "", assistant: "", function: "" };
  #current: Channel | null = null;

  constructor(output: CliOutput, context: Pick<CliContext, "color">) {
    this.#output = output;
    this.#context = context;
  }
  /** `text` is cumulative. */
  show(channel: Channel, text: string): void {
    // A character whose last bytes are still to come shows as U+FFFD, and is waited for.
    const clean = withoutControls(text).replace(/\uFFFD+$/, "");
    const before = this.#printed[channel];
    const added = clean.startsWith(before) ? clean.slice(before.length) : clean;
    this.#printed[channel] = clean;
    if (added === "") return;
    if (this.#current === channel && clean.startsWith(before)) this.#output.write(added);
    else this.#begin(channel, added);
  }
  /** Ends the line, if there is one. */
  end(): void {
    if (this.#current !== null) this.#output.write("\n");
    this.#current = null;
  }
  #begin(channel: Channel, words: string): void {
    this.end();
    this.#current = channel;
    this.#output.write(`${styled(this.#output, this.#context, STYLES[channel], `[${channel}]`)} ${words.trimStart()}`);
  }
}
