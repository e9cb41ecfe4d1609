import { describe, expect, it } from "vitest";
import { Conversation } from "../support/conversation.ts";

const tool = { type: "function", name: "weather", description: "The weather.", parameters: { type: "object" } };
const update = (session: object): object => ({ type: "session.update", session: { type: "realtime", ...session } });
const says = (text: string, rest: object = {}): object => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content: [{ type: "input_text", text }], ...rest },
});

describe("responses", () => {
  it("two at once: the second is refused with the client's event id, and the first goes on (livekit #2064)", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create" });
    const [refusal] = talk.send({ type: "response.create", event_id: "second" });
    expect(refusal).toMatchObject({
      type: "error",
      error: {
        type: "invalid_request_error",
        code: "conversation_already_has_active_response",
        event_id: "second",
        message: expect.stringContaining(talk.engine.lastRequest.responseId),
      },
    });
    talk.engine.end(talk.engine.lastRequest.responseId);
    expect(talk.last("response.done").response.status).toBe("completed");
    expect(talk.send({ type: "response.create" })[0]?.type).toBe("response.created");
  });

  it("cancelled before the first token are done once, with nothing in them", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create" });
    expect(talk.send({ type: "response.cancel" }).map((event) => event.type)).toEqual(["response.done"]);
    expect(talk.last("response.done").response).toMatchObject({ status: "cancelled", output: [] });
    expect(talk.send({ type: "response.cancel", event_id: "x" })).toMatchObject([
      { error: { code: "response_cancel_not_active", event_id: "x" } },
    ]);
    expect(talk.send({ type: "response.cancel", response_id: "resp_9" })).toMatchObject([
      { error: { code: "response_not_found", param: "response_id" } },
    ]);
  });

  it("in text have no audio events", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create", response: { output_modalities: ["text"] } });
    const { responseId, modalities } = talk.engine.lastRequest;
    expect(modalities).toEqual(["text"]);
    const types = talk.during(() => {
      talk.engine.write(responseId, "Hel");
      talk.engine.write(responseId, "lo.");
      talk.engine.end(responseId);
    });
    expect(types).toEqual([
      "response.output_item.added",
      "conversation.item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "conversation.item.done",
      "response.done",
    ]);
    expect(talk.last("response.done").response.output).toMatchObject([
      { content: [{ type: "output_text", text: "Hello." }] },
    ]);
  });

  it("take their own instructions, voice, tools, limit and metadata, for this once", () => {
    const talk = new Conversation();
    talk.send(update({ instructions: "Be kind.", tools: [tool] }));
    const response = {
      instructions: "Be short.",
      audio: { output: { voice: "amy", speed: 1.25, format: { type: "audio/pcmu" } } },
      tools: [],
      tool_choice: "none",
      parallel_tool_calls: false,
      max_output_tokens: 50,
      metadata: { topic: "greeting" },
    };
    talk.send({ type: "response.create", response });
    expect(talk.engine.lastRequest).toMatchObject({
      instructions: "Be short.",
      voice: "amy",
      speed: 1.25,
      tools: [],
      toolChoice: "none",
      parallelToolCalls: false,
      outputTokensMax: 50,
    });
    const { responseId } = talk.engine.lastRequest;
    talk.engine.say(responseId, "Hi.", 100);
    talk.engine.end(responseId, "incomplete");
    const bytes = Buffer.concat(
      talk.of("response.output_audio.delta").map((event) => Buffer.from(event.delta, "base64")),
    );
    expect(bytes).toHaveLength(800);
    expect(talk.last("response.done").response).toMatchObject({
      status: "incomplete",
      status_details: { type: "incomplete", reason: "max_output_tokens" },
      metadata: { topic: "greeting" },
      max_output_tokens: 50,
      audio: { output: { voice: "amy", format: { type: "audio/pcmu" } } },
      output: [{ status: "incomplete" }],
    });
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest).toMatchObject({
      instructions: "Be kind.",
      voice: "joe",
      tools: [{ name: "weather" }],
    });
  });

  it("out of band run beside one and leave the conversation alone", () => {
    const talk = new Conversation();
    talk.send(says("Hello.", { id: "hello" }));
    talk.send({ type: "response.create" });
    const main = talk.engine.lastRequest.responseId;
    const classify = {
      conversation: "none",
      output_modalities: ["text"],
      metadata: { kind: "topic" },
      input: [{ type: "item_reference", id: "hello" }, (says("Which topic?") as { item: object }).item],
    };
    talk.send({ type: "response.create", response: classify });
    const beside = talk.engine.lastRequest;
    expect(beside.items).toMatchObject([{ id: "hello" }, { content: [{ text: "Which topic?" }] }]);
    const types = talk.during(() => {
      talk.engine.write(beside.responseId, "greeting");
      talk.engine.end(beside.responseId);
    });
    expect(types.filter((type) => type.startsWith("conversation."))).toEqual([]);
    const done = talk.last("response.done").response;
    expect(done).toMatchObject({ id: beside.responseId, metadata: { kind: "topic" }, status: "completed" });
    expect(done).not.toHaveProperty("conversation_id");
    talk.engine.end(main);
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toHaveLength(1);
  });

  it("with an unknown reference are refused and not created", () => {
    const talk = new Conversation();
    const input = [{ type: "item_reference", id: "nowhere" }];
    expect(talk.send({ type: "response.create", response: { input } })).toMatchObject([
      { error: { code: "item_not_found", param: "response.input[0].id" } },
    ]);
    expect(talk.engine.requests).toEqual([]);
  });

  // It was created, and failed: a refusal says which field is to blame.
  it("with an image for a model that sees none are refused and not created", () => {
    const talk = new Conversation({ capabilities: { acceptsImages: false } });
    const content = [{ type: "input_image", image_url: "https://example.com/cat.png" }];
    const input = [{ type: "message", role: "user", content }];
    expect(talk.send({ type: "response.create", response: { input } })).toMatchObject([
      { error: { code: "capability_missing", param: "response.input[0].content" } },
    ]);
    expect(talk.engine.requests).toEqual([]);
  });

  it("with an empty input see nothing of the conversation", () => {
    const talk = new Conversation();
    talk.send(says("Hello."));
    talk.send({ type: "response.create", response: { input: [] } });
    expect(talk.engine.lastRequest.items).toEqual([]);
  });
});

