import { describe, expect, it } from "vitest";
import { resample } from "../../src/audio/resample.ts";
import { Conversation } from "../support/conversation.ts";

const update = (session: object): object => ({ type: "session.update", session: { type: "realtime", ...session } });
const formats = {
  pcm24: { type: "audio/pcm", rate: 24000 },
  pcm16: { type: "audio/pcm", rate: 16000 },
  pcmu: { type: "audio/pcmu" },
  pcma: { type: "audio/pcma" },
};

describe("the effective configuration", () => {
  it("is whole from the start, and official clients can compute from it", () => {
    const talk = new Conversation();
    expect(talk.last("session.created").session).toEqual({
      type: "realtime",
      object: "realtime.session",
      id: "sess_1",
      model: "scripted",
      instructions: "",
      output_modalities: ["audio"],
      audio: {
        input: {
          format: { type: "audio/pcm", rate: 24000 },
          transcription: { model: "scripted" },
          turn_detection: {
            type: "server_vad",
            threshold: 0.5,
            prefix_padding_ms: 300,
            silence_duration_ms: 500,
            create_response: true,
            interrupt_response: true,
            idle_timeout_ms: null,
          },
        },
        output: { format: { type: "audio/pcm", rate: 24000 }, voice: "joe", speed: 1 },
      },
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: true,
      max_output_tokens: "inf",
      truncation: "auto",
      tracing: null,
      include: [],
    });
  });

  it("merges an update deeply: what is not named stays", () => {
    const talk = new Conversation();
    talk.send(
      update({
        instructions: "Be kind.",
        audio: { input: { turn_detection: { type: "server_vad", threshold: 0.7 } } },
      }),
    );
    talk.send(update({ audio: { input: { turn_detection: { type: "server_vad", silence_duration_ms: 200 } } } }));
    expect(talk.last("session.updated").session).toMatchObject({
      instructions: "Be kind.",
      audio: { input: { turn_detection: { threshold: 0.7, silence_duration_ms: 200, prefix_padding_ms: 300 } } },
    });
    talk.send(update({ audio: { input: { turn_detection: { type: "semantic_vad" } } } }));
    expect(talk.last("session.updated").session.audio?.input?.turn_detection).toEqual({
      type: "semantic_vad",
      eagerness: "auto",
      create_response: true,
      interrupt_response: true,
    });
    expect(talk.engine.commands.at(-1)).toMatchObject({
      type: "settings.set",
      settings: { turnDetection: { type: "semantic_vad", eagerness: "auto" }, systemPrompt: "Be kind." },
    });
    talk.send(update({ audio: { input: { turn_detection: null } }, instructions: "", tools: [] }));
    expect(talk.last("session.updated").session).toMatchObject({
      instructions: "",
      audio: { input: { turn_detection: null } },
    });
  });

  it("takes what the Agents SDK sends on connecting", () => {
    const talk = new Conversation();
    const input = {
      format: formats.pcm24,
      noise_reduction: null,
      transcription: { model: "gpt-4o-mini-transcribe" },
      turn_detection: { type: "semantic_vad" },
    };
    const output = { format: formats.pcm24, speed: 1, voice: "ash" };
    const session = { model: "scripted", output_modalities: ["audio"], audio: { input, output }, tool_choice: "auto" };
    expect(talk.send(update(session)).map((event) => event.type)).toEqual(["session.updated"]);
    expect(talk.last("session.updated").session.audio).toMatchObject({
      input: { transcription: { model: "scripted" } },
      output: { voice: "joe" },
    });
    talk.send(update({ tracing: "auto" }));
    expect(talk.last("session.updated").session).toMatchObject({ tracing: null });
  });

  it("refuses what is not served, by name, and changes nothing", () => {
    const talk = new Conversation();
    const refused = (session: object): object => talk.send({ ...update(session), event_id: "e" })[0] as object;
    const error = (code: string, param: string, message: string): object => ({
      error: { code, param, event_id: "e", message: expect.stringContaining(message) },
    });
    expect(refused({ model: "gpt-9" })).toMatchObject(error("model_not_found", "session.model", "scripted"));
    expect(refused({ audio: { output: { voice: "zoe" } } })).toMatchObject(
      error("invalid_value", "session.audio.output.voice", "joe, amy"),
    );
    expect(refused({ instructions: "x", audio: { input: { noise_reduction: { type: "near_field" } } } })).toMatchObject(
      error("unsupported_parameter", "session.audio.input.noise_reduction", "noise"),
    );
    expect(refused({ voice: "amy" })).toMatchObject(error("unknown_parameter", "session.voice", "audio.output.voice"));
    expect(talk.settings.instructions).toBe("");
    expect(talk.types).not.toContain("session.updated");
  });

  it("locks the voice once it was heard, and a single response may still take another", () => {
    const talk = new Conversation();
    expect(talk.send(update({ audio: { output: { voice: "amy" } } }))[0]?.type).toBe("session.updated");
    talk.send({ type: "response.create" });
    talk.engine.say(talk.engine.lastRequest.responseId, "Hi.", 100);
    talk.engine.end(talk.engine.lastRequest.responseId);
    expect(talk.send(update({ audio: { output: { voice: "joe" } } }))).toMatchObject([
      { error: { code: "voice_locked" } },
    ]);
    expect(talk.send(update({ audio: { output: { voice: "amy", speed: 1.2 } } }))[0]?.type).toBe("session.updated");
    talk.send({ type: "response.create", response: { audio: { output: { voice: "joe" } } } });
    expect(talk.engine.lastRequest.voice).toBe("joe");
  });
});

