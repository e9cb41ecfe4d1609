import { describe, expect, it } from "vitest";
import { audio, END, Gate, openScripted, REQUEST, type ScriptedSession, SETTINGS, says, settle } from "./scripted.ts";

const spoken = (session: ScriptedSession): string =>
  session
    .of("response.speech")
    .map(({ text }) => text)
    .join("");

describe("a head start", () => {
  const SPEECH = 0.9;
  const user = (id: string, transcript: string) =>
    ({ type: "message", id, role: "user", content: [{ type: "audio", transcript }], interrupted: false }) as const;
  const assistant = (transcript: string, interrupted = false) =>
    ({ type: "message", id: "a", role: "assistant", content: [{ type: "audio", transcript }], interrupted }) as const;

  /** A session that was answered once, and now hears a pause after its next words. */
  async function pausing(): Promise<ScriptedSession> {
    const session = await openScripted(undefined, ({ llm }) => {
      llm.local = true;
    });
    session.respond({ items: [user("1", "first")] });
    await settle();
    session.events.length = 0;
    await session.hear(audio(640, SPEECH), audio(200, 0));
    return session;
  }
  const asked = (session: ScriptedSession): number => session.stages.llm.requests.length;

  it("is taken at the pause, held back, and comes out when the session asks for just this", async () => {
    const session = await pausing();
    expect(asked(session)).toBe(2);
    expect(session.types()).toEqual(["speech.started"]);
    await session.hear(audio(400, 0));
    expect(session.of("response.speech")).toEqual([]);
    session.respond({
      responseId: "resp_2",
      items: [user("1", "first"), assistant("Hello. How are you?"), user("2", "hello there")],
    });
    await settle();
    expect(spoken(session)).toBe("Hello. How are you?");
    expect(asked(session)).toBe(2);
    expect(session.of("response.ended")).toMatchObject([{ responseId: "resp_2", status: "completed" }]);
    expect(session.of("response.mark").every(({ responseId, ms }) => responseId === "resp_2" && ms === 0)).toBe(true);
  });

  it("helps the first answer too, by the session's own instructions and the default voice", async () => {
    const session = await openScripted({ ...SETTINGS, systemPrompt: "Be kind." }, ({ llm }) => {
      llm.local = true;
    });
    await session.hear(audio(640, SPEECH), audio(640, 0));
    session.respond({ voice: "ann", items: [user("1", "hello there")] });
    await settle();
    expect(asked(session)).toBe(1);
    expect(session.of("response.ended")).toMatchObject([{ responseId: "resp_1", status: "completed" }]);
  });

  it("helps the first answer of a session with wishes of its own", async () => {
    const { responseId: _id, items: _items, ...plain } = REQUEST;
    const responses = { ...plain, instructions: "Be kind.", voice: "bob", outputTokensMax: 60 };
    const session = await openScripted({ ...SETTINGS, responses }, ({ llm }) => {
      llm.local = true;
    });
    await session.hear(audio(640, SPEECH), audio(640, 0));
    session.respond({ ...responses, items: [user("1", "hello there")] });
    await settle();
    expect(asked(session)).toBe(1);
    expect(session.of("response.ended")).toMatchObject([{ responseId: "resp_1", status: "completed" }]);
  });

  it.each([
    ["other words", { items: [user("1", "first"), assistant("Hello. How are you?"), user("2", "something else")] }],
    [
      "a history that was cut off",
      { items: [user("1", "first"), assistant("Hello.", true), user("2", "hello there")] },
    ],
    [
      "other instructions",
      {
        instructions: "Sing.",
        items: [user("1", "first"), assistant("Hello. How are you?"), user("2", "hello there")],
      },
    ],
  ])("is dropped without a trace for %s", async (_, request) => {
    const session = await pausing();
    const guess = session.stages.llm.requests[1];
    session.stages.llm.answer = () => says("The real answer.");
    session.respond({ responseId: "resp_2", ...request });
    await settle();
    expect(guess?.signal.aborted).toBe(true);
    expect(spoken(session)).toBe("The real answer.");
    expect(session.of("response.ended")).toHaveLength(1);
  });

  it("ends when the user speaks on", async () => {
    const session = await pausing();
    await session.hear(audio(320, SPEECH));
    expect(session.stages.llm.requests[1]?.signal.aborted).toBe(true);
    expect(session.types()).toEqual(["speech.started"]);
  });

  it("ends when nobody asks for it", async () => {
    const session = await pausing();
    session.clock.advance(4_100);
    expect(session.stages.llm.requests[1]?.signal.aborted).toBe(true);
  });

  it("can be cancelled like any answer once it is asked for", async () => {
    const session = await openScripted(undefined, ({ llm }) => {
      llm.local = true;
    });
    session.respond({ items: [user("1", "first")] });
    await settle();
    session.stages.llm.answer = async function* ({ signal }) {
      yield { type: "text", delta: "One two three. And " };
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      yield END;
    };
    await session.hear(audio(640, SPEECH), audio(640, 0));
    session.events.length = 0;
    const items = [user("1", "first"), assistant("Hello. How are you?"), user("2", "hello there")];
    session.respond({ responseId: "resp_2", items });
    session.send({ type: "cancel", responseId: "resp_2" });
    await settle();
    // What was ready was out already, but nobody had read it.
    expect(session.events).toEqual([]);
    expect(session.stages.llm.requests[1]?.signal.aborted).toBe(true);
  });

  it("is not taken while another session is answered, nor with a service that is paid for", async () => {
    const paid = await openScripted();
    paid.respond();
    await settle();
    await paid.hear(audio(640, SPEECH), audio(200, 0));
    expect(asked(paid)).toBe(1);
    const session = await openScripted(undefined, ({ llm }) => {
      llm.local = true;
    });
    session.respond();
    await settle();
    const other = await session.cascade.open(SETTINGS, new AbortController().signal);
    session.stages.tts.answer = async function* () {
      await new Gate<void>().promise;
      yield { pcm: new Float32Array(1), hz: 1 };
    };
    other.send({ type: "respond", request: REQUEST });
    await session.hear(audio(640, SPEECH), audio(200, 0));
    expect(asked(session)).toBe(2);
  });
});
