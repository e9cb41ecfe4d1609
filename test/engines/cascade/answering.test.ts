import { describe, expect, it } from "vitest";
import { INTERRUPTED_NOTE, VOICE_LEAD } from "../../../src/engines/cascade/history.ts";
import type { LlmPart, LlmRequest } from "../../../src/engines/cascade/llm/llm.ts";
import type { ConversationItem, ResponseRequest, ToolDefinition } from "../../../src/engines/engine.ts";
import { EngineError, UpstreamError } from "../../../src/errors.ts";
import { audio, END, Gate, openScripted, parts, REQUEST, type ScriptedSession, says, settle } from "./scripted.ts";

const spoken = (session: ScriptedSession): string =>
  session
    .of("response.speech")
    .map(({ text }) => text)
    .join("");

const WEATHER: ToolDefinition = {
  name: "get_weather",
  description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const call = (argumentsJson: string, name = "get_weather", callId = "call_1"): LlmPart[] => [
  { type: "tool.started", callId, name },
  { type: "tool.delta", callId, delta: argumentsJson },
  { type: "tool.completed", callId, name, argumentsJson },
];

describe("a spoken answer", () => {
  it("comes clause by clause with the text as written, then ends with its usage", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () => says("Well, ", "that is **easy**. ", "It costs $5", ".");
    session.respond();
    await settle();
    expect(spoken(session)).toBe("Well, that is **easy**. It costs $5.");
    const said = session.stages.tts.requests.map(({ text }) => text).join(" ");
    expect(said).toMatch(/that is easy\. +It costs five dollars\./);
    expect(session.stages.tts.requests.map(({ urgency }) => urgency)[0]).toBe("first");
    expect(session.types().at(-1)).toBe("response.ended");
    expect(session.of("response.ended")).toMatchObject([
      {
        status: "completed",
        reason: null,
        error: null,
        usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 5 },
      },
    ]);
    const marks = session.of("response.mark").map(({ stage }) => stage);
    expect(marks.sort()).toEqual(["llm.done", "llm.first_token", "tts.first_audio", "tts.first_clause"]);
  });

  it("begins to speak while the model still writes", async () => {
    const session = await openScripted();
    const more = new Gate<void>();
    session.stages.llm.answer = async function* () {
      yield { type: "text", delta: "The first sentence is here. And " };
      await more.promise;
      yield { type: "text", delta: "here is the second." };
      yield END;
    };
    session.respond();
    await settle();
    expect(spoken(session)).toBe("The first sentence is here. ");
    more.resolve();
    await settle();
    expect(spoken(session)).toBe("The first sentence is here. And here is the second.");
  });

  it("carries what has no sound with the next clause, or alone at the end", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () => says("Great job. 🎉\n", "Keep going now. 🎉");
    session.respond();
    await settle();
    expect(spoken(session)).toBe("Great job. 🎉\nKeep going now. 🎉");
    expect(session.stages.tts.requests.map(({ text }) => text).join(" ")).not.toContain("🎉");
  });

  it("is text where audio was not asked for, without a voice lead", async () => {
    const session = await openScripted();
    session.respond({ modalities: ["text"] });
    await settle();
    expect(session.of("response.text").map(({ delta }) => delta)).toEqual(["Hello. ", "How are you?"]);
    expect(session.stages.tts.requests).toEqual([]);
    expect(session.stages.llm.requests[0]?.messages[0]).toEqual({ role: "system", text: "Be kind." });
  });

  it("never contains thoughts", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () => says("<thi", "nk>The user wants", " an answer.</think>", "It is four.");
    session.respond();
    await settle();
    expect(spoken(session).trim()).toBe("It is four.");
  });

  it("that reaches the limit is incomplete", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () =>
      parts({ type: "text", delta: "I was about to" }, { ...END, reason: "max_output_tokens" } as LlmPart);
    session.respond({ outputTokensMax: 4 });
    await settle();
    expect(session.stages.llm.requests[0]?.outputTokensMax).toBe(4);
    expect(session.of("response.ended")).toMatchObject([{ status: "incomplete", reason: "max_output_tokens" }]);
  });

  it("may run beside another of the same session", async () => {
    const session = await openScripted();
    session.respond({ responseId: "a" });
    session.respond({ responseId: "b", modalities: ["text"] });
    await settle();
    expect(
      session
        .of("response.ended")
        .map(({ responseId }) => responseId)
        .sort(),
    ).toEqual(["a", "b"]);
  });
});

