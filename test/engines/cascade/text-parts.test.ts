import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Lane } from "../../../src/engines/cascade/lane.ts";
import { parseCalls } from "../../../src/engines/cascade/llm/call-syntax.ts";
import { eventData } from "../../../src/engines/cascade/llm/event-stream.ts";
import { fitHistory } from "../../../src/engines/cascade/llm/fit-history.ts";
import type { ChatMessage } from "../../../src/engines/cascade/llm/llm.ts";
import { type MarkupPart, MarkupReader } from "../../../src/engines/cascade/llm/markup.ts";
import { SlotPool } from "../../../src/engines/cascade/llm/slot-pool.ts";
import { toolProblem } from "../../../src/engines/cascade/llm/tool-check.ts";
import { Agreement } from "../../../src/engines/cascade/stt/agreement.ts";
import { believable } from "../../../src/engines/cascade/stt/gates.ts";
import { Gate, settle } from "./scripted.ts";

describe("Agreement", () => {
  it("only ever appends, whatever the hypotheses", () => {
    const word = fc.constantFrom("a", "b", "A,", "c");
    const hypothesis = fc.array(word, { maxLength: 6 }).map((words) => words.join(" "));
    fc.assert(
      fc.property(fc.array(hypothesis, { maxLength: 8 }), hypothesis, (hypotheses, final) => {
        const agreement = new Agreement();
        let given = "";
        for (const text of hypotheses) given += agreement.next(text);
        given += agreement.finish(final);
        expect(agreement.text).toBe(given);
        expect(given).not.toMatch(/^ | {2}/);
      }),
      { seed: 3 },
    );
  });

  it("gives a word once two hypotheses have it, ignoring case and punctuation", () => {
    const agreement = new Agreement();
    expect(agreement.next("What is")).toBe("");
    expect(agreement.next("what, is the")).toBe("what, is");
    expect(agreement.next("What is a")).toBe("");
    expect(agreement.finish("What is a cat?")).toBe(" a cat?");
  });
});

describe("believable", () => {
  it.each([
    ["a loop", "so so so so so so", 2, 1_000, "so"],
    ["a loop of a phrase", "I like it. I like it. I like it. I like it. I like it.", 4, 3_000, "I like it."],
    ["a phrase said three times", "no no no", 2, 900, "no no no"],
    ["what subtitles say of silence", "Thank you.", 1, 96, ""],
    ["the same, really said", "Thank you.", 1, 600, "Thank you."],
    ["more than can be said", "word ".repeat(3).concat("x".repeat(200)), 1, 500, ""],
    ["punctuation alone", " . ", 1, 500, ""],
    ["a quote that nobody opened", '"Who wrote Hamlet?"', 2, 900, "Who wrote Hamlet?"],
  ])("%s", (_, text, seconds, voicedMs, expected) => {
    expect(believable(text, seconds, voicedMs)).toBe(expected);
  });
});

describe("MarkupReader", () => {
  const read = (deltas: readonly string[], calls = true): MarkupPart[] => {
    const reader = new MarkupReader(calls);
    return [...deltas.flatMap((delta) => reader.push(delta)), ...reader.finish()];
  };
  const texts = (list: readonly MarkupPart[]): string =>
    list.map((part) => (part.type === "text" ? part.text : "")).join("");

  it("is the same for every way to cut the stream", () => {
    const text = "Hi <b>there</b>. <think>a < b</think>One <code>f(x=1)</code> two <tool_call>{}</tool_call> <cod 3";
    const whole = read([text]);
    expect(texts(whole)).toBe("Hi <b>there</b>. One  two  <cod 3");
    expect(whole.filter(({ type }) => type === "call")).toEqual([
      { type: "call", tag: "code", body: "f(x=1)", closed: true },
      { type: "call", tag: "tool_call", body: "{}", closed: true },
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }), (sizes) => {
        const deltas: string[] = [];
        for (let at = 0, i = 0; at < text.length; i++) {
          const size = sizes[i % sizes.length] ?? 1;
          deltas.push(text.slice(at, at + size));
          at += size;
        }
        const cut = read(deltas);
        expect(texts(cut)).toBe(texts(whole));
        expect(cut.filter(({ type }) => type === "call")).toEqual(whole.filter(({ type }) => type === "call"));
      }),
      { seed: 5 },
    );
  });

  it("reports a call that never closed, and leaves code alone where there are no tools", () => {
    expect(read(["ok <code>f("])).toEqual([
      { type: "text", text: "ok " },
      { type: "call", tag: "code", body: "f(", closed: false },
    ]);
    expect(texts(read(["ok <code>f()</code>"], false))).toBe("ok <code>f()</code>");
  });
});

