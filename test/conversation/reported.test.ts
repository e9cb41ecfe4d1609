/** What users of such servers reported, and no other file shows: repository and number, as their threads have them. */
import { describe, expect, it } from "vitest";
import { Conversation } from "../support/conversation.ts";

const tool = { type: "function", name: "weather", description: "The weather.", parameters: { type: "object" } };
const update = (session: object): object => ({ type: "session.update", session: { type: "realtime", ...session } });

describe("reported", () => {
  it("a conversation can be cleared by deleting its items (realtime-ai #35)", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "My name is Ada.");
    talk.engine.say(talk.engine.lastRequest.responseId, "Hello Ada.", 500);
    talk.engine.end(talk.engine.lastRequest.responseId);
    const ids = talk.of("conversation.item.added").map((event) => event.item.id as string);
    expect(ids).toHaveLength(2);
    for (const item_id of ids) {
      expect(talk.send({ type: "conversation.item.delete", item_id })).toMatchObject([
        { type: "conversation.item.deleted", item_id },
      ]);
    }
    talk.engine.turn("s2", "What is my name?");
    expect(talk.engine.lastRequest.items).toHaveLength(1);
    expect(talk.last("conversation.item.added").previous_item_id).toBeNull();
  });

  it("the client's cancel during a tool call closes it, and nothing of it comes after (hermes-agent #103279)", () => {
    const talk = new Conversation();
    talk.send(update({ tools: [tool] }));
    talk.send({ type: "response.create" });
    const id = talk.engine.lastRequest.responseId;
    talk.engine.deliver({ type: "tool.started", responseId: id, callId: "c1", name: "weather" });
    talk.engine.deliver({ type: "tool.delta", responseId: id, callId: "c1", delta: '{"ci' });
    const types = talk.send({ type: "response.cancel" }).map((event) => event.type);
    expect(types).toEqual([
      "response.function_call_arguments.done",
      "response.output_item.done",
      "conversation.item.done",
      "response.done",
    ]);
    expect(talk.engine.cancelled).toEqual([id]);
    const late = talk.during(() => {
      talk.engine.deliver({ type: "tool.delta", responseId: id, callId: "c1", delta: 'ty":"Rome"}' });
      talk.engine.call(id, "c2", "weather", "{}");
      talk.engine.end(id);
    });
    expect(late).toEqual([]);
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toEqual([]);
  });

  it("speech over the last second of an answer that is done already cuts just that, and is answered (pipecat #2788)", () => {
    for (const audioPath of ["events", "track"] as const) {
      const talk = new Conversation({ audioPath });
      talk.engine.turn("s1", "Tell me a story.");
      const id = talk.engine.lastRequest.responseId;
      talk.engine.say(id, "Once upon a time there was a king.", 3000);
      talk.engine.end(id);
      talk.clock.advance(2000);
      talk.engine.startSpeech("s2");
      talk.engine.stopSpeech("s2");
      talk.engine.understand("s2", "Which king?");
      const item = talk.last("conversation.item.truncated");
      expect(item).toMatchObject({ audio_end_ms: 2000 });
      expect(talk.engine.requests).toHaveLength(2);
      expect(talk.engine.lastRequest.items[1]).toMatchObject({
        interrupted: true,
        content: [{ text: "Once upon a time there was" }],
      });
    }
  });

  it("an answer that says nothing is done, and the next one is whole (livekit #3418)", () => {
    const talk = new Conversation();
    talk.engine.turn("s1", "Hello?");
    talk.engine.end(talk.engine.lastRequest.responseId);
    expect(talk.last("response.done").response).toMatchObject({ status: "completed", output: [] });
    talk.engine.turn("s2", "Hello?");
    talk.engine.say(talk.engine.lastRequest.responseId, "Yes?", 300);
    expect(talk.types).toContain("response.output_audio.delta");
  });

  it("a result that comes while the user speaks waits in the history for whoever answers (livekit #4413)", () => {
    const talk = new Conversation();
    talk.send(update({ tools: [tool] }));
    talk.engine.turn("s1", "How is the weather?");
    const id = talk.engine.lastRequest.responseId;
    talk.engine.call(id, "c1", "weather", "{}");
    talk.engine.end(id);
    talk.engine.startSpeech("s2");
    const item = { type: "function_call_output", call_id: "c1", output: "sunny" };
    expect(talk.send({ type: "conversation.item.create", item }).map((event) => event.type)).toContain(
      "conversation.item.done",
    );
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "In Rome, I mean.");
    expect(talk.engine.requests).toHaveLength(2);
    expect(talk.engine.lastRequest.items.map((other) => other.type)).toEqual([
      "message",
      "tool_call",
      "tool_result",
      "message",
    ]);
  });
});