describe("what the model is shown", () => {
  const shown = async (request: Parameters<ScriptedSession["respond"]>[0]): Promise<LlmRequest["messages"]> => {
    const session = await openScripted();
    session.respond(request);
    await settle();
    return session.stages.llm.requests[0]?.messages ?? [];
  };

  it("begins with the lead that all share, then the instructions", async () => {
    const [system] = await shown({});
    expect(system).toEqual({ role: "system", text: `${VOICE_LEAD}\n\nBe kind.` });
  });

  // An answer that was cut off had a mark at its end, "[interrupted]"; the small model imitated it, so that after an
  // interruption its answers were one word and the mark, which nobody heard.
  it("tells with the user's next words that an answer was cut off, and leaves out one that was not heard", async () => {
    const messages = await shown({
      items: [
        ...REQUEST.items,
        {
          type: "message",
          id: "2",
          role: "assistant",
          content: [{ type: "audio", transcript: "Once upon" }],
          interrupted: true,
        },
        {
          type: "message",
          id: "3",
          role: "user",
          content: [{ type: "audio", transcript: "Stop." }],
          interrupted: false,
        },
        {
          type: "message",
          id: "4",
          role: "assistant",
          content: [{ type: "audio", transcript: "" }],
          interrupted: true,
        },
        { type: "message", id: "5", role: "user", content: [{ type: "audio", transcript: null }], interrupted: false },
      ],
    });
    expect(messages.slice(1)).toEqual([
      { role: "user", text: "Hi.", images: [] },
      { role: "assistant", text: "Once upon", toolCalls: [] },
      { role: "user", text: `${INTERRUPTED_NOTE} Stop.`, images: [] },
    ]);
    // The beginning stays as it was, so that the model need not read everything again.
    expect(messages[0]).toEqual({ role: "system", text: `${VOICE_LEAD}\n\nBe kind.` });
  });

  it("tells it once, also where the next answer comes without a word of the user's, or no words follow", async () => {
    const answer = (id: string, transcript: string, interrupted: boolean): ConversationItem => ({
      type: "message",
      id,
      role: "assistant",
      content: [{ type: "audio", transcript }],
      interrupted,
    });
    const call: ConversationItem = {
      type: "tool_call",
      id: "4",
      callId: "c",
      name: "look",
      argumentsJson: "{}",
    };
    const items = [answer("1", "Once upon", true), answer("2", "There was", false), answer("3", "And so", true), call];
    const messages = await shown({ items });
    expect(
      messages.slice(1).map((message) => ("text" in message ? `${message.role}: ${message.text}` : "tool")),
    ).toEqual([
      "assistant: Once upon",
      `user: ${INTERRUPTED_NOTE}`,
      "assistant: There was",
      "assistant: And so",
      "tool",
      `user: ${INTERRUPTED_NOTE}`,
    ]);
  });

  it("puts calls with the words before them, and results with their names", async () => {
    const messages = await shown({
      items: [
        {
          type: "message",
          id: "1",
          role: "assistant",
          content: [{ type: "text", text: "Let me see." }],
          interrupted: false,
        },
        { type: "tool_call", id: "2", callId: "c1", name: "a", argumentsJson: "{}" },
        { type: "tool_call", id: "3", callId: "c2", name: "b", argumentsJson: '{"x":1}' },
        { type: "tool_result", id: "4", callId: "c2", output: "two" },
        { type: "tool_result", id: "5", callId: "c1", output: "one" },
      ],
    });
    expect(messages.slice(1)).toEqual([
      {
        role: "assistant",
        text: "Let me see.",
        toolCalls: [
          { callId: "c1", name: "a", argumentsJson: "{}" },
          { callId: "c2", name: "b", argumentsJson: '{"x":1}' },
        ],
      },
      { role: "tool", callId: "c1", name: "a", output: "one" },
      { role: "tool", callId: "c2", name: "b", output: "two" },
    ]);
  });

  /**
   * Services refuse a call that no result follows. Whoever spoke while a function ran got no answer, and a result that came
   * after the user's words made every later response fail.
   */
  it("has a result behind each call, also while the function runs and when it comes late", async () => {
    const user = {
      type: "message",
      id: "2",
      role: "user",
      content: [{ type: "text", text: "Well?" }],
      interrupted: false,
    };
    const call = { type: "tool_call", id: "1", callId: "c1", name: "a", argumentsJson: "{}" };
    const late = { type: "tool_result", id: "3", callId: "c1", output: "one" };
    const orphan = { type: "tool_result", id: "4", callId: "c9", output: "nine" };
    const shape = async (...items: object[]): Promise<unknown[]> => {
      const messages = await shown({ items: items as ResponseRequest["items"] });
      return messages.slice(1).map((message) => (message.role === "tool" ? message.output : message.role));
    };
    expect(await shape(call, user)).toEqual(["assistant", "There is no result yet.", "user"]);
    expect(await shape(call, user, late, orphan)).toEqual(["assistant", "one", "user"]);
  });
});

