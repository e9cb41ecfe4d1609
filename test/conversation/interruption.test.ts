import { describe, expect, it } from "vitest";
import { AppError } from "../../src/errors.ts";
import { Conversation } from "../support/conversation.ts";

/** A conversation in which the assistant has begun to say two clauses of a second each, and 500 ms were played. */
function speaking(audioPath: "events" | "track" = "events"): { talk: Conversation; id: string } {
  const talk = new Conversation({ audioPath });
  talk.engine.turn("s1", "Tell me a story.");
  const id = talk.engine.lastRequest.responseId;
  talk.engine.say(id, "Once upon a time ", 1000);
  talk.engine.say(id, "there was a king.", 1000);
  talk.clock.advance(500);
  return { talk, id };
}

const content = (talk: Conversation, itemId: string): unknown => {
  talk.send({ type: "conversation.item.retrieve", item_id: itemId });
  return talk.last("conversation.item.retrieved").item;
};

describe("barge-in", () => {
  it("stops the answer at once and keeps in the history what was heard", () => {
    const { talk, id } = speaking();
    const types = talk.during(() => talk.engine.startSpeech("s2"));
    expect(types).toEqual([
      "input_audio_buffer.speech_started",
      "response.output_audio.done",
      "response.output_audio_transcript.done",
      "response.content_part.done",
      "response.output_item.done",
      "conversation.item.done",
      "conversation.item.truncated",
      "response.done",
    ]);
    expect(talk.last("response.done").response).toMatchObject({
      id,
      status: "cancelled",
      status_details: { type: "cancelled", reason: "turn_detected" },
    });
    expect(talk.last("conversation.item.truncated").audio_end_ms).toBe(500);
    expect(talk.engine.cancelled).toEqual([id]);
    const item = talk.last("conversation.item.done").item;
    expect(item).toMatchObject({ status: "incomplete", content: [{ type: "output_audio", transcript: "Once upon" }] });
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "No, a poem.");
    expect(talk.engine.lastRequest.items).toMatchObject([
      { role: "user", content: [{ transcript: "Tell me a story." }] },
      { role: "assistant", interrupted: true, content: [{ type: "text", text: "Once upon" }] },
      { role: "user", content: [{ transcript: "No, a poem." }] },
    ]);
  });

  it("drops what the engine still says of a broken-off response", () => {
    const { talk, id } = speaking();
    talk.engine.startSpeech("s2");
    expect(
      talk.during(() => {
        talk.engine.say(id, "Late words.", 500);
        talk.engine.call(id, "c1", "f", "{}");
        talk.engine.end(id);
      }),
    ).toEqual([]);
  });

  it("truncates an answer that was done but not yet played to its end", () => {
    const { talk, id } = speaking();
    talk.engine.end(id);
    const types = talk.during(() => talk.engine.startSpeech("s2"));
    expect(types).toEqual(["input_audio_buffer.speech_started", "conversation.item.truncated"]);
    expect(content(talk, talk.last("conversation.item.truncated").item_id)).toMatchObject({
      status: "incomplete",
      content: [{ transcript: "Once upon" }],
    });
  });

  it("changes nothing when the answer was heard to its end", () => {
    const { talk, id } = speaking();
    talk.engine.end(id);
    talk.clock.advance(2000);
    expect(talk.during(() => talk.engine.startSpeech("s2"))).toEqual(["input_audio_buffer.speech_started"]);
    expect(content(talk, talk.last("conversation.item.done").item.id as string)).toMatchObject({ status: "completed" });
  });

  it("clears the track and says so", () => {
    const { talk } = speaking("track");
    talk.engine.startSpeech("s2");
    const types = talk.during(() => talk.engine.hear("s2", "Wait"));
    expect(types).toContain("output_audio_buffer.cleared");
    expect(talk.last("response.done").response.status).toBe("cancelled");
    expect(talk.engine.commands.at(-1)).toEqual({ type: "playback", audible: false });
  });

  it("by the client's cancel keeps what was heard, and the client's truncate corrects it", () => {
    const { talk } = speaking();
    talk.send({ type: "response.cancel" });
    expect(talk.last("response.done").response.status_details).toEqual({
      type: "cancelled",
      reason: "client_cancelled",
    });
    const itemId = talk.last("conversation.item.done").item.id as string;
    talk.send({ type: "conversation.item.truncate", item_id: itemId, content_index: 0, audio_end_ms: 1500 });
    expect(content(talk, itemId)).toMatchObject({ content: [{ transcript: "Once upon a time there was" }] });
  });
});

describe("interrupt_response false", () => {
  it("really ignores speech during the answer, and answers it afterwards", () => {
    const { talk, id } = speaking();
    const turn_detection = { type: "server_vad", interrupt_response: false };
    talk.send({ type: "session.update", session: { type: "realtime", audio: { input: { turn_detection } } } });
    talk.engine.turn("s2", "And then?");
    expect(talk.engine.cancelled).toEqual([]);
    expect(talk.engine.requests).toHaveLength(1);
    talk.engine.say(id, " The end.", 300);
    talk.engine.end(id);
    expect(talk.last("response.created").response.id).not.toBe(id);
    expect(talk.engine.requests).toHaveLength(2);
  });
});

