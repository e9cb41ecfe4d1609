/** What cannot be read or is not known: an error event that names the client's event, and the session stays. */
import { bytesToBase64 } from "../../audio/pcm.ts";
import type { Peer } from "../peer.ts";
import type { Requirement } from "../requirement.ts";
import { expect } from "../unmet.ts";
import { at, shown, textAt, type WireEvent } from "../wire.ts";

/** The error's code and message, once the session has shown that it is still there. */
async function survived(peer: Peer, error: WireEvent): Promise<string> {
  await peer.fence();
  return `${textAt(error, "error.code") || "no code"}: ${textAt(error, "error.message")}`;
}

const frame = (id: string, title: string, text: string): Requirement => ({
  id,
  title,
  level: "MUST",
  source: "error: most errors are recoverable and the session stays open",
  run: async ({ open }) => {
    const peer = await open();
    peer.raw(text);
    return survived(peer, await peer.refusal(null));
  },
});

const append = (id: string, title: string, audio: string): Requirement => ({
  id,
  title,
  level: "MUST",
  source: "input_audio_buffer.append, audio",
  run: async ({ open }) => {
    const peer = await open();
    return survived(peer, await peer.refusal(peer.send({ type: "input_audio_buffer.append", audio })));
  },
});

export const ERROR_REQUIREMENTS: readonly Requirement[] = [
  frame("error.json", "a frame that is not JSON gets an error event, and the session stays", "{ this is no JSON"),
  frame("error.array", "a frame that is no object gets an error event, and the session stays", "[]"),
  frame("error.typeless", "an object without a type gets an error event, and the session stays", '{"event_id":"a"}'),
  {
    id: "error.unknown-event",
    title: "an unknown event type gets an error with the client's event_id, and the session stays",
    level: "MUST",
    source: "error, event_id",
    run: async ({ open }) => {
      const peer = await open();
      return survived(peer, await peer.refusal(peer.send({ type: "nonsense.create" })));
    },
  },
  {
    id: "error.lists-events",
    title: "the refusal of an unknown event type lists the types that are accepted",
    level: "SHOULD",
    source: "error, message",
    run: async ({ open }) => {
      const peer = await open();
      const error = await peer.refusal(peer.send({ type: "nonsense.create" }));
      const message = textAt(error, "error.message");
      const named = ["session.update", "response.create", "input_audio_buffer.append"];
      expect(
        named.every((type) => message.includes(type)),
        `a message that names ${named.join(", ")}`,
        message,
      );
      return "the accepted types";
    },
  },
  {
    id: "error.unknown-field",
    title: "an unknown field is refused, with param or message naming it, and never ignored",
    level: "MUST",
    source: "error, param",
    run: async ({ open }) => {
      const peer = await open();
      const session = { type: "realtime", nonsense_level: 3 };
      const error = await peer.refusal(peer.send({ type: "session.update", session }));
      const named = `${textAt(error, "error.param")} ${textAt(error, "error.message")}`;
      expect(named.includes("nonsense_level"), "an error that names nonsense_level", named.trim());
      return survived(peer, error);
    },
  },
  {
    id: "error.bad-value",
    title: "a value of the wrong type is refused, with param naming the field",
    level: "MUST",
    source: "error, param",
    run: async ({ open }) => {
      const peer = await open();
      const session = { type: "realtime", output_modalities: "loud" };
      const error = await peer.refusal(peer.send({ type: "session.update", session }));
      const param = at(error, "error.param");
      expect(String(param).includes("output_modalities"), "param session.output_modalities", `param ${shown(param)}`);
      return survived(peer, error);
    },
  },
  {
    id: "error.missing-field",
    title: "a required field that is missing is refused with the client's event_id",
    level: "MUST",
    source: "conversation.item.retrieve, item_id",
    run: async ({ open }) => {
      const peer = await open();
      return survived(peer, await peer.refusal(peer.send({ type: "conversation.item.retrieve" })));
    },
  },
  append("error.base64", "audio that is not base64 is refused with the client's event_id", "%%%not base64%%%"),
  append(
    "error.odd-bytes",
    "PCM16 audio of an odd number of bytes is refused with the client's event_id",
    bytesToBase64(new Uint8Array(4801)),
  ),
];
