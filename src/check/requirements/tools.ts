/** Function calls, from the model's wish to the answer that follows the result. */
import type { Peer } from "../peer.ts";
import type { Requirement } from "../requirement.ts";
import { expect, Unmet } from "../unmet.ts";
import { at, shown, textAt, typesOf, type WireEvent } from "../wire.ts";
import { type Said, say } from "./saying.ts";

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const WEATHER = { type: "function", name: "get_weather", description: "Weather of a city.", parameters };
const TIME = { type: "function", name: "get_time", description: "Time in a city.", parameters };

const SESSION = { tools: [WEATHER, TIME], output_modalities: ["text"] } as const;
const ASK = { instructions: "Use a tool.", tool_choice: { type: "function", name: WEATHER.name } } as const;

async function ask(peer: Peer, response: object): Promise<Said> {
  const content = [{ type: "input_text", text: "What is the weather in Paris?" }];
  peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  await peer.next("conversation.item.done");
  return await say(peer, response);
}

/** The first call of a response, as `response.output_item.done` has it. */
function callOf(said: Said): WireEvent {
  const call = said.events.find(
    (event) => event.type === "response.output_item.done" && at(event, "item.type") === "function_call",
  );
  if (call === undefined) throw new Unmet("a function call", typesOf(said.events));
  return call;
}

const CALL_ORDER: readonly string[] = [
  "response.output_item.added",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.output_item.done",
];

export const TOOL_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "tools.call",
    title: "a call comes as an item that opens, argument deltas, arguments done, and the item done",
    level: "MUST",
    source: "response.function_call_arguments.delta, response.function_call_arguments.done",
    run: async ({ open }) => {
      const said = await ask(await open(SESSION), ASK);
      const id = textAt(callOf(said), "item.id");
      const ours = said.events.filter((event) => event["item_id"] === id || textAt(event, "item.id") === id);
      const steps = ours.map((event) => event.type).filter((type) => type.startsWith("response."));
      const runs = steps.filter((type, index) => steps[index - 1] !== type);
      expect(runs.join() === CALL_ORDER.join(), CALL_ORDER.join(", "), runs.join(", "));
      return typesOf(ours);
    },
  },
  {
    id: "tools.arguments",
    title: "the deltas joined are the arguments, which are a JSON object; call_id and name agree everywhere",
    level: "MUST",
    source: "response.function_call_arguments.done; the function_call item",
    run: async ({ open }) => {
      const said = await ask(await open(SESSION), ASK);
      const call = callOf(said);
      const id = textAt(call, "item.id");
      const of = (type: string): WireEvent[] =>
        said.events.filter((event) => event.type === type && event["item_id"] === id);
      const joined = of("response.function_call_arguments.delta")
        .map((event) => textAt(event, "delta"))
        .join("");
      const done = of("response.function_call_arguments.done")[0];
      const texts = [textAt(done, "arguments"), textAt(call, "item.arguments")];
      expect(
        texts.every((text) => text === joined),
        "the deltas joined",
        shown(texts),
      );
      expect(isJsonObject(joined), "a JSON object", `${joined.length} characters that are none`);
      const callId = textAt(call, "item.call_id");
      expect(callId !== "" && textAt(done, "call_id") === callId, "one call_id", shown([callId, at(done, "call_id")]));
      expect(textAt(call, "item.name") === WEATHER.name, `name ${WEATHER.name}`, shown(at(call, "item.name")));
      return `${joined.length} characters of arguments`;
    },
  },
  {
    id: "tools.result",
    title: "a function_call_output is taken, and the next response answers in words",
    level: "MUST",
    source: "conversation.item.create, function_call_output",
    run: async ({ open }) => {
      const peer = await open(SESSION);
      const call_id = textAt(callOf(await ask(peer, ASK)), "item.call_id");
      const item = { type: "function_call_output", call_id, output: '{"weather":"sunny"}' };
      peer.send({ type: "conversation.item.create", item });
      const added = await peer.next("conversation.item.added", (event) => at(event, "item.type") === item.type);
      expect(at(added, "item.call_id") === call_id, `call_id ${call_id}`, shown(at(added, "item.call_id")));
      const said = await say(peer, { tool_choice: "none" });
      expect(
        at(said.done, "response.output.0.type") === "message",
        "a message",
        shown(at(said.done, "response.output.0.type")),
      );
      return "a message";
    },
  },
  {
    id: "tools.none",
    title: "tool_choice none keeps the model from calling",
    level: "MUST",
    source: "response.create, tool_choice",
    run: async ({ open }) => {
      const said = await ask(await open(SESSION), { tool_choice: "none" });
      const calls = said.events.filter((event) => at(event, "item.type") === "function_call");
      expect(calls.length === 0, "no call", typesOf(calls));
      return "no call";
    },
  },
  {
    id: "tools.required",
    title: "tool_choice required makes the model call",
    level: "MUST",
    source: "response.create, tool_choice",
    run: async ({ open }) => {
      const said = await ask(await open(SESSION), { instructions: "Use a tool.", tool_choice: "required" });
      const name = textAt(callOf(said), "item.name");
      expect([WEATHER.name, TIME.name].includes(name), "one of the two functions", name);
      return name;
    },
  },
  {
    id: "tools.named",
    title: "tool_choice with a function's name makes the model call that one",
    level: "MUST",
    source: "response.create, tool_choice",
    run: async ({ open }) => {
      const said = await ask(await open(SESSION), { ...ASK, tool_choice: { type: "function", name: TIME.name } });
      const name = textAt(callOf(said), "item.name");
      expect(name === TIME.name, TIME.name, name);
      return name;
    },
  },
  {
    id: "tools.unknown-choice",
    title: "tool_choice with the name of no function is refused",
    level: "SHOULD",
    source: "session.update, tool_choice",
    run: async ({ open }) => {
      const peer = await open(SESSION);
      const session = { type: "realtime", tool_choice: { type: "function", name: "get_nothing" } };
      return textAt(await peer.refusal(peer.send({ type: "session.update", session })), "error.message");
    },
  },
  {
    id: "tools.unknown-call",
    title: "the output of a call that was never made is refused",
    level: "SHOULD",
    source: "conversation.item.create, call_id",
    run: async ({ open }) => {
      const peer = await open(SESSION);
      const item = { type: "function_call_output", call_id: "check_none", output: "{}" };
      return textAt(await peer.refusal(peer.send({ type: "conversation.item.create", item })), "error.message");
    },
  },
];

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