describe("tools", () => {
  function calling(): { talk: Conversation; id: string } {
    const talk = new Conversation();
    talk.send(update({ tools: [tool], tool_choice: { type: "function", name: "weather" } }));
    talk.engine.turn("s1", "Weather in Paris and Rome?");
    expect(talk.engine.lastRequest.toolChoice).toEqual({ name: "weather" });
    return { talk, id: talk.engine.lastRequest.responseId };
  }

  it("several in one response, each with its arguments as they come, and results in any order", () => {
    const { talk, id } = calling();
    const types = talk.during(() => {
      talk.engine.call(id, "c1", "weather", '{"city":"Paris"}');
      talk.engine.call(id, "c2", "weather", '{"city":"Rome"}');
      talk.engine.end(id);
    });
    const one = [
      "response.output_item.added",
      "conversation.item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "conversation.item.done",
    ];
    expect(types).toEqual([...one, ...one, "response.done"]);
    expect(talk.last("response.done").response.output).toMatchObject([
      { type: "function_call", call_id: "c1", name: "weather", arguments: '{"city":"Paris"}', status: "completed" },
      { type: "function_call", call_id: "c2" },
    ]);
    for (const [call_id, output] of [
      ["c2", "hot"],
      ["c1", "mild"],
    ]) {
      const events = talk.send({
        type: "conversation.item.create",
        item: { type: "function_call_output", call_id, output },
      });
      expect(events.map((event) => event.type)).toContain("conversation.item.created");
    }
    talk.send({ type: "response.create", response: { tool_choice: "auto" } });
    expect(talk.engine.lastRequest.items.map((item) => item.type)).toEqual([
      "message",
      "tool_call",
      "tool_call",
      "tool_result",
      "tool_result",
    ]);
    const { responseId } = talk.engine.lastRequest;
    talk.engine.say(responseId, "Rome is hot.", 500);
    expect(talk.types).toContain("response.output_audio.delta");
  });

  it("arguments that come only whole are told as one delta", () => {
    const { talk, id } = calling();
    talk.engine.deliver({ type: "tool.completed", responseId: id, callId: "c1", name: "weather", argumentsJson: "{}" });
    expect(talk.last("response.function_call_arguments.delta").delta).toBe("{}");
  });

  it("what is spoken before a call stands before it, however late its voice is ready", () => {
    const { talk, id } = calling();
    talk.engine.call(id, "c1", "weather", "{}");
    talk.engine.say(id, "Let me look.", 500);
    talk.engine.end(id);
    const item = { type: "function_call_output", call_id: "c1", output: "sunny" };
    talk.send({ type: "conversation.item.create", item });
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items.map((other) => other.type)).toEqual([
      "message",
      "message",
      "tool_call",
      "tool_result",
    ]);
  });

  /**
   * Many clients send the result, and ask for the next response, within the handler of arguments.done. The response that
   * called may still be speaking; its successor was refused, and the user never heard the result.
   */
  it("a response that is asked for with a result, while the caller still speaks, follows it", () => {
    const { talk, id } = calling();
    talk.engine.say(id, "Let me ", 500);
    talk.engine.call(id, "c1", "weather", "{}");
    expect(talk.send({ type: "response.create" })).toMatchObject([{ type: "error" }]);
    const item = { type: "function_call_output", call_id: "c1", output: "sunny" };
    talk.send({ type: "conversation.item.create", item });
    expect(talk.send({ type: "response.create", response: { metadata: { for: "c1" } } })).toEqual([]);
    expect(talk.send({ type: "response.create", event_id: "twice" })).toMatchObject([
      { error: { code: "conversation_already_has_active_response", event_id: "twice" } },
    ]);
    expect(talk.engine.requests).toHaveLength(1);
    talk.engine.say(id, "look.", 500);
    const types = talk.during(() => talk.engine.end(id));
    expect(types.slice(types.indexOf("response.done"))).toEqual([
      "response.done",
      "response.created",
      "rate_limits.updated",
    ]);
    expect(talk.last("response.created").response.metadata).toEqual({ for: "c1" });
    expect(talk.engine.lastRequest.items.at(-1)).toMatchObject({ type: "tool_result", output: "sunny" });
  });

  it("that response is not lost when the user, or a noise, breaks the caller off", () => {
    for (const heard of ["And in Rome?", ""]) {
      const { talk, id } = calling();
      talk.engine.say(id, "Let me look.", 5000);
      talk.engine.call(id, "c1", "weather", "{}");
      const item = { type: "function_call_output", call_id: "c1", output: "sunny" };
      talk.send({ type: "conversation.item.create", item });
      talk.send({ type: "response.create", response: { metadata: { for: "c1" } } });
      talk.engine.turn("s2", heard);
      expect(talk.engine.requests).toHaveLength(2);
      expect(talk.last("response.created").response.metadata).toEqual({ for: "c1" });
      expect(talk.engine.lastRequest.items).toContainEqual(expect.objectContaining({ output: "sunny" }));
    }
  });

  it("that response is dropped by the client's own cancel", () => {
    const { talk, id } = calling();
    talk.engine.call(id, "c1", "weather", "{}");
    talk.send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: "c1", output: "" } });
    talk.send({ type: "response.create" });
    talk.send({ type: "response.cancel" });
    expect(talk.engine.requests).toHaveLength(1);
  });

  it("a call that is broken off is closed, incomplete, and never shown to the model (livekit #4413)", () => {
    const { talk, id } = calling();
    talk.engine.deliver({ type: "tool.started", responseId: id, callId: "c1", name: "weather" });
    talk.engine.deliver({ type: "tool.delta", responseId: id, callId: "c1", delta: '{"ci' });
    const types = talk.during(() => talk.engine.startSpeech("s2"));
    expect(types).toEqual([
      "input_audio_buffer.speech_started",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "conversation.item.done",
      "response.done",
    ]);
    expect(talk.last("response.output_item.done").item).toMatchObject({ status: "incomplete", arguments: '{"ci' });
    talk.engine.stopSpeech("s2");
    talk.engine.understand("s2", "Never mind.");
    expect(talk.engine.lastRequest.items.map((item) => item.type)).toEqual(["message", "message"]);
  });

  it("are checked: a choice that names none, two of one name, a result without a call", () => {
    const talk = new Conversation();
    expect(talk.send(update({ tool_choice: { type: "function", name: "nope" } }))).toMatchObject([
      { error: { code: "invalid_value", param: "session.tool_choice" } },
    ]);
    expect(talk.send(update({ tools: [tool, tool] }))).toMatchObject([{ error: { param: "session.tools" } }]);
    const item = { type: "function_call_output", call_id: "c7", output: "" };
    expect(talk.send({ type: "conversation.item.create", item })).toMatchObject([
      { error: { code: "item_not_found", param: "item.call_id" } },
    ]);
    expect(talk.settings.tools).toEqual([]);
  });

  it("are refused by an engine that calls none", () => {
    const talk = new Conversation({ capabilities: { tools: false } });
    expect(talk.send(update({ tools: [tool] }))).toMatchObject([{ error: { code: "capability_missing" } }]);
  });
});