describe("cancel", () => {
  it("before the first token: nothing comes out, and the model stops", async () => {
    const session = await openScripted();
    session.stages.llm.answer = async function* ({ signal }) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield END;
    };
    session.respond();
    await settle();
    session.send({ type: "cancel", responseId: "resp_1" });
    expect(session.stages.llm.requests[0]?.signal.aborted).toBe(true);
    await settle();
    expect(session.events).toEqual([]);
  });

  it("while a clause is at the voice: what comes late is dropped", async () => {
    const session = await openScripted();
    const late = new Gate<void>();
    session.stages.tts.answer = async function* ({ text }) {
      await late.promise;
      yield { pcm: new Float32Array(text.length), hz: 22_050 };
    };
    session.respond();
    await settle();
    expect(session.stages.tts.requests).toHaveLength(1);
    session.send({ type: "cancel", responseId: "resp_1" });
    late.resolve();
    await settle();
    expect(session.types()).toEqual([]);
    expect(session.stages.tts.requests).toHaveLength(1);
    expect(session.stages.tts.requests[0]?.signal.aborted).toBe(true);
  });

  it("of one response leaves the others, and the ear, alone", async () => {
    const session = await openScripted();
    const gate = new Gate<void>();
    session.stages.llm.answer = async function* () {
      await gate.promise;
      yield* says("Here I am.");
    };
    session.respond({ responseId: "a" });
    session.respond({ responseId: "b" });
    session.send({ type: "cancel", responseId: "a" });
    session.send({ type: "cancel", responseId: "unknown" });
    await session.hear(audio(640, 0.9), audio(640, 0));
    gate.resolve();
    await settle();
    expect(session.of("response.ended").map(({ responseId }) => responseId)).toEqual(["b"]);
    expect(session.of("transcript.completed")).toHaveLength(1);
  });

  it("frees the id for the next turn", async () => {
    const session = await openScripted();
    session.respond();
    expect(() => session.respond()).toThrow("runs already");
    session.send({ type: "cancel", responseId: "resp_1" });
    await settle();
    session.respond();
    await settle();
    expect(session.of("response.ended")).toHaveLength(1);
  });
});

