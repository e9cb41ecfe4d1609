/** The conversation as text: who says what, while it is said. */
import type { ServerEvent } from "../protocol/openai/server-events.ts";
import type { CliOutput } from "./context.ts";

type Speaker = "you" | "answer";
const LABELS: Readonly<Record<Speaker, string>> = { you: "You:    ", answer: "Answer: " };

export interface TranscriptView {
  show(event: ServerEvent): void;
  tool(name: string, argumentsJson: string, output: string): void;
}

/** Lines of text. On a terminal the user's words appear as they are recognized; elsewhere each line is written once. */
export class TextView implements TranscriptView {
  readonly #output: CliOutput;
  /** The line that is still being written. */
  #open: Speaker | null = null;
  #partial = "";
  constructor(output: CliOutput) {
    this.#output = output;
  }
  show(event: ServerEvent): void {
    switch (event.type) {
      case "conversation.item.input_audio_transcription.delta":
        if (!this.#output.isTty) break;
        this.#begin("you");
        this.#output.write(event.delta);
        this.#partial += event.delta;
        break;
      case "conversation.item.input_audio_transcription.completed":
        this.#heard(event.transcript);
        break;
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        this.#begin("answer");
        this.#output.write(event.delta);
        break;
      case "response.done":
        if (event.response.status === "cancelled" && this.#open === "answer") this.#output.write(" –");
        this.#end();
        break;
      case "error":
        this.#line(`Error:  ${event.error.message}`);
        break;
      case "conversation.item.input_audio_transcription.failed":
        this.#line(`Error:  ${event.error.message}`);
        break;
      default:
    }
  }
  tool(name: string, argumentsJson: string, output: string): void {
    this.#line(`Tool:   ${name}(${argumentsJson}) = ${output}`);
  }
  #heard(transcript: string): void {
    if (transcript.trim() === "") {
      this.#end();
      return;
    }
    // The words so far stand already, unless another line has begun since or the final text differs.
    if (this.#open === "you" && transcript.startsWith(this.#partial)) {
      this.#output.write(transcript.slice(this.#partial.length));
    } else {
      if (this.#open === "you") this.#output.write("\r\x1b[K");
      else this.#end();
      this.#output.write(`${LABELS.you}${transcript.trim()}`);
      this.#open = "you";
    }
    this.#end();
  }
  #begin(speaker: Speaker): void {
    if (this.#open === speaker) return;
    this.#end();
    this.#output.write(LABELS[speaker]);
    this.#open = speaker;
  }
  #line(text: string): void {
    this.#end();
    this.#output.write(`${text}\n`);
  }
  #end(): void {
    if (this.#open !== null) this.#output.write("\n");
    this.#open = null;
    this.#partial = "";
  }
}

/** Every event of the server as a line of JSON; audio is counted, not printed. */
export class JsonView implements TranscriptView {
  readonly #output: CliOutput;
  constructor(output: CliOutput) {
    this.#output = output;
  }
  show(event: ServerEvent): void {
    const shown =
      event.type === "response.output_audio.delta" ? { ...event, delta: `(${event.delta.length} characters)` } : event;
    this.#output.write(`${JSON.stringify(shown)}\n`);
  }
  tool(name: string, argumentsJson: string, output: string): void {
    this.#output.write(`${JSON.stringify({ type: "client.tool", name, arguments: argumentsJson, output })}\n`);
  }
}