describe("parseCalls", () => {
  it("reads literals of Python and of JSON", () => {
    const text = `look(city='O\\'Fallon', days=3, deep=True, tags=["a", 'b'], more={'x': None, "y": -1.5e2}, t="""q"q""")\nnext()`;
    expect(parseCalls(text).map(({ name, argumentsJson }) => [name, JSON.parse(argumentsJson)])).toEqual([
      ["look", { city: "O'Fallon", days: 3, deep: true, tags: ["a", "b"], more: { x: null, y: -150 }, t: 'q"q' }],
      ["next", {}],
    ]);
  });

  it.each(["", "look", "look(", "look(3)", "look(a=)", "look(a=b)", "look(a='x)", "look(a=1 b=2)", "1()"])(
    "refuses %j",
    (text) => {
      expect(() => parseCalls(text)).toThrow(SyntaxError);
    },
  );

  it("never throws anything but a SyntaxError", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseCalls(`f(${text})`);
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
        }
      }),
      { seed: 11 },
    );
  });
});

describe("toolProblem", () => {
  const tools = [
    {
      name: "set",
      description: "",
      parameters: {
        type: "object",
        required: ["level"],
        additionalProperties: false,
        properties: {
          level: { type: "integer" },
          mode: { enum: ["on", "off"] },
          list: { type: "array", items: { type: "string" } },
        },
      },
    },
  ];
  it.each([
    ['{"level":3,"mode":"on","list":["a"]}', null],
    ["{", "not valid JSON"],
    ["[]", "must be of type object"],
    ["{}", "lacks the argument level"],
    ['{"level":1.5}', "set.level must be of type integer"],
    ['{"level":1,"mode":"x"}', 'set.mode must be one of "on", "off"'],
    ['{"level":1,"list":[2]}', "set.list[0] must be of type string"],
    ['{"level":1,"extra":2}', "has no argument extra"],
  ])("%s", (json, problem) => {
    const found = toolProblem("set", json, tools);
    if (problem === null) expect(found).toBeNull();
    else expect(found).toContain(problem);
  });
  it("names the functions that there are", () => {
    expect(toolProblem("get", "{}", tools)).toBe("there is no function get; there are set");
  });
});

describe("eventData", () => {
  it("joins lines and characters however they are cut", async () => {
    const bytes = new TextEncoder().encode(
      'data: {"a":"é"}\r\n\r\n: comment\nevent: x\ndata: one\ndata: two\n\ndata: [DONE]',
    );
    for (const size of [1, 2, 3, 7, 1_000]) {
      const chunks = (async function* () {
        for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
      })();
      const data: string[] = [];
      for await (const event of eventData(chunks)) data.push(event);
      expect(data).toEqual(['{"a":"é"}', "one\ntwo", "[DONE]"]);
    }
  });
});

