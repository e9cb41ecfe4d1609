import { describe, expect, it } from "vitest";
import { Conversation, type ConversationOptions } from "../support/conversation.ts";

const update = (input: object): object => ({ type: "session.update", session: { type: "realtime", audio: { input } } });

function pushToTalk(options: ConversationOptions = {}): Conversation {
  const talk = new Conversation(options);
  talk.send(update({ turn_detection: null }));
  return talk;
}

/** The segment of the last commit. */
const committed = (talk: Conversation): string => {
  const command = talk.engine.commands.findLast((other) => other.type === "input.commit");
  return command?.type === "input.commit" ? command.segmentId : "";
};

describe("push to talk", () => {
  it("makes an item of a commit, and no response (bifrost #7189)", () => {
    const talk = pushToTalk();
    talk.append(400);
    const types = talk.during(() => {
      talk.send({ type: "input_audio_buffer.commit" });
      talk.engine.understand(committed(talk), "Turn on the light.");
    });
    expect(types).toEqual([
      "input_audio_buffer.committed",
      "conversation.item.added",
      "conversation.item.created",
      "conversation.item.done",
      "conversation.item.input_audio_transcription.completed",
    ]);
    expect(talk.engine.requests).toEqual([]);
    expect(talk.send({ type: "response.create" })[0]?.type).toBe("response.created");
    expect(talk.engine.lastRequest.items).toMatchObject([{ content: [{ transcript: "Turn on the light." }] }]);
  });

  it("answers what was said when the client asks before the transcript is there", () => {
    // A response that starts with the commit must not start without the words: it waits for them.
    const talk = pushToTalk();
    talk.append(400);
    talk.send({ type: "input_audio_buffer.commit" });
    expect(talk.send({ type: "response.create" }).map((event) => event.type)).toContain("response.created");
    expect(talk.engine.requests).toEqual([]);
    talk.engine.understand(committed(talk), "What time is it?");
    expect(talk.engine.lastRequest.items).toMatchObject([{ content: [{ transcript: "What time is it?" }] }]);
  });

  it("can be cancelled while it waits for the words, without a word to the engine", () => {
    const talk = pushToTalk();
    talk.append(400);
    talk.send({ type: "input_audio_buffer.commit" });
    talk.send({ type: "response.create" });
    talk.send({ type: "response.cancel" });
    expect(talk.last("response.done").response.status).toBe("cancelled");
    talk.engine.understand(committed(talk), "Never mind.");
    expect(talk.engine.requests).toEqual([]);
    expect(talk.engine.cancelled).toEqual([]);
  });

  it("says how many milliseconds a commit that is too short got", () => {
    const talk = pushToTalk();
    talk.send({ type: "input_audio_buffer.commit", event_id: "e1" });
    expect(talk.lastError).toMatchObject({ code: "input_audio_buffer_commit_empty", event_id: "e1" });
    expect(talk.lastError.message).toContain("0.00 ms");
    talk.append(60);
    talk.send({ type: "input_audio_buffer.commit" });
    expect(talk.lastError.message).toContain("60.00 ms");
    talk.append(40);
    expect(talk.send({ type: "input_audio_buffer.commit" })[0]?.type).toBe("input_audio_buffer.committed");
    talk.send({ type: "input_audio_buffer.commit" });
    expect(talk.lastError.message).toContain("0.00 ms");
  });

  it("forgets what was cleared", () => {
    const talk = pushToTalk();
    talk.append(400);
    expect(talk.send({ type: "input_audio_buffer.clear" })).toMatchObject([{ type: "input_audio_buffer.cleared" }]);
    talk.send({ type: "input_audio_buffer.commit" });
    expect(talk.lastError.code).toBe("input_audio_buffer_commit_empty");
    expect(talk.engine.commands.at(-1)).toEqual({ type: "input.clear" });
  });

  it("ignores what a detector still says", () => {
    const talk = pushToTalk();
    expect(talk.during(() => talk.engine.turn("s1", "Hello."))).toEqual([]);
  });
});