describe("audio", () => {
  it.each(Object.entries(formats))("comes in as %s at the engine's rate, whatever the pieces", (_, format) => {
    const talk = new Conversation();
    talk.send(update({ audio: { input: { format } } }));
    for (let i = 0; i < 50; i++) talk.append(20);
    expect(talk.engine.pushedSamples).toBeGreaterThan(15_800);
    expect(talk.engine.pushedSamples).toBeLessThanOrEqual(16_000);
  });

  it.each(Object.entries(formats))("goes out as %s, as long as it was, whatever the pieces", (_, format) => {
    const talk = new Conversation();
    talk.send(update({ audio: { output: { format } } }));
    talk.send({ type: "response.create" });
    const { responseId } = talk.engine.lastRequest;
    for (const ms of [333, 1, 512, 154]) talk.engine.say(responseId, "a", ms);
    talk.engine.end(responseId);
    const bytes = talk
      .of("response.output_audio.delta")
      .reduce((sum, event) => sum + Buffer.from(event.delta, "base64").length, 0);
    const perMs = format.type === "audio/pcm" ? (format as { rate: number }).rate / 500 : 8;
    expect(bytes).toBe(1000 * perMs);
    expect(talk.types.lastIndexOf("response.output_audio.delta")).toBeLessThan(
      talk.types.indexOf("response.output_audio.done"),
    );
  });

  it("passes one resampler per voice: pieces join without a seam", () => {
    const talk = new Conversation();
    talk.send(update({ audio: { output: { format: formats.pcm16 } } }));
    talk.send({ type: "response.create" });
    const { responseId } = talk.engine.lastRequest;
    const tone = Float32Array.from({ length: 24_000 }, (_, i) => Math.sin((2 * Math.PI * 440 * i) / 24_000) / 2);
    for (let start = 0; start < tone.length; start += 1237) {
      const pcm = tone.subarray(start, start + 1237);
      talk.engine.deliver({ type: "response.speech", responseId, text: "a", pcm, hz: 24_000 });
    }
    talk.engine.end(responseId);
    const joined = Buffer.concat(
      talk.of("response.output_audio.delta").map((event) => Buffer.from(event.delta, "base64")),
    );
    const expected = resample(tone, 24_000, 16_000);
    expect(joined.length).toBe(expected.length * 2);
    for (const [i, sample] of expected.entries()) {
      // Half a step of 16 bits: the rounding of the wire, and no more.
      expect(Math.abs(joined.readInt16LE(2 * i) / 32_768 - sample)).toBeLessThanOrEqual(0.5 / 32_768 + 1e-7);
    }
  });
});

