/**
 * Random conversations: what a client sends, whole and mutated, between what an engine says and the passing of time.
 * After each, the invariants that no sequence may break.
 */
import fc from "fast-check";
import { AppError } from "../../src/errors.ts";
import type { ServerEvent } from "../../src/protocol/openai/server-events.ts";
import { Conversation } from "./conversation.ts";

type Step = (talk: Conversation) => void;

interface Named {
  readonly name: string;
  readonly run: Step;
}

const step = (name: string, run: Step): Named => ({ name, run });

/** Ids that exist now and then: counting ids make them guessable. */
const itemId = fc.oneof(
  fc.nat({ max: 12 }).map((n) => `item_${n}`),
  fc.constantFrom("mine", "root", ""),
);
const responseId = fc.nat({ max: 6 }).map((n) => `resp_${n}`);
const callId = fc.constantFrom("call_1", "c1", "c2", "c3");
const segmentId = fc.oneof(
  fc.nat({ max: 5 }).map((n) => `s${n}`),
  fc.nat({ max: 4 }).map((n) => `seg_${n}`),
);
const text = fc.constantFrom("", "Hello.", "Mm-hmm.", "What is the weather in Paris?", "🙂 ok", " ");

const turnDetection = fc.constantFrom(
  null,
  { type: "server_vad" },
  { type: "server_vad", interrupt_response: false },
  { type: "server_vad", create_response: false },
  { type: "server_vad", idle_timeout_ms: 2000 },
  { type: "semantic_vad", eagerness: "high" },
);
const format = fc.constantFrom(
  { type: "audio/pcm", rate: 24000 },
  { type: "audio/pcm", rate: 16000 },
  { type: "audio/pcmu" },
  { type: "audio/pcma" },
);
const tools = fc.constantFrom([], [{ type: "function", name: "f", parameters: {} }]);
const message = fc.record({
  type: fc.constant("message"),
  role: fc.constantFrom("user", "system", "assistant"),
  content: fc.array(
    fc.oneof(
      text.map((value) => ({ type: "input_text", text: value })),
      text.map((value) => ({ type: "output_text", text: value })),
      text.map((value) => ({ type: "input_audio", transcript: value })),
      fc.constant({ type: "input_audio", audio: "AAAAAAAA" }),
    ),
    { maxLength: 2 },
  ),
});
const item = fc.oneof(
  message,
  fc.tuple(message, itemId).map(([value, id]) => ({ ...value, id })),
  callId.map((call_id) => ({ type: "function_call", name: "f", arguments: "{}", call_id })),
  callId.map((call_id) => ({ type: "function_call_output", call_id, output: "done" })),
);

const clientEvent: fc.Arbitrary<Record<string, unknown>> = fc.oneof(
  fc.record({ turn_detection: turnDetection, format }, { requiredKeys: [] }).map((input) => ({
    type: "session.update",
    session: { type: "realtime", audio: { input } },
  })),
  fc
    .record(
      { output_modalities: fc.constantFrom(["audio"], ["text"]), tools, instructions: text },
      { requiredKeys: [] },
    )
    .map((session) => ({ type: "session.update", session: { type: "realtime", ...session } })),
  fc.constantFrom("transcription", "realtime").map((type) => ({ type: "session.update", session: { type } })),
  fc.nat({ max: 9600 }).map((bytes) => ({
    type: "input_audio_buffer.append",
    audio: Buffer.alloc(bytes).toString("base64"),
  })),
  fc
    .constantFrom("input_audio_buffer.commit", "input_audio_buffer.clear", "output_audio_buffer.clear")
    .map((type) => ({ type })),
  fc.record(
    { type: fc.constant("conversation.item.create"), item, previous_item_id: itemId },
    { requiredKeys: ["type", "item"] },
  ),
  fc
    .tuple(fc.constantFrom("conversation.item.retrieve", "conversation.item.delete"), itemId)
    .map(([type, item_id]) => ({ type, item_id })),
  fc.record({
    type: fc.constant("conversation.item.truncate"),
    item_id: itemId,
    content_index: fc.constantFrom(0, 0, 0, 1),
    audio_end_ms: fc.constantFrom(0, 100, 300, 5000),
  }),
  fc.record({ type: fc.constant("response.create") }),
  fc
    .record(
      {
        conversation: fc.constantFrom("auto", "none"),
        output_modalities: fc.constantFrom(["audio"], ["text"]),
        input: fc.array(
          fc.oneof(
            item,
            itemId.map((id) => ({ type: "item_reference", id })),
          ),
          { maxLength: 3 },
        ),
        metadata: fc.constant({ a: "b" }),
      },
      { requiredKeys: [] },
    )
    .map((response) => ({ type: "response.create", response })),
  fc.record({ type: fc.constant("response.cancel"), response_id: responseId }, { requiredKeys: ["type"] }),
);

