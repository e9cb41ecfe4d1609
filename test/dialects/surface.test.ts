import { readFileSync } from "node:fs";
import type { RealtimeClientEvent, RealtimeServerEvent } from "openai/resources/realtime/realtime";
import { expect, it } from "vitest";
import { AppError } from "../../src/errors.ts";
import { CLIENT_EVENTS } from "../../src/protocol/openai/client-events.ts";
import type { ServerEventType } from "../../src/protocol/openai/server-events.ts";
import { Conversation } from "../support/conversation.ts";

const DOCUMENT = readFileSync(new URL("../../docs/openai-realtime.md", import.meta.url), "utf8");

/** The rows of the table under a heading: event -> its second column. */
function rows(heading: string): Map<string, string> {
  const section = DOCUMENT.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return new Map(
    [...section.matchAll(/^\| `([\w.]+)` \| (\w+) \|/gm)].map((match) => [match[1] ?? "", match[2] ?? ""]),
  );
}

/** What the official types have and this server never sends. The compiler holds the list complete. */
const UNSENT: Record<Exclude<RealtimeServerEvent["type"], ServerEventType>, true> = {
  "conversation.item.input_audio_transcription.segment": true,
  "input_audio_buffer.dtmf_event_received": true,
  "mcp_list_tools.in_progress": true,
  "mcp_list_tools.completed": true,
  "mcp_list_tools.failed": true,
  "response.mcp_call_arguments.delta": true,
  "response.mcp_call_arguments.done": true,
  "response.mcp_call.in_progress": true,
  "response.mcp_call.completed": true,
  "response.mcp_call.failed": true,
};

it("documents each client event as served, and serves each that OpenAI has", () => {
  const official: Record<RealtimeClientEvent["type"], true> = {
    "session.update": true,
    "input_audio_buffer.append": true,
    "input_audio_buffer.commit": true,
    "input_audio_buffer.clear": true,
    "output_audio_buffer.clear": true,
    "conversation.item.create": true,
    "conversation.item.retrieve": true,
    "conversation.item.truncate": true,
    "conversation.item.delete": true,
    "response.create": true,
    "response.cancel": true,
  };
  const documented = rows("What a client sends");
  expect([...documented.keys()].sort()).toEqual(Object.keys(official).sort());
  expect([...documented.values()].every((served) => served === "yes")).toBe(true);
  expect(Object.keys(CLIENT_EVENTS).sort()).toEqual(Object.keys(official).sort());
});

it("sends every event that the document says is sent, and none of the others", () => {
  const sent = new Set([...exercise("events"), ...exercise("track")]);
  const documented = rows("What the server sends");
  const marked = (answer: string) => [...documented].filter(([, value]) => value === answer).map(([event]) => event);
  expect(marked("yes").sort()).toEqual([...sent].sort());
  expect(marked("no").sort()).toEqual(Object.keys(UNSENT).sort());
});

/** A talk in which everything happens once. */
function exercise(audioPath: "events" | "track"): string[] {
  const talk = new Conversation({ audioPath });
  const turn_detection = { type: "server_vad", idle_timeout_ms: 1000 };
  talk.send({ type: "session.update", session: { type: "realtime", audio: { input: { turn_detection } } } });
  talk.append(100);
  talk.engine.startSpeech("s1");
  talk.engine.hear("s1", "Hi");
  talk.engine.stopSpeech("s1");
  talk.engine.understand("s1", "Hi.");
  const first = talk.engine.lastRequest.responseId;
  talk.engine.say(first, "Hello there.", 400);
  talk.engine.call(first, "c1", "f", "{}");
  talk.engine.end(first);
  talk.clock.advance(2000);
  const prompt = talk.engine.lastRequest.responseId;
  talk.engine.say(prompt, "Are you there?", 400);
  talk.engine.turn("s2", "Yes, stop.");
  talk.engine.startSpeech("s3");
  talk.engine.stopSpeech("s3");
  talk.engine.failTranscript("s3", new AppError("stt_failed"));
  talk.send({ type: "response.create", response: { conversation: "none", output_modalities: ["text"] } });
  talk.engine.write(talk.engine.lastRequest.responseId, "Hi.");
  talk.engine.end(talk.engine.lastRequest.responseId);
  const itemId = talk.last("input_audio_buffer.committed").item_id;
  talk.send({ type: "conversation.item.retrieve", item_id: itemId });
  talk.send({ type: "conversation.item.delete", item_id: itemId });
  talk.send({ type: "input_audio_buffer.clear" });
  talk.send({ type: "nonsense" });
  return talk.types;
}
