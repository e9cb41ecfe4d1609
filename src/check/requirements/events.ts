/** What holds for every event, shown on a conversation that meets most of them. */

import { pcm16Speech } from "../peer.ts";
import type { Check, Requirement } from "../requirement.ts";
import { nullsOf, shapeFaultOf } from "../shapes.ts";
import { expect } from "../unmet.ts";
import { textAt, type WireEvent } from "../wire.ts";
import { say } from "./saying.ts";

/** Three requirements look at one conversation. */
const tours = new WeakMap<Check["target"], Promise<readonly WireEvent[]>>();

function tour(check: Check): Promise<readonly WireEvent[]> {
  const known = tours.get(check.target);
  if (known !== undefined) return known;
  const made = converse(check);
  tours.set(check.target, made);
  return made;
}

async function converse({ open, question }: Check): Promise<readonly WireEvent[]> {
  const peer = await open();
  const spoken = await say(peer, { output_modalities: ["audio"] });
  const item_id = textAt(spoken.done, "response.output.0.id");
  peer.send({ type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: 0 });
  await peer.next("conversation.item.truncated");
  peer.send({ type: "conversation.item.retrieve", item_id });
  await peer.next("conversation.item.retrieved");
  peer.send({ type: "conversation.item.delete", item_id });
  await peer.next("conversation.item.deleted");
  const item = { id: "check_a", type: "message", role: "user", content: [{ type: "input_text", text: "Hello." }] };
  peer.send({ type: "conversation.item.create", item });
  await peer.next("conversation.item.done");
  await say(peer, { output_modalities: ["text"], metadata: { topic: "check" } });
  const tool = {
    type: "function",
    name: "get_time",
    description: "The time.",
    parameters: { type: "object", properties: {} },
  };
  await say(peer, { output_modalities: ["text"], tools: [tool], tool_choice: "required" });
  const turn_detection = { type: "server_vad", create_response: false };
  await peer.update({ audio: { input: { transcription: { model: "whisper-1" }, turn_detection } } });
  await peer.say(pcm16Speech(question.pcm), { afterMs: 1500 });
  await peer.next("conversation.item.input_audio_transcription.completed");
  peer.send({ type: "input_audio_buffer.clear" });
  await peer.next("input_audio_buffer.cleared");
  await peer.refusal(peer.send({ type: "response.cancel" }));
  return peer.events;
}

export const EVENT_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "event.ids",
    title: "every event has an event_id of its own",
    level: "MUST",
    source: "event_id",
    run: async (check) => {
      const events = await tour(check);
      const ids = events.map((event) => textAt(event, "event_id"));
      const bare = events.filter((_, index) => ids[index] === "").map((event) => event.type);
      expect(bare.length === 0, "an event_id in every event", `none in ${bare.slice(0, 5).join(", ")}`);
      const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
      expect(twice.length === 0, "each event_id once", `${twice[0]} again`);
      return `${ids.length} ids`;
    },
  },
  {
    id: "event.shapes",
    title: "every event is of a type that the API has, with the fields that its type demands",
    level: "MUST",
    source: "the server events of the API",
    run: async (check) => {
      const events = await tour(check);
      const faults = events.flatMap((event) => shapeFaultOf(event) ?? []);
      expect(faults.length === 0, "events as the API describes them", faults.slice(0, 3).join("; "));
      return `${events.length} events of ${new Set(events.map((event) => event.type)).size} types`;
    },
  },
  {
    id: "event.nulls",
    title: "a field that may be absent is absent rather than null, unless the API says that it may be null",
    level: "SHOULD",
    source: "the types of the API's server events",
    run: async (check) => {
      const events = await tour(check);
      const nulls = events.flatMap((event) => nullsOf(event).map((path) => `${event.type} ${path}`));
      expect(nulls.length === 0, "no null where the types have none", [...new Set(nulls)].slice(0, 5).join("; "));
      return `${events.length} events without`;
    },
  },
];