describe("items", () => {
  const create = (item: object, previous_item_id?: string): object => ({
    type: "conversation.item.create",
    item,
    ...(previous_item_id === undefined ? {} : { previous_item_id }),
  });
  const user = (id: string, text = id): object => ({
    type: "message",
    role: "user",
    id,
    content: [{ type: "input_text", text }],
  });

  it("take the place that they are given, each told by its predecessor", () => {
    const talk = new Conversation();
    talk.send(create(user("b")));
    talk.send(create(user("d")));
    talk.send(create(user("a"), "root"));
    talk.send(create(user("c"), "b"));
    expect(talk.of("conversation.item.added").map((event) => event.previous_item_id)).toEqual([null, "b", null, "b"]);
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items.map((item) => item.id)).toEqual(["a", "b", "c", "d"]);
    talk.send({ type: "conversation.item.delete", item_id: "c" });
    expect(talk.send(create(user("e"), "c"))).toMatchObject([
      { error: { code: "item_not_found", param: "previous_item_id" } },
    ]);
    expect(talk.send(create(user("b")))).toMatchObject([{ error: { code: "item_already_exists", param: "item.id" } }]);
  });

  it("of each kind come back as they were given", () => {
    const talk = new Conversation();
    const items = [
      { type: "message", role: "system", content: [{ type: "input_text", text: "Listen." }] },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "low" },
          { type: "input_audio", transcript: "Tell me." },
        ],
      },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "A cat." }] },
      { type: "message", role: "assistant", content: [{ type: "output_audio", transcript: "It purrs." }] },
      { type: "function_call", name: "f", arguments: "{}", call_id: "c1" },
      { type: "function_call_output", call_id: "c1", output: "done" },
    ];
    for (const item of items) {
      talk.send(create(item));
      expect(talk.last("conversation.item.done").item).toMatchObject({
        ...item,
        status: "completed",
        object: "realtime.item",
      });
    }
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toHaveLength(items.length);
    expect(talk.engine.lastRequest.items[1]).toMatchObject({
      content: [{ type: "text" }, { type: "image", detail: "low" }, { type: "audio", transcript: "Tell me." }],
    });
  });

  it("that the engine cannot use are refused: an image without eyes, sound without words", () => {
    const talk = new Conversation({ capabilities: { acceptsImages: false } });
    const image = { type: "input_image", image_url: "https://example.org/a.png" };
    expect(talk.send(create({ type: "message", role: "user", content: [image] }))).toMatchObject([
      { error: { code: "capability_missing" } },
    ]);
    const audio = { type: "output_audio", audio: "AAAA" };
    expect(talk.send(create({ type: "message", role: "assistant", content: [audio] }))).toMatchObject([
      { error: { code: "unsupported_parameter", param: "item.content[0].audio" } },
    ]);
  });

  it("with a recording are transcribed, are no turn, and a response waits for their words", () => {
    const talk = new Conversation();
    const audio = Buffer.alloc(48_000).toString("base64");
    const content = [
      { type: "input_text", text: "What is said here?" },
      { type: "input_audio", audio },
    ];
    talk.send(create({ type: "message", role: "user", content }));
    expect(talk.engine.recordings).toMatchObject([{ samples: 16_000 }]);
    talk.send({ type: "response.create" });
    expect(talk.engine.requests).toEqual([]);
    talk.engine.understand(talk.engine.recordings[0]?.segmentId ?? "", "Good morning.");
    expect(talk.last("conversation.item.input_audio_transcription.completed")).toMatchObject({
      content_index: 1,
      transcript: "Good morning.",
    });
    expect(talk.engine.requests).toHaveLength(1);
    expect(talk.engine.lastRequest.items).toMatchObject([
      { content: [{ text: "What is said here?" }, { type: "audio", transcript: "Good morning." }] },
    ]);
    talk.engine.end(talk.engine.lastRequest.responseId);
    expect(talk.engine.requests).toHaveLength(1);
    expect(
      talk.send(create({ type: "message", role: "user", content: [{ type: "input_audio", audio: "A" }] })),
    ).toMatchObject([{ error: { code: "invalid_audio" } }]);
  });

  it("are truncated exactly: beyond the end nothing changes, 0 leaves no word (openai-agents-python #2370, livekit #6157)", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create" });
    const { responseId } = talk.engine.lastRequest;
    talk.engine.say(responseId, "One two three four.", 1000);
    talk.engine.end(responseId);
    const item_id = talk.last("conversation.item.done").item.id as string;
    const truncate = (audio_end_ms: number, content_index = 0): object =>
      talk.send({ type: "conversation.item.truncate", item_id, content_index, audio_end_ms })[0] as object;
    const text = (): unknown => {
      talk.send({ type: "conversation.item.retrieve", item_id });
      return talk.last("conversation.item.retrieved").item;
    };
    expect(truncate(1001)).toMatchObject({ error: { code: "invalid_truncation", param: "audio_end_ms" } });
    expect(truncate(500, 1)).toMatchObject({ error: { code: "invalid_truncation", param: "content_index" } });
    expect(text()).toMatchObject({ status: "completed", content: [{ transcript: "One two three four." }] });
    expect(truncate(400)).toMatchObject({
      type: "conversation.item.truncated",
      item_id,
      content_index: 0,
      audio_end_ms: 400,
    });
    expect(text()).toMatchObject({ status: "incomplete", content: [{ transcript: "One two" }] });
    // A client that asks for a truncation at the very end has heard it all: that is no interruption.
    expect(truncate(1000)).toMatchObject({ type: "conversation.item.truncated", audio_end_ms: 1000 });
    expect(text()).toMatchObject({ status: "completed", content: [{ transcript: "One two three four." }] });
    expect(truncate(0)).toMatchObject({ type: "conversation.item.truncated" });
    expect(text()).toMatchObject({ content: [{ transcript: "" }] });
    talk.send({ type: "response.create" });
    expect(talk.engine.lastRequest.items).toEqual([]);
  });

  it("that are still being spoken can be truncated at 0 before anything was heard", () => {
    const talk = new Conversation();
    talk.send({ type: "response.create" });
    const { responseId } = talk.engine.lastRequest;
    talk.engine.deliver({ type: "response.speech", responseId, text: "One.", pcm: new Float32Array(0), hz: 24_000 });
    const item_id = talk.last("conversation.item.added").item.id as string;
    const truncate = { type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: 0 };
    expect(talk.send(truncate)).toMatchObject([{ type: "conversation.item.truncated" }]);
    talk.engine.say(responseId, " Two.", 500);
    talk.engine.end(responseId);
    expect(talk.last("conversation.item.done").item).toMatchObject({
      status: "incomplete",
      content: [{ transcript: "" }],
    });
  });
});