describe("a detected turn", () => {
  it("that goes on before the answer is revised: one answer, not two (livekit #323)", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.engine.stopSpeech("s1");
    talk.engine.startSpeech("s2");
    talk.engine.understand("s1", "What is the weather");
    expect(talk.engine.requests).toEqual([]);
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "in Paris?");
    expect(talk.engine.requests).toHaveLength(1);
    expect(talk.engine.lastRequest.items).toMatchObject([
      { content: [{ transcript: "What is the weather" }] },
      { content: [{ transcript: "in Paris?" }] },
    ]);
  });

  it("that goes on before the first audio replaces the response", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "What is the weather");
    talk.engine.turn("s2", "in Paris?");
    expect(talk.of("response.done").map((event) => event.response.status)).toEqual(["cancelled"]);
    expect(talk.engine.requests).toHaveLength(2);
    expect(talk.engine.lastRequest.items).toHaveLength(2);
  });

  it("in the gap between response.create and its first audio takes the response's place", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create", response: { instructions: "Greet." } });
    talk.engine.turn("s1", "Hi there.");
    expect(talk.of("response.done")[0]?.response.status_details?.reason).toBe("turn_detected");
    expect(talk.engine.lastRequest.instructions).toBe("");
    expect(talk.engine.requests).toHaveLength(2);
  });

  it("in that gap that turns out a noise gives the client's own response back, as it was asked for", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create", response: { instructions: "Greet." } });
    talk.engine.turn("s1", "");
    expect(talk.engine.lastRequest.instructions).toBe("Greet.");
  });

  it("makes no response with create_response false, and the client's own has the words", () => {
    const talk = new Conversation();
    talk.send(update({ turn_detection: { type: "server_vad", create_response: false } }));
    talk.engine.turn("s1", "Hello.");
    expect(talk.engine.requests).toEqual([]);
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toHaveLength(1);
  });

  it("is answered once when the client asks while its transcript is pending", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.engine.stopSpeech("s1");
    talk.send({ type: "response.create" });
    talk.engine.understand("s1", "Hello.");
    talk.engine.end(talk.engine.lastRequest.responseId);
    expect(talk.engine.requests).toHaveLength(1);
    expect(talk.engine.lastRequest.items).toHaveLength(1);
  });

  it("whose item the client deleted before its transcript came makes no response", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.engine.stopSpeech("s1");
    talk.send({ type: "conversation.item.delete", item_id: talk.last("input_audio_buffer.committed").item_id });
    expect(talk.during(() => talk.engine.understand("s1", "Forget it."))).toEqual([]);
  });

  it("can be committed by hand while it is being spoken, under the id that was told", () => {
    const talk = new Conversation();
    talk.append(500);
    talk.engine.startSpeech("s1");
    talk.send({ type: "input_audio_buffer.commit" });
    expect(committed(talk)).toBe("s1");
    expect(talk.last("input_audio_buffer.committed").item_id).toBe(
      talk.last("input_audio_buffer.speech_started").item_id,
    );
    expect(talk.during(() => talk.engine.stopSpeech("s1"))).toEqual([]);
  });

  it("that is open when detection is switched off is kept, and not answered", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.send(update({ turn_detection: null }));
    talk.engine.stopSpeech("s1");
    talk.engine.understand("s1", "Wait for my button.");
    expect(talk.engine.requests).toEqual([]);
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toHaveLength(1);
  });

  it("that is cleared in mid-speech leaves nothing behind", () => {
    const talk = new Conversation();
    talk.engine.startSpeech("s1");
    talk.send({ type: "input_audio_buffer.clear" });
    expect(
      talk.during(() => {
        talk.engine.stopSpeech("s1");
        talk.engine.understand("s1", "Hello.");
      }),
    ).toEqual([]);
  });

  it("gives no transcript events where transcription is off, and the model still reads the words", () => {
    const talk = new Conversation();
    talk.send(update({ transcription: null }));
    expect(talk.last("session.updated").session.audio?.input).not.toHaveProperty("transcription");
    const types = talk.during(() => {
      talk.engine.startSpeech("s1");
      talk.engine.hear("s1", "Hello");
      talk.engine.stopSpeech("s1");
      talk.engine.understand("s1", "Hello.");
    });
    expect(types.filter((type) => type.includes("transcription"))).toEqual([]);
    expect(talk.engine.lastRequest.items).toMatchObject([{ content: [{ transcript: "Hello." }] }]);
  });
});