describe("a failure", () => {
  it("of the model ends the response as failed, after what was said", async () => {
    const session = await openScripted();
    session.stages.llm.answer = async function* () {
      yield { type: "text", delta: "So far so good. And " };
      await settle();
      throw new EngineError("llm", "ended", { code: "worker_died" });
    };
    session.respond();
    for (let i = 0; i < 4; i++) await settle();
    expect(spoken(session)).toBe("So far so good. ");
    expect(session.of("response.ended")).toMatchObject([{ status: "failed", error: { code: "worker_died" } }]);
    session.stages.llm.answer = () => says("I am back.");
    session.respond({ responseId: "resp_2" });
    await settle();
    expect(session.of("response.ended").at(-1)).toMatchObject({ responseId: "resp_2", status: "completed" });
  });

  it("of the voice ends the response, and stops the model", async () => {
    const session = await openScripted();
    session.stages.tts.answer = async function* () {
      throw new EngineError("tts", "no breath");
      // biome-ignore lint/correctness/noUnreachable: a generator must be able to yield
      yield { pcm: new Float32Array(0), hz: 1 };
    };
    session.stages.llm.answer = async function* ({ signal }) {
      yield { type: "text", delta: "This is a sentence. And " };
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield END;
    };
    session.respond();
    await settle();
    expect(session.stages.llm.requests[0]?.signal.aborted).toBe(true);
    expect(session.of("response.ended")).toMatchObject([{ status: "failed", error: { code: "tts_failed" } }]);
  });

  it("of a service keeps its code", async () => {
    const session = await openScripted();
    session.stages.llm.answer = async function* () {
      throw new UpstreamError("upstream_unreachable", "localhost:1 cannot be reached; is it running?");
      // biome-ignore lint/correctness/noUnreachable: a generator must be able to yield
      yield END;
    };
    session.respond();
    await settle();
    expect(session.of("response.ended")).toMatchObject([{ status: "failed", error: { code: "upstream_unreachable" } }]);
  });

  it("of a capability is refused at once", async () => {
    const session = await openScripted();
    const image = { type: "image", url: "data:image/png;base64,AA==", detail: "auto" } as const;
    const items = [{ type: "message", id: "1", role: "user", content: [image], interrupted: false }] as const;
    expect(() => session.respond({ items })).toThrow(expect.objectContaining({ code: "capability_missing" }));
    expect(() => session.respond({ voice: "carl" })).toThrow("there are ann, bob");
  });
});