describe("a noise", () => {
  it("before the first audio does not cost the answer (a cough, pipecat #4308)", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "How are you?");
    talk.engine.startSpeech("s2");
    expect(talk.last("response.done").response.status).toBe("cancelled");
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "");
    expect(talk.engine.requests).toHaveLength(2);
    expect(talk.engine.lastRequest.items).toHaveLength(1);
    expect(talk.engine.lastRequest.instructions).toBe("");
  });

  it("over an answer that the client plays continues it in a new response", () => {
    const { talk } = speaking();
    talk.engine.startSpeech("s2");
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "  ");
    expect(talk.engine.requests).toHaveLength(2);
    expect(talk.engine.lastRequest.instructions).toContain("Continue it from where it stopped");
    expect(talk.engine.lastRequest.items.at(-1)).toMatchObject({ role: "assistant", interrupted: true });
  });

  it("over an answer that the server plays pauses it and lets it go on where it was", () => {
    const { talk, id } = speaking("track");
    expect(talk.during(() => talk.engine.startSpeech("s2"))).toEqual(["input_audio_buffer.speech_started"]);
    talk.engine.say(id, " The end.", 500);
    expect(talk.trackMs).toBe(2000);
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "");
    expect(talk.trackMs).toBe(2000 + 1500 + 500);
    talk.engine.end(id);
    expect(talk.last("response.done").response.status).toBe("completed");
    expect(talk.types).not.toContain("output_audio_buffer.cleared");
    talk.clock.advance(2000);
    expect(talk.types.at(-1)).toBe("output_audio_buffer.stopped");
    expect(talk.engine.cancelled).toEqual([]);
  });

  it("three times in a row is enough: the answer is let go, and the next word brings one", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "How are you?");
    for (let i = 2; i <= 6; i++) talk.engine.turn(`s${i}`, "");
    expect(talk.engine.requests).toHaveLength(4);
    talk.engine.turn("s9", "Hello?");
    expect(talk.engine.requests).toHaveLength(5);
  });

  it("while nothing is being said makes an item and no response", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "");
    expect(talk.engine.requests).toEqual([]);
    expect(talk.last("conversation.item.input_audio_transcription.completed").transcript).toBe("");
  });
});

describe("a sign of listening (HF #565)", () => {
  it("lets an answer on the track go on", () => {
    const { talk } = speaking("track");
    talk.engine.startSpeech("s2");
    talk.engine.hear("s2", "Mm-hmm.");
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "Mm-hmm.");
    expect(talk.engine.cancelled).toEqual([]);
    expect(talk.engine.requests).toHaveLength(1);
    expect(talk.trackMs).toBe(2000 + 1500);
  });

  it("is an answer when the assistant has all but finished", () => {
    const { talk, id } = speaking("track");
    talk.engine.end(id);
    talk.clock.advance(1200);
    talk.engine.turn("s2", "Yes.");
    expect(talk.engine.requests).toHaveLength(2);
  });

  it("is not what 'stop' is", () => {
    const { talk } = speaking("track");
    talk.engine.startSpeech("s2");
    talk.engine.hear("s2", "Stop");
    expect(talk.engine.cancelled).toHaveLength(1);
  });

  it("is not what long speech is, even before a word of it is known", () => {
    const { talk } = speaking("track");
    talk.engine.startSpeech("s2");
    for (let ms = 0; ms < 1300; ms += 20) talk.appendTrack(20);
    expect(talk.engine.cancelled).toHaveLength(1);
  });
});

describe("failures", () => {
  it("of a transcript are told, and the session goes on (speaches #559)", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.engine.stopSpeech("s1");
    talk.engine.failTranscript("s1", new AppError("worker_died"));
    expect(talk.last("conversation.item.input_audio_transcription.failed").error.code).toBe("worker_died");
    expect(talk.engine.requests).toEqual([]);
    talk.engine.turn("s2", "Hello.");
    expect(talk.engine.requests).toHaveLength(1);
  });

  it("of a response end it with an error and leave the next one whole", () => {
    const { talk, id } = speaking();
    const types = talk.during(() => talk.engine.end(id, "failed", new AppError("worker_died")));
    expect(types.slice(-2)).toEqual(["error", "response.done"]);
    expect(talk.last("response.done").response).toMatchObject({
      status: "failed",
      status_details: { type: "failed", error: { type: "server_error", code: "worker_died" } },
      output: [{ status: "incomplete" }],
    });
    talk.engine.turn("s2", "Again, please.");
    expect(talk.engine.requests).toHaveLength(2);
  });

  it("of a transcript that never comes end the wait (pipecat #1493)", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "How are you?");
    talk.engine.startSpeech("s2");
    talk.engine.stopSpeech("s2");
    talk.clock.advance(20_000);
    expect(talk.last("conversation.item.input_audio_transcription.failed").error.code).toBe("stt_failed");
    expect(talk.engine.requests).toHaveLength(2);
  });
});