/** A client event with something wrong in it. */
const mutated: fc.Arbitrary<string> = fc.tuple(clientEvent, fc.anything(), fc.nat()).map(([event, junk, at]) => {
  const keys = Object.keys(event);
  const key = keys[at % keys.length] as string;
  switch (at % 5) {
    case 0:
      return JSON.stringify({ ...event, [key]: junk }) ?? "";
    case 1:
      return JSON.stringify({ ...event, [`x_${at}`]: junk }) ?? "";
    case 2:
      return JSON.stringify(Object.fromEntries(Object.entries(event).filter(([other]) => other !== key)));
    case 3:
      return JSON.stringify(event).slice(0, at % 60);
    default:
      return JSON.stringify([event, String(junk)]) ?? "";
  }
});

const withResponse =
  (act: (talk: Conversation, id: string) => void): Step =>
  (talk) => {
    const id = talk.engine.requests.at(-1)?.responseId;
    if (id !== undefined) act(talk, id);
  };

const engineStep: fc.Arbitrary<Named> = fc.oneof(
  segmentId.map((id) => step(`start ${id}`, (talk) => talk.engine.startSpeech(id))),
  segmentId.map((id) => step(`stop ${id}`, (talk) => talk.engine.stopSpeech(id))),
  fc.tuple(segmentId, text).map(([id, delta]) => step(`hear ${id} ${delta}`, (talk) => talk.engine.hear(id, delta))),
  fc
    .tuple(segmentId, text)
    .map(([id, words]) => step(`transcribe ${id} ${words}`, (talk) => talk.engine.understand(id, words))),
  segmentId.map((id) => step(`fail ${id}`, (talk) => talk.engine.failTranscript(id, new AppError("stt_failed")))),
  fc.tuple(segmentId, text).map(([id, words]) => step(`turn ${id} ${words}`, (talk) => talk.engine.turn(id, words))),
  fc.tuple(text, fc.nat({ max: 400 })).map(([words, ms]) =>
    step(
      `say ${words} ${ms}`,
      withResponse((talk, id) => talk.engine.say(id, words, ms)),
    ),
  ),
  text.map((words) =>
    step(
      `write ${words}`,
      withResponse((talk, id) => talk.engine.write(id, words)),
    ),
  ),
  callId.map((call) =>
    step(
      `call ${call}`,
      withResponse((talk, id) => talk.engine.call(id, call, "f", "{}")),
    ),
  ),
  callId.map((call) =>
    step(
      `begin call ${call}`,
      withResponse((talk, id) =>
        talk.engine.deliver({ type: "tool.started", responseId: id, callId: call, name: "f" }),
      ),
    ),
  ),
  fc.constantFrom("completed", "incomplete", "failed" as const).map((status) =>
    step(
      `end ${status}`,
      withResponse((talk, id) => {
        const error = status === "failed" ? new AppError("llm_failed") : null;
        talk.engine.end(id, status as "completed" | "incomplete" | "failed", error);
      }),
    ),
  ),
  responseId.map((id) => step(`say to ${id}`, (talk) => talk.engine.say(id, "Late.", 100))),
);

const anyStep: fc.Arbitrary<Named> = fc.oneof(
  {
    weight: 6,
    arbitrary: clientEvent.map((event) => step(`send ${JSON.stringify(event)}`, (talk) => void talk.send(event))),
  },
  { weight: 2, arbitrary: mutated.map((frame) => step(`send ${frame}`, (talk) => void talk.send(frame))) },
  { weight: 6, arbitrary: engineStep },
  { weight: 2, arbitrary: fc.nat({ max: 1500 }).map((ms) => step(`wait ${ms}`, (talk) => talk.clock.advance(ms))) },
);