describe("audio that stops arriving in mid-speech (pipecat #4124)", () => {
  it("is taken for silence, so that the turn can end", () => {
    const talk = new Conversation();
    talk.listen(400);
    talk.engine.startSpeech("s1", 0);
    const before = talk.engine.pushedSamples;
    talk.clock.advance(900);
    expect(talk.engine.pushedSamples).toBe(before);
    talk.clock.advance(900);
    expect(talk.engine.pushedSamples).toBeGreaterThan(before + 16_000);
    talk.engine.stopSpeech("s1");
    const atEnd = talk.engine.pushedSamples;
    talk.clock.advance(5000);
    expect(talk.engine.pushedSamples).toBe(atEnd);
  });

  it("does not shift the client's time: inserted silence is not counted", () => {
    const talk = new Conversation();
    talk.send(update({ format: { type: "audio/pcm", rate: 16000 } }));
    talk.listen(400);
    talk.engine.startSpeech("s1", 0);
    talk.clock.advance(2000);
    talk.engine.stopSpeech("s1");
    expect(talk.last("input_audio_buffer.speech_stopped").audio_end_ms).toBe(400);
    talk.listen(600);
    talk.engine.startSpeech("s2");
    expect(talk.last("input_audio_buffer.speech_started").audio_start_ms).toBe(1000);
  });

  it("is not missed while the engine is behind: a client that uploads fast is made to wait", () => {
    const talk = new Conversation();
    talk.listen(400);
    talk.engine.startSpeech("s1", 0);
    const before = talk.engine.pushedSamples;
    talk.engine.backlogSamples = 160_000;
    talk.clock.advance(10_000);
    expect(talk.engine.pushedSamples).toBe(before);
  });

  it("ends the turn in any case after a while", () => {
    const talk = new Conversation();
    talk.listen(400);
    talk.engine.startSpeech("s1", 0);
    talk.clock.advance(15_000);
    expect(talk.types).toContain("input_audio_buffer.speech_stopped");
  });
});

describe("idle_timeout_ms", () => {
  const idle = update({ turn_detection: { type: "server_vad", idle_timeout_ms: 5000 } });

  it("prompts the user after an answer was heard and nobody spoke", () => {
    const talk = new Conversation();
    talk.send(idle);
    talk.engine.turn("s1", "Hello.");
    const id = talk.engine.lastRequest.responseId;
    talk.engine.say(id, "Hi! How can I help?", 2000);
    talk.engine.end(id);
    talk.listen(6900);
    expect(talk.types).not.toContain("input_audio_buffer.timeout_triggered");
    const types = talk.during(() => talk.listen(200));
    expect(types.slice(0, 5)).toEqual([
      "input_audio_buffer.timeout_triggered",
      "input_audio_buffer.committed",
      "conversation.item.added",
      "conversation.item.created",
      "conversation.item.done",
    ]);
    expect(types).toContain("response.created");
    const { audio_start_ms, audio_end_ms } = talk.last("input_audio_buffer.timeout_triggered");
    expect(audio_end_ms - audio_start_ms).toBe(5000);
  });

  it("is put off by speech, and does not run before the first answer", () => {
    const talk = new Conversation();
    talk.send(idle);
    talk.clock.advance(20_000);
    talk.engine.turn("s1", "Hello.");
    talk.engine.end(talk.engine.lastRequest.responseId);
    talk.clock.advance(4000);
    talk.engine.startSpeech("s2");
    talk.listen(8000);
    expect(talk.types).not.toContain("input_audio_buffer.timeout_triggered");
  });
});

describe("a transcription session", () => {
  it("transcribes and never answers", () => {
    const talk = new Conversation({ type: "transcription" });
    expect(talk.last("session.created").session.type).toBe("transcription");
    talk.engine.startSpeech("s1");
    talk.engine.hear("s1", "Good");
    talk.engine.stopSpeech("s1");
    talk.engine.understand("s1", "Good morning.");
    expect(talk.last("conversation.item.input_audio_transcription.completed").transcript).toBe("Good morning.");
    expect(talk.engine.requests).toEqual([]);
    expect(talk.send({ type: "response.create" })).toMatchObject([{ error: { code: "invalid_session_type" } }]);
  });

  it("can be asked for by the first update, and not once there are items", () => {
    const talk = new Conversation();
    const type = { type: "session.update", session: { type: "transcription" } };
    expect(talk.send(type)).toMatchObject([{ type: "session.updated", session: { type: "transcription" } }]);
    talk.engine.turn("s1", "Hello.");
    expect(talk.send({ type: "session.update", session: { type: "realtime" } })).toMatchObject([
      { error: { code: "invalid_session_type", param: "session.type" } },
    ]);
  });
});
