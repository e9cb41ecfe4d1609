import { describe, expect, it } from "vitest";
import { VoiceChatModel } from "../../web/voicechat-model.ts";

type Event = Parameters<VoiceChatModel["apply"]>[0];

const heard = (frame_index: number, transcript: string): Event => ({
  type: "conversation.item.input_audio_transcription.delta",
  frame_index,
  transcript,
});
const said = (frame_index: number, text: string): Event => ({ type: "response.text.delta", frame_index, text });
const called = (frame_index: number, text: string): Event => ({ type: "response.function.delta", frame_index, text });
const audio = (frame_index: number): Event => ({ type: "response.audio.delta", frame_index });

/** Told `events` at 80 ms for each frame. */
function told(...events: Event[]): VoiceChatModel {
  const model = new VoiceChatModel();
  for (const event of events) model.apply(event, Number(event["frame_index"] ?? 0) * 80);
  return model;
}
const lines = (model: VoiceChatModel): [string, string][] => model.captions.map(({ speaker, text }) => [speaker, text]);

describe("VoiceChatModel", () => {
  it("cuts the two streams into what each side said in turn", () => {
    const model = told(
      heard(5, "Hello"),
      heard(8, "Hello there"),
      said(14, " Hi!"),
      said(16, " Hi! How are"),
      // Late words of what was said before belong to it.
      heard(17, "Hello there friend"),
      said(18, " Hi! How are you?"),
      heard(40, "Hello there friend fine"),
      said(50, " Hi! How are you? Good."),
    );
    expect(lines(model)).toEqual([
      ["you", "Hello there friend"],
      ["assistant", "Hi! How are you?"],
      ["you", "fine"],
      ["assistant", "Good."],
    ]);
  });

  it("keeps one caption while one side goes on alone, whatever its pauses", () => {
    const model = told(said(3, "One"), said(90, "One two"), said(400, "One two three"));
    expect(lines(model)).toEqual([["assistant", "One two three"]]);
  });

  it("shows the function channel apart", () => {
    const model = told(heard(5, "Weather?"), called(9, "weather("), called(10, "weather()"), said(20, "Sunny."));
    expect(lines(model)).toEqual([
      ["you", "Weather?"],
      ["function", "weather()"],
      ["assistant", "Sunny."],
    ]);
  });

  it("hears while words come, speaks while there is sound, and listens otherwise", () => {
    const model = told(audio(4), heard(5, "Hello"), audio(5));
    expect(model.phase).toBe("hearing");
    model.apply(audio(14), 1120);
    expect(model.phase).toBe("listening");
    model.setPlaying(true, 1200);
    expect(model.phase).toBe("speaking");
    model.setPlaying(false, 2000);
    expect(model.phase).toBe("listening");
  });

  it("measures an answer from the last word that was heard", () => {
    const model = told(heard(5, "Hello"), heard(10, "Hello there"));
    model.setPlaying(true, 1000);
    model.apply(said(14, "Hi"), 1120);
    expect(model.turns).toEqual([{ startMs: 800, transcriptMs: null, firstWordMs: 320, firstSoundMs: 200 }]);
  });

  it("begins anew with a new session, below what was said", () => {
    const model = told(heard(50, "Hello there"), { type: "session.created" }, heard(2, "Again"));
    expect(lines(model)).toEqual([
      ["you", "Hello there"],
      ["you", "Again"],
    ]);
    expect(model.captions[0]?.status).toBe("done");
  });
});