export interface FuzzedConversation {
  readonly audioPath: "events" | "track";
  readonly steps: readonly Named[];
}

export const conversations: fc.Arbitrary<FuzzedConversation> = fc.record({
  audioPath: fc.constantFrom("events", "track"),
  steps: fc.array(anyStep, { maxLength: 40 }),
});

/** Runs it to the end and throws where an invariant does not hold. */
export function playAndCheck({ audioPath, steps }: FuzzedConversation): void {
  const talk = new Conversation({ audioPath });
  for (const { run } of steps) run(talk);
  for (const { responseId: id } of talk.engine.requests) talk.engine.end(id);
  for (let n = 0; n <= 5; n++) for (const prefix of ["s", "seg_"]) talk.engine.understand(`${prefix}${n}`, "");
  talk.clock.advance(60_000);
  for (const { responseId: id } of talk.engine.requests) talk.engine.end(id);
  talk.close();
  check(talk.events);
  if (talk.pendingAlarms > 0) throw new Error(`${talk.pendingAlarms} alarms are left after the end`);
}

function check(events: readonly ServerEvent[]): void {
  const open = new Set<string>();
  const done = new Set<string>();
  const items = new Map<string, number>();
  const announced = new Set<string>();
  const ids = new Set<string>();
  for (const event of events) {
    if (ids.has(event.event_id)) throw new Error(`event id ${event.event_id} twice`);
    ids.add(event.event_id);
    if (event.type === "response.created") {
      if (open.has(event.response.id) || done.has(event.response.id))
        throw new Error(`${event.response.id} created twice`);
      open.add(event.response.id);
    } else if (event.type === "response.done") {
      if (!open.delete(event.response.id)) throw new Error(`${event.response.id} is done without being open`);
      done.add(event.response.id);
      for (const item of event.response.output) {
        if (item.status === "in_progress") throw new Error(`${item.id} is in progress in a response that is done`);
      }
    } else if (
      "response_id" in event &&
      !event.type.startsWith("output_audio_buffer.") &&
      !open.has(event.response_id)
    ) {
      throw new Error(`${event.type} of ${event.response_id}, which is not open`);
    }
    checkItem(event, items, announced);
  }
  if (open.size > 0) throw new Error(`${[...open].join(", ")} is never done`);
}

/** Each item is added once; an event names only items that were told of and are still there. */
function checkItem(event: ServerEvent, items: Map<string, number>, announced: Set<string>): void {
  switch (event.type) {
    case "conversation.item.added": {
      const { id } = event.item;
      if (items.has(id)) throw new Error(`item ${id} is added twice`);
      if (event.previous_item_id !== null && !items.has(event.previous_item_id)) {
        throw new Error(`item ${id} is added behind ${event.previous_item_id}, which is unknown`);
      }
      items.set(id, 0);
      announced.add(id);
      return;
    }
    case "conversation.item.deleted":
      if (!items.delete(event.item_id)) throw new Error(`item ${event.item_id} is deleted and unknown`);
      return;
    case "conversation.item.done":
    case "conversation.item.retrieved":
      if (!items.has(event.item.id)) throw new Error(`${event.type} of ${event.item.id}, which is unknown`);
      return;
    case "conversation.item.truncated":
    case "conversation.item.input_audio_transcription.completed":
    case "conversation.item.input_audio_transcription.failed":
      if (!items.has(event.item_id)) throw new Error(`${event.type} of ${event.item_id}, which is unknown`);
      return;
    case "input_audio_buffer.speech_started":
    case "input_audio_buffer.committed":
    case "input_audio_buffer.timeout_triggered":
      announced.add(event.item_id);
      return;
    case "response.output_item.added":
      announced.add(event.item.id);
      return;
    default:
      if ("item_id" in event && !announced.has(event.item_id))
        throw new Error(`${event.type} of ${event.item_id}, which is unknown`);
  }
}