describe("tools", () => {
  it("come out whole, after the words before them, and are never spoken", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () => parts({ type: "text", delta: "Let me look." }, ...call('{"city":"Paris"}'), END);
    session.respond({ tools: [WEATHER] });
    await settle();
    expect(spoken(session)).toBe("Let me look.");
    expect(session.of("tool.completed")).toMatchObject([
      { callId: "call_1", name: "get_weather", argumentsJson: '{"city":"Paris"}' },
    ]);
    expect(
      session
        .of("tool.delta")
        .map(({ delta }) => delta)
        .join(""),
    ).toBe('{"city":"Paris"}');
    expect(session.types().at(-1)).toBe("response.ended");
  });

  /**
   * Clients listed the call before the words that led to it, since the voice takes longer than the model. And a line break
   * before a call, as models write it, made a message that said nothing.
   */
  it("stand behind the words that lead to them, also where the voice is late", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () =>
      parts({ type: "text", delta: "\n" }, { type: "text", delta: "Let me look." }, ...call('{"city":"Paris"}'), END);
    session.respond({ tools: [WEATHER] });
    await settle();
    const types = session.types();
    expect(types.indexOf("response.speech")).toBeLessThan(types.indexOf("tool.started"));
    session.stages.llm.answer = () => parts({ type: "text", delta: "\n" }, ...call('{"city":"Paris"}'), END);
    session.respond({ tools: [WEATHER], responseId: "second" });
    await settle();
    expect(session.of("response.speech").filter(({ responseId }) => responseId === "second")).toEqual([]);
  });

  // A model that writes its calls as text had its markup read out.
  it("written as text are calls, not speech", async () => {
    const session = await openScripted();
    session.stages.llm.tools = "prompted";
    session.stages.llm.answer = () => says("One moment. <co", "de>\nget_weather(city='Paris", "')\n</code>");
    session.respond({ tools: [WEATHER] });
    await settle();
    expect(spoken(session).trim()).toBe("One moment.");
    expect(session.of("tool.completed")).toMatchObject([{ name: "get_weather", argumentsJson: '{"city":"Paris"}' }]);
    const [request] = session.stages.llm.requests;
    expect(request?.tools).toEqual([]);
    expect(request?.messages[0]).toMatchObject({ text: expect.stringContaining('def get_weather(city: string): """') });
  });

  it("that are malformed go back to the model, and the user hears nothing of it", async () => {
    const session = await openScripted();
    const answers = [
      parts(...call('{"town":1}'), END),
      parts(...call('{"city":"Paris"}', "get_weather", "call_2"), END),
    ];
    session.stages.llm.answer = () => answers.shift() ?? says("no more");
    session.respond({ tools: [WEATHER] });
    await settle();
    expect(session.of("tool.completed")).toMatchObject([{ callId: "call_2" }]);
    expect(session.of("tool.started")).toHaveLength(1);
    expect(session.stages.llm.requests[1]?.messages.at(-1)).toMatchObject({
      role: "user",
      text: expect.stringContaining("lacks the argument city"),
    });
    expect(session.of("response.ended")).toMatchObject([{ status: "completed", usage: { outputTokens: 10 } }]);
  });

  it("that stay malformed give way to words", async () => {
    const session = await openScripted();
    session.stages.llm.answer = ({ tools }) =>
      tools.length > 0 ? parts(...call("{"), END) : says("I cannot look it up.");
    session.respond({ tools: [WEATHER] });
    await settle();
    expect(session.stages.llm.requests.map(({ toolChoice }) => toolChoice)).toEqual(["auto", "auto", "none"]);
    expect(spoken(session)).toBe("I cannot look it up.");
    expect(session.of("tool.started")).toEqual([]);
  });

  it.each([
    ["none", 0, []],
    ["auto", 1, ["get_weather"]],
    ["required", 1, ["get_weather"]],
  ] as const)("tool_choice %s", async (toolChoice, offered, called) => {
    const session = await openScripted();
    session.stages.llm.answer = ({ tools }) =>
      tools.length > 0 ? parts(...call('{"city":"Oslo"}'), END) : says("No.");
    session.respond({ tools: [WEATHER], toolChoice });
    await settle();
    expect(session.stages.llm.requests[0]?.tools).toHaveLength(offered);
    expect(session.of("tool.completed").map(({ name }) => name)).toEqual(called);
  });

  it("tool_choice by name takes no other function", async () => {
    const session = await openScripted();
    const other: ToolDefinition = { ...WEATHER, name: "get_news" };
    const answers = [parts(...call('{"city":"Oslo"}', "get_news"), END), parts(...call('{"city":"Oslo"}'), END)];
    session.stages.llm.answer = () => answers.shift() ?? says("");
    session.respond({ tools: [WEATHER, other], toolChoice: { name: "get_weather" } });
    await settle();
    expect(session.of("tool.completed").map(({ name }) => name)).toEqual(["get_weather"]);
  });

  it("come one at a time where parallel calls are off", async () => {
    const session = await openScripted();
    session.stages.llm.answer = () =>
      parts(...call('{"city":"Oslo"}'), ...call('{"city":"Rome"}', "get_weather", "call_2"), END);
    session.respond({ tools: [WEATHER], parallelToolCalls: false });
    await settle();
    expect(session.of("tool.completed").map(({ callId }) => callId)).toEqual(["call_1"]);
    session.respond({ responseId: "resp_2", tools: [WEATHER] });
    await settle();
    expect(session.of("tool.completed").map(({ callId }) => callId)).toEqual(["call_1", "call_1", "call_2"]);
  });
});
