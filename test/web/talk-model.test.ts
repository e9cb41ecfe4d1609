import { describe, expect, it } from "vitest";
import { commonLength, TalkModel } from "../../web/talk-model.ts";

type Event = Parameters<TalkModel["apply"]>[0];

/** A model that was told `events`, one each 100 ms. */
function told(...events: Event[]): TalkModel {
  const model = new TalkModel();
  for (const [i, event] of events.entries()) model.apply(event, i * 100);
  return model;
}

const TURN: Event[] = [
  { type: "input_audio_buffer.speech_started", item_id: "u1" },
  { type: "input_audio_buffer.speech_stopped", item_id: "u1" },
  { type: "conversation.item.input_audio_transcription.delta", item_id: "u1", delta: "What is" },
  { type: "conversation.item.input_audio_transcription.completed", item_id: "u1", transcript: "What is it?" },
  { type: "response.created", response: { id: "r1" } },
  { type: "response.output_audio_transcript.delta", item_id: "a1", delta: "It is " },
  { type: "output_audio_buffer.started", response_id: "r1" },
  { type: "response.output_audio_transcript.delta", item_id: "a1", delta: "a long story." },
];

describe("TalkModel", () => {
  it("says whose turn it is at every step", () => {
    const model = new TalkModel();
    expect(model.phase).toBe("listening");
    const phases = TURN.map((event, i) => {
      model.apply(event, i);
      return model.phase;
    });
    expect(phases).toEqual([
      "hearing",
      "thinking",
      "thinking",
      "thinking",
      "thinking",
      "thinking",
      "speaking",
      "speaking",
    ]);
    model.apply({ type: "response.done", response: { id: "r1", status: "completed" } }, 900);
    expect(model.phase).toBe("speaking");
    model.apply({ type: "output_audio_buffer.stopped", response_id: "r1" }, 1000);
    expect(model.phase).toBe("listening");
  });

  it("writes both sides down and measures the turn from its end", () => {
    const model = told(...TURN);
    expect(model.captions.map(({ speaker, text }) => [speaker, text])).toEqual([
      ["you", "What is it?"],
      ["assistant", "It is a long story."],
    ]);
    expect(model.turns).toEqual([{ startMs: 100, transcriptMs: 200, firstWordMs: 400, firstSoundMs: 500 }]);
  });

  it("marks what was not heard, whether the server cut it or the page", () => {
    const heard = (text: string) => ({
      id: "a1",
      type: "message",
      role: "assistant",
      status: "incomplete",
      content: [{ type: "output_audio", transcript: text }],
    });
    const byServer = told(...TURN, { type: "conversation.item.done", item: heard("It is a") });
    expect(byServer.captions[1]).toMatchObject({ text: "It is a long story.", heardLength: 7 });
    const byPage = told(...TURN);
    const wanted = byPage.apply({ type: "conversation.item.truncated", item_id: "a1", audio_end_ms: 300 }, 900);
    expect(wanted).toEqual({ retrieve: "a1" });
    byPage.apply({ type: "conversation.item.retrieved", item: heard("It is") }, 1000);
    expect(byPage.captions[1]?.heardLength).toBe(5);
  });

  it("listens again after a sound that was no speech", () => {
    const cough = TURN.slice(0, 2);
    const empty = { type: "conversation.item.input_audio_transcription.completed", item_id: "u1", transcript: "" };
    expect(told(...cough, empty).phase).toBe("listening");
  });

  it("shows typed messages, and not what is no message", () => {
    const typed = { id: "u2", type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] };
    const call = { id: "f1", type: "function_call", name: "weather", arguments: "{}" };
    const model = told(
      { type: "conversation.item.added", item: typed },
      { type: "conversation.item.done", item: typed },
      { type: "conversation.item.added", item: call },
    );
    expect(model.captions).toHaveLength(1);
    expect(model.captions[0]).toMatchObject({ text: "Hello", status: "done", speaker: "you" });
  });

  it("leaves nothing open when the connection is gone", () => {
    const model = told(...TURN);
    model.disconnected();
    expect(model.phase).toBe("listening");
    expect(model.captions.every((caption) => caption.status === "done")).toBe(true);
  });
});

describe("commonLength", () => {
  it.each([
    ["One two three.", "One two", 7],
    ["One  two\nthree.", "One two three.", 15],
    ["One two three.", "", 0],
    ["One two three.", "One three.", 3],
    ["One two", "One two three", 7],
  ])("of %j heard as %j", (text, heard, length) => {
    expect(commonLength(text, heard)).toBe(length);
  });
});