describe("the output audio buffer", () => {
  it("is the server's on a track: started, stopped, and cleared by the client in mid-playback", () => {
    const talk = new Conversation({ audioPath: "track" });
    expect(talk.send({ type: "output_audio_buffer.clear" })).toMatchObject([{ error: { code: "response_not_found" } }]);
    talk.send({ type: "response.create" });
    const first = talk.engine.lastRequest.responseId;
    talk.engine.say(first, "One.", 1000);
    expect(talk.last("output_audio_buffer.started").response_id).toBe(first);
    expect(talk.types).not.toContain("response.output_audio.delta");
    talk.clock.advance(400);
    const types = talk.send({ type: "output_audio_buffer.clear" }).map((event) => event.type);
    expect(types).toContain("conversation.item.truncated");
    expect(types.at(-1)).toBe("output_audio_buffer.cleared");
    talk.send({ type: "response.create" });
    const second = talk.engine.lastRequest.responseId;
    talk.engine.say(second, "Two.", 1000);
    talk.engine.end(second);
    talk.clock.advance(1100);
    expect(talk.last("output_audio_buffer.stopped").response_id).toBe(second);
    expect(talk.types.indexOf("output_audio_buffer.stopped")).toBeGreaterThan(talk.types.lastIndexOf("response.done"));
  });

  it("does not stop in the middle of a slow answer, when the line runs dry", () => {
    const talk = new Conversation({ audioPath: "track" });
    talk.send({ type: "response.create" });
    const { responseId } = talk.engine.lastRequest;
    talk.engine.say(responseId, "One.", 200);
    talk.clock.advance(1000);
    expect(talk.types).not.toContain("output_audio_buffer.stopped");
    talk.engine.say(responseId, " Two.", 200);
    talk.engine.end(responseId);
    talk.clock.advance(1000);
    expect(talk.of("output_audio_buffer.started")).toHaveLength(1);
    expect(talk.of("output_audio_buffer.stopped")).toHaveLength(1);
  });

  it("is the client's on a WebSocket", () => {
    const talk = new Conversation();
    expect(talk.send({ type: "output_audio_buffer.clear" })).toMatchObject([
      { error: { code: "invalid_event_for_transport" } },
    ]);
  });
});
