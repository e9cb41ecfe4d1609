/** The ways in: the model and kind of session that the address names, keys, and short-lived tokens. */
import { type Door, isTurned } from "../line.ts";
import { pcm16Speech } from "../peer.ts";
import type { Check, Requirement } from "../requirement.ts";
import { expect, Skipped, Unmet } from "../unmet.ts";
import { at, shown, textAt, typesOf } from "../wire.ts";

/** The server lets nobody in by this door: by HTTP status, or by an error in place of `session.created`. */
async function refused({ knock }: Check, door: Door): Promise<string> {
  const answer = await knock(door);
  if (isTurned(answer)) {
    expect(answer.httpStatus >= 400 && answer.httpStatus < 500, "an HTTP status of 4xx", `HTTP ${answer.httpStatus}`);
    return `HTTP ${answer.httpStatus}`;
  }
  const first = await answer.nextOf(["error", "session.created"]);
  expect(first.type === "error", "an error in place of the session", typesOf([first]));
  return `${textAt(first, "error.code")}: ${textAt(first, "error.message")}`;
}

const TRANSCRIPTION_DOOR: Door = { query: { intent: "transcription" } };
const SECRET_PREFIX = "ek_";

export const DOOR_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "door.unknown-model",
    title: "a session of a model that is not served is refused",
    level: "MUST",
    source: "wss /v1/realtime?model=",
    run: (check) => refused(check, { query: { model: "check-no-such-model" } }),
  },
  {
    id: "door.transcription",
    title: "intent=transcription opens a transcription session",
    level: "MUST",
    source: "wss /v1/realtime?intent=transcription",
    run: async ({ open }) => {
      const created = (await open(undefined, TRANSCRIPTION_DOOR)).events[0];
      expect(
        at(created, "session.type") === "transcription",
        "session.type transcription",
        shown(at(created, "session.type")),
      );
      const format = at(created, "session.audio.input.format.type");
      expect(format !== undefined, "audio.input.format", "none");
      return "transcription";
    },
  },
  {
    id: "door.transcription-model",
    title: "a transcription session takes model= as well",
    level: "MUST",
    source: "wss /v1/realtime?intent=transcription&model=",
    run: async ({ open }) => {
      const model = textAt((await open()).events[0], "session.model");
      await open(undefined, { query: { intent: "transcription", model } });
      return `model=${model}`;
    },
  },
  {
    id: "door.transcription-speech",
    title: "a transcription session transcribes speech and answers nothing",
    level: "MUST",
    source: "transcription sessions",
    run: async ({ open, question }) => {
      const peer = await open(undefined, TRANSCRIPTION_DOOR);
      await peer.update({ audio: { input: { transcription: { model: "whisper-1" } } } });
      await peer.say(pcm16Speech(question.pcm), { afterMs: 1500 });
      const completed = await peer.next("conversation.item.input_audio_transcription.completed");
      expect(textAt(completed, "transcript").trim() !== "", "words", "an empty transcript");
      await peer.fence();
      expect(peer.of(0, "response.created").length === 0, "no response", "one");
      return `${textAt(completed, "transcript").length} characters`;
    },
  },
  {
    id: "door.transcription-response",
    title: "response.create in a transcription session is refused, and the session stays",
    level: "SHOULD",
    source: "transcription sessions",
    run: async ({ open }) => {
      const peer = await open(undefined, TRANSCRIPTION_DOOR);
      const error = await peer.refusal(peer.send({ type: "response.create" }));
      await peer.fence();
      return textAt(error, "error.message");
    },
  },
  {
    id: "door.subprotocol",
    title: "a browser brings its key as a subprotocol, and the server chooses the subprotocol realtime",
    level: "MUST",
    source: "WebSocket subprotocols realtime, openai-insecure-api-key.KEY",
    run: async ({ open }) => {
      const peer = await open(undefined, { keyIn: "subprotocol" });
      expect(peer.subprotocol === "realtime", "subprotocol realtime", peer.subprotocol || "none");
      return "realtime";
    },
  },
  {
    id: "door.wrong-key",
    title: "a wrong key is refused",
    level: "MUST",
    source: "Authorization: Bearer",
    run: async (check) => {
      if (!check.target.hasKey) throw new Skipped("no --api-key was given: the server may want none");
      return await refused(check, { key: "check-wrong-key" });
    },
  },
  {
    id: "door.client-secret",
    title: "POST client_secrets makes a token that opens a session of the configuration it was made with",
    level: "MUST",
    source: "POST /v1/realtime/client_secrets",
    run: async ({ open, target }) => {
      if (target.post === null) throw new Skipped("this way to the server has no HTTP");
      const session = { type: "realtime", instructions: "Be a check." };
      const { httpStatus, body } = await target.post("client_secrets", { session });
      if (httpStatus !== 200) throw new Unmet("HTTP 200", `HTTP ${httpStatus}`);
      const value = textAt(body, "value");
      expect(value.startsWith(SECRET_PREFIX), `a value that begins with ${SECRET_PREFIX}`, value.slice(0, 3) || "none");
      expect(typeof at(body, "expires_at") === "number", "expires_at in seconds", shown(at(body, "expires_at")));
      expect(
        at(body, "session.instructions") === session.instructions,
        "the session's configuration",
        shown(at(body, "session.instructions")),
      );
      const created = (await open(undefined, { key: value })).events[0];
      const told = at(created, "session.instructions");
      expect(told === session.instructions, "a session with these instructions", shown(told));
      return "a token, and its session";
    },
  },
];