describe("fitHistory", () => {
  const user = (text: string): ChatMessage => ({ role: "user", text, images: [] });
  const model = (text: string): ChatMessage => ({ role: "assistant", text, toolCalls: [] });
  const count = (messages: readonly ChatMessage[]): number =>
    messages.reduce((sum, message) => sum + ("text" in message ? message.text.length : 0), 0);
  const messages = [
    { role: "system", text: "sys" } as const,
    user("1111"),
    model("2222"),
    user("3333"),
    model("4444"),
    user("5"),
  ];

  it("leaves alone what fits", () => {
    expect(fitHistory(messages, { tokensMax: 100, truncation: "auto", count })).toBe(messages);
  });
  it("drops whole turns from the oldest on, and some more, so that the rest stays for a while", () => {
    const kept = fitHistory(messages, { tokensMax: 18, truncation: "auto", count });
    expect(kept.map((message) => ("text" in message ? message.text : ""))).toEqual(["sys", "3333", "4444", "5"]);
    const less = fitHistory(messages, { tokensMax: 18, truncation: { retentionRatio: 0.5, tokensMax: null }, count });
    // 0.5 of the 15 after the instructions.
    expect(less.map((message) => ("text" in message ? message.text : ""))).toEqual(["sys", "5"]);
  });
  it("heeds the session's own limit", () => {
    const texts = (retentionRatio: number, tokensMax: number): string[] =>
      fitHistory(messages, { tokensMax: 100, truncation: { retentionRatio, tokensMax }, count }).map((message) =>
        "text" in message ? message.text : "",
      );
    // OpenAI's post_instructions: the instructions do not count, and 17 is all that follows them.
    expect(texts(1, 17)).toHaveLength(6);
    expect(texts(1, 16)).toEqual(["sys", "3333", "4444", "5"]);
    expect(texts(0.5, 16)).toEqual(["sys", "5"]);
    expect(texts(0, 16)).toEqual(["sys", "5"]);
  });
  it("is an error where nothing may be dropped, or dropping does not help", () => {
    expect(() => fitHistory(messages, { tokensMax: 18, truncation: "disabled", count })).toThrow("has 20 tokens");
    expect(() => fitHistory(messages, { tokensMax: 3, truncation: "auto", count })).toThrow("shorten the instructions");
  });
});

describe("Lane", () => {
  it("runs one at a time, urgent ones first, and lets those go that abort", async () => {
    const lane = new Lane("tts");
    const gate = new Gate<void>();
    const order: string[] = [];
    const abort = new AbortController();
    const run = (name: string, urgent: boolean, signal?: AbortSignal) =>
      lane.run(urgent, signal, async () => {
        order.push(name);
        await gate.promise;
      });
    const all = [run("first", false), run("second", false), run("urgent", true), run("third", false)];
    const gone = run("gone", true, abort.signal);
    abort.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    expect(order).toEqual(["first"]);
    gate.resolve();
    await Promise.all(all);
    expect(order).toEqual(["first", "urgent", "second", "third"]);
  });
  it("goes on after a failure, and refuses more than may wait", async () => {
    const lane = new Lane("stt", 1, 1);
    await expect(lane.run(false, undefined, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    const gate = new Gate<void>();
    const running = [lane.run(false, undefined, () => gate.promise), lane.run(false, undefined, () => gate.promise)];
    await expect(lane.run(false, undefined, () => gate.promise)).rejects.toThrow("1 tasks wait already");
    gate.resolve();
    await Promise.all(running);
  });
});

describe("SlotPool", () => {
  it("gives a session its own slot back, others the longest idle, and never one to two", async () => {
    const pool = new SlotPool(["x", "y"]);
    const signal = new AbortController().signal;
    expect(await pool.take("a", signal)).toBe("x");
    expect(await pool.take("b", signal)).toBe("y");
    const waiting = [pool.take("c", signal), pool.take("d", signal)];
    const abort = new AbortController();
    const gone = pool.take("e", abort.signal);
    abort.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    pool.give("y");
    expect(await waiting[0]).toBe("y");
    pool.give("x");
    expect(await waiting[1]).toBe("x");
    pool.give("x");
    pool.give("y");
    await settle();
    expect(await pool.take("c", signal)).toBe("y");
    pool.give("y");
    expect(await pool.take("new", signal)).toBe("x");
  });

  // An answer that was begun on a wrong guess made the right one start from nothing, in another slot.
  it("lets a session wait for its own slot while its cancelled user leaves", async () => {
    const pool = new SlotPool(["x", "y"]);
    const signal = new AbortController().signal;
    expect(await pool.take("a", signal)).toBe("x");
    pool.leave("x");
    const next = pool.take("a", signal);
    expect(await pool.take("b", signal)).toBe("y");
    const other = pool.take("c", signal);
    pool.give("x");
    expect(await next).toBe("x");
    pool.give("y");
    expect(await other).toBe("y");
  });
});
