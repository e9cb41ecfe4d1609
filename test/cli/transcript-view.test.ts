import { describe, expect, test } from "vitest";
import { JsonView, TextView } from "../../src/cli/transcript-view.ts";
import type { ServerEvent } from "../../src/protocol/openai/server-events.ts";

function view(isTty: boolean) {
  let text = "";
  const output = {
    isTty,
    columns: 80,
    write: (part: string) => {
      text += part;
    },
  };
  return { output, text: () => text };
}

const event = (body: object): ServerEvent => ({ event_id: "e", ...body }) as ServerEvent;
const heard = (delta: string): ServerEvent =>
  event({ type: "conversation.item.input_audio_transcription.delta", delta });
const transcript = (text: string): ServerEvent =>
  event({ type: "conversation.item.input_audio_transcription.completed", transcript: text });
const said = (delta: string): ServerEvent => event({ type: "response.output_audio_transcript.delta", delta });
const done = (status = "completed"): ServerEvent => event({ type: "response.done", response: { status } });

describe("the conversation as text", () => {
  test("elsewhere than on a terminal each line is written once", () => {
    const { output, text } = view(false);
    const lines = new TextView(output);
    for (const each of [
      heard("What "),
      heard("is"),
      transcript(" What is it?"),
      said("It is"),
      said(" a test."),
      done(),
    ]) {
      lines.show(each);
    }
    expect(text()).toBe("You:    What is it?\nAnswer: It is a test.\n");
  });

  test("on a terminal the words appear as they are recognized, and the final text replaces what differs", () => {
    const { output, text } = view(true);
    const lines = new TextView(output);
    for (const each of [heard("What"), heard(" is"), transcript("What is it?")]) lines.show(each);
    for (const each of [heard("Wat"), transcript("What?")]) lines.show(each);
    expect(text()).toBe("You:    What is it?\nYou:    Wat\r\x1b[KYou:    What?\n");
  });

  test("an answer that was cut off ends with a dash; what follows begins a new line", () => {
    const { output, text } = view(false);
    const lines = new TextView(output);
    for (const each of [said("The capital"), done("cancelled"), transcript("Stop."), said("Yes."), done()])
      lines.show(each);
    expect(text()).toBe("Answer: The capital –\nYou:    Stop.\nAnswer: Yes.\n");
  });

  test("errors and tools are lines of their own", () => {
    const { output, text } = view(false);
    const lines = new TextView(output);
    lines.show(said("Let me see"));
    lines.tool("add", '{"a":1}', "1");
    lines.show(event({ type: "error", error: { message: "No." } }));
    expect(text()).toBe('Answer: Let me see\nTool:   add({"a":1}) = 1\nError:  No.\n');
  });
});

test("as JSON: a line an event, audio counted", () => {
  const { output, text } = view(false);
  const lines = new JsonView(output);
  lines.show(event({ type: "response.output_audio.delta", delta: "AAAA" }));
  lines.show(said("x"));
  expect(
    text()
      .split("\n")
      .slice(0, 2)
      .map((line) => JSON.parse(line).delta),
  ).toEqual(["(4 characters)", "x"]);
});
