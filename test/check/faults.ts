/** For each requirement a fault of a server that breaks it, and as little else as possible. */
import { alawToFloat, mulawToFloat } from "../../src/audio/g711.ts";
import { bytesToBase64, floatToPcm16 } from "../../src/audio/pcm.ts";
import { at, textAt, type WireEvent } from "../../src/check/wire.ts";
import type { Mutation } from "../support/check-targets.ts";

type Change = (value: unknown, event: WireEvent) => unknown;

/** `event` with another value at `path`; undefined takes the field away. */
function withAt(event: WireEvent, path: string, change: Change): WireEvent {
  const copy = structuredClone(event) as Record<string, unknown> & WireEvent;
  const keys = path.split(".");
  const last = keys.pop() as string;
  const parent = (keys.length === 0 ? copy : at(copy, keys.join("."))) as Record<string, unknown> | undefined;
  if (typeof parent !== "object" || parent === null) return event;
  const value = change(parent[last], event);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

const constant = (value: unknown): Change => (typeof value === "function" ? (value as Change) : () => value);

/** The server says something else at `path` of its events of `type`. */
const tells = (type: string, path: string, value: unknown): Mutation => ({
  line: () => ({
    incoming: (event) => [event.type === type ? withAt(event, path, constant(value)) : event],
  }),
});
/** The server reads something else at `path` of the client's events of `type`. */
const reads = (type: string, path: string, value: unknown): Mutation => ({
  line: () => ({
    outgoing: (event) => [event.type === type ? withAt(event, path, constant(value)) : event],
  }),
});
const omits = (type: string): Mutation => ({
  line: () => ({ incoming: (event) => (event.type === type ? [] : [event]) }),
});
const repeats = (type: string): Mutation => ({
  line: () => ({ incoming: (event) => (event.type === type ? [event, event] : [event]) }),
});
/** The server passes the client's events of `type` over. */
const ignores = (type: string): Mutation => ({
  line: () => ({ outgoing: (event) => (event.type === type ? [] : [event]) }),
});
/** The server says `extra` before its events of `type`. */
const adds = (type: string, extra: object): Mutation => ({
  line: () => ({
    incoming: (event) =>
      event.type === type ? [{ event_id: "extra", ...extra } as unknown as WireEvent, event] : [event],
  }),
});

const RESPONSE = { id: "resp_extra", object: "realtime.response", status: "in_progress", output: [] };
const CREATED = { type: "response.created", response: RESPONSE };

/** The server says PCM16 where it promised telephone audio. */
const speaksPcm = (decode: (bytes: Uint8Array) => Float32Array): Mutation =>
  tells("response.output_audio.delta", "delta", (delta: unknown) =>
    bytesToBase64(floatToPcm16(decode(Buffer.from(String(delta), "base64")))),
  );

/** The server takes every code for the one of silence. */
const deaf = (silence: number): Mutation =>
  reads("input_audio_buffer.append", "audio", (audio: unknown) =>
    bytesToBase64(new Uint8Array(Buffer.from(String(audio), "base64").length).fill(silence)),
  );

const SESSION_FAULTS: Readonly<Record<string, Mutation>> = {
  "session.created": tells("session.created", "session.instructions", undefined),
  "session.default-audio": tells("session.created", "session.audio.input.format.rate", 16_000),
  "session.default-vad": tells("session.created", "session.audio.input.turn_detection.threshold", 0.7),
  "session.updated": tells("session.updated", "session.tools", undefined),
  "session.merge": tells("session.updated", "session.audio.output.speed", (speed: unknown, event: WireEvent) =>
    at(event, "session.audio.input.turn_detection.silence_duration_ms") === 700 ? 1 : speed,
  ),
  "session.refused-whole": tells("session.updated", "session.instructions", "Be long."),
  "session.push-to-talk": tells("session.updated", "session.audio.input.turn_detection", { type: "server_vad" }),
  "session.semantic-vad": tells("session.updated", "session.audio.input.turn_detection.eagerness", "auto"),
  "session.tools": tells("session.updated", "session.tool_choice", "auto"),
  "session.max-tokens": reads("session.update", "session.max_output_tokens", (value: unknown) => value || 1),
  "session.truncation": tells("session.updated", "session.truncation", "auto"),
  "session.voice": reads("session.update", "session.audio.output.voice", undefined),
  "session.formats": tells("session.updated", "session.audio.output.format.type", "audio/pcm"),
};

const ERROR_FAULTS: Readonly<Record<string, Mutation>> = {
  "error.json": { line: () => ({ endsAfter: "error" }) },
  "error.array": omits("error"),
  "error.typeless": tells("error", "error.type", "server_error"),
  "error.unknown-event": tells("error", "error.event_id", "another"),
  "error.lists-events": tells("error", "error.message", "No."),
  "error.unknown-field": reads("session.update", "session.nonsense_level", undefined),
  "error.bad-value": tells("error", "error.param", undefined),
  "error.missing-field": tells("error", "error.event_id", undefined),
  "error.base64": omits("error"),
  "error.odd-bytes": reads("input_audio_buffer.append", "audio", (audio: unknown) =>
    bytesToBase64(Buffer.from(String(audio), "base64").subarray(1)),
  ),
};

const ITEM_FAULTS: Readonly<Record<string, Mutation>> = {
  "item.create": tells("conversation.item.added", "item.role", "assistant"),
  "item.kinds": tells("conversation.item.added", "item.call_id", "call_b"),
  "item.chain": tells("conversation.item.added", "previous_item_id", null),
  "item.place": reads("conversation.item.create", "previous_item_id", undefined),
  "item.place-unknown": reads("conversation.item.create", "previous_item_id", undefined),
  "item.duplicate": reads("conversation.item.create", "item.id", (id: unknown, event: WireEvent) =>
    textAt(event, "item.content.0.text") === "Bye." ? undefined : id,
  ),
  "item.retrieve": tells("conversation.item.retrieved", "item.content.0.text", ""),
  "item.delete": {
    line: () => ({
      outgoing: (event, reply) => {
        if (event.type !== "conversation.item.delete") return [event];
        reply({ type: "conversation.item.deleted", event_id: "extra", item_id: event["item_id"] });
        return [];
      },
    }),
  },
  "item.unknown": ignores("conversation.item.truncate"),
  "item.truncate": tells("conversation.item.retrieved", "item.content.0.transcript", "word0"),
  "item.truncate-beyond": reads("conversation.item.truncate", "audio_end_ms", 1),
};

const RESPONSE_FAULTS: Readonly<Record<string, Mutation>> = {
  "response.audio-order": omits("response.content_part.added"),
  "response.text-order": repeats("response.output_text.done"),
  "response.audio": tells("response.output_audio_transcript.done", "transcript", "word"),
  "response.text": tells("response.output_text.done", "text", ""),
  "response.created": tells("response.created", "response.status", "completed"),
  "response.usage": tells("response.done", "response.usage.total_tokens", 1),
  "response.max-tokens": tells("response.done", "response.status", "completed"),
  "response.cancel": tells("response.done", "response.status_details.reason", "turn_detected"),
  "response.cancel-ends": {
    line: () => {
      let first = "";
      return {
        incoming: (event) => {
          if (event.type !== "response.created") return [event];
          first ||= textAt(event, "response.id");
          const late = { type: "response.output_text.delta", event_id: "extra", response_id: first, delta: "late" };
          return [event, late];
        },
      };
    },
  },
  "response.cancel-nothing": ignores("response.cancel"),
  "response.second": tells("error", "error.code", "busy"),
  "response.out-of-band": tells("response.done", "response.conversation_id", "conv_1"),
  "response.beside": reads("response.create", "response.conversation", undefined),
  "response.metadata": tells("response.done", "response.metadata", undefined),
  "response.input": reads("response.create", "response.input", (input: unknown) =>
    (input as { readonly id?: string }[] | undefined)?.filter(({ id }) => id !== "check_none"),
  ),
  "response.own-settings": tells("session.updated", "session.max_output_tokens", 50),
  "response.session-modality": reads("session.update", "session.output_modalities", undefined),
  "talk.interrupted": tells("response.done", "response.status_details.reason", "client_cancelled"),
  "talk.next": {
    line: () => {
      let heard = false;
      return {
        incoming: (event) => {
          heard ||= event.type === "input_audio_buffer.speech_started";
          return heard && event.type === "response.created" ? [] : [event];
        },
      };
    },
  },
  "talk.uninterrupted": reads("session.update", "session.audio.input.turn_detection.interrupt_response", true),
};

const INPUT_FAULTS: Readonly<Record<string, Mutation>> = {
  "input.start": tells("input_audio_buffer.speech_started", "audio_start_ms", (ms: unknown) => Number(ms) + 1000),
  "input.stop": tells("input_audio_buffer.speech_stopped", "audio_end_ms", 0),
  "input.clock": tells("input_audio_buffer.speech_started", "audio_start_ms", 700),
  "input.silence": adds("session.updated", {
    type: "input_audio_buffer.speech_started",
    item_id: "a",
    audio_start_ms: 0,
  }),
  "input.no-answer": adds("session.updated", { type: "input_audio_buffer.appended" }),
  "input.turn": tells("conversation.item.added", "item.id", "another"),
  "input.chain": tells("input_audio_buffer.committed", "previous_item_id", null),
  "input.transcript": tells("conversation.item.input_audio_transcription.completed", "transcript", ""),
  "input.transcript-deltas": omits("conversation.item.input_audio_transcription.delta"),
  "input.untranscribed": reads("session.update", "session.audio.input.transcription", {}),
  "input.answered": reads("session.update", "session.audio.input.turn_detection.create_response", false),
  "input.idle": reads("session.update", "session.audio.input.turn_detection.idle_timeout_ms", undefined),
  "input.unanswered": reads("session.update", "session.audio.input.turn_detection.create_response", true),
  "push.commit": adds("input_audio_buffer.committed", CREATED),
  "push.answer": ignores("response.create"),
  "push.too-short": tells("error", "error.message", "Too short."),
  "push.empty": ignores("input_audio_buffer.commit"),
  "push.clear": {
    line: () => ({
      outgoing: (event, reply) => {
        if (event.type !== "input_audio_buffer.clear") return [event];
        reply({ type: "input_audio_buffer.cleared", event_id: "extra" });
        return [];
      },
    }),
  },
};

const calls = (from: string, to: string): Mutation =>
  reads("response.create", "response.tool_choice", (choice: unknown) => (choice === from ? to : choice));

const TOOL_FAULTS: Readonly<Record<string, Mutation>> = {
  "tools.call": omits("response.function_call_arguments.delta"),
  "tools.arguments": tells("response.function_call_arguments.done", "arguments", "{}"),
  "tools.result": calls("none", "required"),
  "tools.none": calls("none", "required"),
  "tools.required": calls("required", "none"),
  "tools.named": reads("response.create", "response.tool_choice.name", "get_weather"),
  "tools.unknown-choice": reads("session.update", "session.tool_choice", undefined),
  "tools.unknown-call": ignores("conversation.item.create"),
  "format.pcmu-out": speaksPcm(mulawToFloat),
  "format.pcma-out": speaksPcm(alawToFloat),
  "format.pcmu-in": deaf(0xff),
  "format.pcma-in": deaf(0xd5),
};

const OTHER_FAULTS: Readonly<Record<string, Mutation>> = {
  "event.ids": { line: () => ({ incoming: (event) => [{ ...event, event_id: "event_1" }] }) },
  "event.shapes": tells("response.output_text.delta", "output_index", undefined),
  "event.nulls": tells("response.done", "response.voice", null),
  "door.unknown-model": { door: ({ query: _, ...door }) => door },
  "door.transcription": { door: ({ query: _, ...door }) => door },
  "door.transcription-model": { door: (door) => (door.query?.["model"] === undefined ? door : { httpStatus: 400 }) },
  "door.transcription-speech": adds("conversation.item.input_audio_transcription.completed", CREATED),
  "door.transcription-response": ignores("response.create"),
  "door.subprotocol": { line: () => ({ subprotocol: "" }) },
  "door.wrong-key": { door: ({ key: _, ...door }) => door },
  "door.client-secret": {
    post: ({ httpStatus, body }) => ({ httpStatus, body: { ...(body as object), value: "sk_1" } }),
  },
};

export const FAULTS: Readonly<Record<string, Mutation>> = {
  ...SESSION_FAULTS,
  ...ERROR_FAULTS,
  ...ITEM_FAULTS,
  ...RESPONSE_FAULTS,
  ...INPUT_FAULTS,
  ...TOOL_FAULTS,
  ...OTHER_FAULTS,
};
