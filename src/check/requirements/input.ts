/** The user's side: speech found by the server, what becomes of it, and push to talk. */
import { type Peer, pcm16Speech } from "../peer.ts";
import type { Check, Requirement } from "../requirement.ts";
import { expect } from "../unmet.ts";
import { at, shown, textAt, typesOf, type WireEvent } from "../wire.ts";
import { expectOwnEnd, say } from "./saying.ts";

const BEFORE_MS = 1000;
const AFTER_MS = 1500;
const PADDING_MS = 300;
const SILENCE_MS = 500;
/** Detectors look at frames of 10 to 32 ms, several of them before they are sure, and no two agree on a word's edge. */
const EDGE_MS = 400;
/** The same speech at another place of the stream meets the detector's frames at another phase. */
const PHASE_MS = 100;

const TRANSCRIPTION = { model: "whisper-1" };
const TURN_DETECTION = { type: "server_vad", prefix_padding_ms: PADDING_MS, silence_duration_ms: SILENCE_MS };
/** Detection without answers. */
const LISTEN = {
  audio: { input: { transcription: TRANSCRIPTION, turn_detection: { ...TURN_DETECTION, create_response: false } } },
};
const PUSH_TO_TALK = { audio: { input: { transcription: TRANSCRIPTION, turn_detection: null } } };

/** For answers that the server gives of its own accord. */
const BRIEF = { output_modalities: ["text"], instructions: "Be brief.", max_output_tokens: 120 };

/** The least that the API takes. */
const IDLE_MS = 5000;

const TRANSCRIBED = "conversation.item.input_audio_transcription.completed";

/** Says the question with silence around it, and waits for its transcript. */
async function speak({ question }: Check, peer: Peer): Promise<Turn> {
  const mark = peer.mark;
  const fromMs = peer.sentMs + BEFORE_MS;
  await peer.say(pcm16Speech(question.pcm), { beforeMs: BEFORE_MS, afterMs: AFTER_MS });
  const started = await peer.next("input_audio_buffer.speech_started");
  const stopped = await peer.next("input_audio_buffer.speech_stopped");
  const committed = await peer.next("input_audio_buffer.committed");
  const id = textAt(committed, "item_id");
  const transcribed = await peer.next(TRANSCRIBED, (event) => event["item_id"] === id);
  return { started, stopped, committed, transcribed, id, events: peer.since(mark), fromMs };
}

interface Turn {
  readonly started: WireEvent;
  readonly stopped: WireEvent;
  readonly committed: WireEvent;
  readonly transcribed: WireEvent;
  readonly id: string;
  readonly events: readonly WireEvent[];
  /** Where the speech begins, in milliseconds of what was sent. */
  readonly fromMs: number;
}

function expectWithin(what: string, value: unknown, fromMs: number, toMs: number): number {
  const range = `${what} from ${Math.round(fromMs)} to ${Math.round(toMs)}`;
  expect(typeof value === "number" && value >= fromMs && value <= toMs, range, shown(value));
  return value;
}

const DETECTION: readonly Requirement[] = [
  {
    id: "input.start",
    title: "speech_started tells where the speech begins in what was sent, less the padding",
    level: "MUST",
    source: "input_audio_buffer.speech_started, audio_start_ms",
    run: async (check) => {
      const { started, fromMs } = await speak(check, await check.open(LISTEN));
      const from = fromMs - PADDING_MS - EDGE_MS;
      return `${expectWithin("audio_start_ms", at(started, "audio_start_ms"), from, fromMs + EDGE_MS)} ms of ${fromMs}`;
    },
  },
  {
    id: "input.stop",
    title: "speech_stopped tells where the speech ends in what was sent, with at most the silence that ends it",
    level: "MUST",
    source: "input_audio_buffer.speech_stopped, audio_end_ms",
    run: async (check) => {
      const { stopped, fromMs } = await speak(check, await check.open(LISTEN));
      const endMs = fromMs + check.question.ms;
      const found = expectWithin(
        "audio_end_ms",
        at(stopped, "audio_end_ms"),
        endMs - EDGE_MS,
        endMs + SILENCE_MS + EDGE_MS,
      );
      return `${found} ms of ${Math.round(endMs)}`;
    },
  },
  {
    id: "input.clock",
    title: "times count what was sent since the session began: the same speech later is as much later",
    level: "MUST",
    source: "input_audio_buffer.speech_started: from the start of all audio written to the buffer",
    run: async (check) => {
      const peer = await check.open(LISTEN);
      const [a, b] = [await speak(check, peer), await speak(check, peer)];
      const apart = Number(at(b.started, "audio_start_ms")) - Number(at(a.started, "audio_start_ms"));
      const should = b.fromMs - a.fromMs;
      expectWithin("a second start later by milliseconds", apart, should - PHASE_MS, should + PHASE_MS);
      return `${apart} ms later, sent ${Math.round(should)} ms later`;
    },
  },
  {
    id: "input.silence",
    title: "silence is not speech",
    level: "MUST",
    source: "turn_detection, threshold",
    run: async (check) => {
      const peer = await check.open(LISTEN);
      await peer.say(pcm16Speech(new Float32Array(48_000)));
      await peer.fence();
      const speech = peer.of(0, "input_audio_buffer.speech_started", "input_audio_buffer.committed");
      expect(speech.length === 0, "nothing", typesOf(speech));
      return "nothing";
    },
  },
  {
    id: "input.no-answer",
    title: "input_audio_buffer.append is not answered",
    level: "MUST",
    source: "input_audio_buffer.append: the server sends no confirmation",
    run: async (check) => {
      const peer = await check.open(LISTEN);
      const mark = peer.mark;
      peer.append(pcm16Speech(new Float32Array(2400)));
      await peer.fence();
      const types = typesOf(peer.since(mark));
      expect(types === "session.updated", "nothing but the answer to the next event", types);
      return "nothing";
    },
  },
  {
    id: "input.turn",
    title: "a turn is told in order: started, stopped, committed, item added, item done, all of one item",
    level: "MUST",
    source: "input_audio_buffer.speech_started to conversation.item.done",
    run: async (check) => {
      const turn = await speak(check, await check.open(LISTEN));
      const order = [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
      ];
      const ours = turn.events.filter((event) => order.includes(event.type));
      expect(typesOf(ours) === order.join(", "), order.join(", "), typesOf(ours));
      const ids = ours.map((event) => textAt(event, "item_id") || textAt(event, "item.id"));
      expect(
        ids.every((id) => id === turn.id),
        `item ${turn.id} in all of them`,
        shown(ids),
      );
      const item = [at(ours[3], "item.role"), at(ours[3], "item.content.0.type")];
      expect(item.join() === "user,input_audio", "a user's item with input_audio", shown(item));
      return typesOf(ours);
    },
  },
  {
    id: "input.chain",
    title: "committed names the item before by previous_item_id, null for the first",
    level: "MUST",
    source: "input_audio_buffer.committed, previous_item_id",
    run: async (check) => {
      const peer = await check.open(LISTEN);
      const [a, b] = [await speak(check, peer), await speak(check, peer)];
      const told = [at(a.committed, "previous_item_id"), at(b.committed, "previous_item_id")];
      expect(JSON.stringify(told) === JSON.stringify([null, a.id]), shown([null, a.id]), shown(told));
      return shown(told);
    },
  },
  {
    id: "input.transcript",
    title: "speech is transcribed under its item's id, with usage",
    level: "MUST",
    source: TRANSCRIBED,
    run: async (check) => {
      const { transcribed } = await speak(check, await check.open(LISTEN));
      const transcript = textAt(transcribed, "transcript");
      expect(transcript.trim() !== "", "words", "an empty transcript");
      expect(at(transcribed, "content_index") === 0, "content_index 0", shown(at(transcribed, "content_index")));
      const usage = at(transcribed, "usage.type");
      expect(usage === "tokens" || usage === "duration", "usage of type tokens or duration", shown(usage));
      return `${transcript.length} characters`;
    },
  },
  {
    id: "input.transcript-deltas",
    title: "transcript deltas come before completed, whose transcript begins with them",
    level: "SHOULD",
    source: "conversation.item.input_audio_transcription.delta",
    run: async (check) => {
      const turn = await speak(check, await check.open(LISTEN));
      const type = "conversation.item.input_audio_transcription.delta";
      const deltas = turn.events.filter((event) => event.type === type && event["item_id"] === turn.id);
      const joined = deltas
        .map((event) => textAt(event, "delta"))
        .join("")
        .trim();
      expect(deltas.length > 0, "at least one delta", "none");
      const transcript = textAt(turn.transcribed, "transcript").trim();
      expect(transcript.startsWith(joined), "a transcript that begins with the deltas", "another beginning");
      return `${deltas.length} before the whole`;
    },
  },
  {
    id: "input.untranscribed",
    title: "with transcription null there are no transcription events, and the turn is answered all the same",
    level: "MUST",
    source: "session.update, audio.input.transcription",
    run: async (check) => {
      const input = { transcription: null, turn_detection: TURN_DETECTION };
      const peer = await check.open({ ...BRIEF, audio: { input } });
      await peer.say(pcm16Speech(check.question.pcm), { afterMs: AFTER_MS });
      expectOwnEnd(await peer.next("response.done"));
      const told = peer.events.filter(({ type }) => type.includes("input_audio_transcription"));
      expect(told.length === 0, "no transcription events", typesOf(told));
      return "an answer";
    },
  },
  {
    id: "input.answered",
    title: "a turn is answered by a response that nobody asked for",
    level: "MUST",
    source: "turn_detection, create_response",
    run: async (check) => {
      const input = { transcription: TRANSCRIPTION, turn_detection: TURN_DETECTION };
      const peer = await check.open({ ...BRIEF, audio: { input } });
      await peer.say(pcm16Speech(check.question.pcm), { afterMs: AFTER_MS });
      await peer.next("input_audio_buffer.committed");
      const done = await peer.next("response.done");
      expectOwnEnd(done);
      return "a response";
    },
  },
  {
    id: "input.idle",
    title: "idle_timeout_ms after an answer the silence is told, committed, and answered",
    level: "SHOULD",
    source: "turn_detection, idle_timeout_ms; input_audio_buffer.timeout_triggered",
    run: async ({ open }) => {
      const turn_detection = { type: "server_vad", idle_timeout_ms: IDLE_MS };
      const peer = await open({ ...BRIEF, audio: { input: { turn_detection } } });
      await say(peer, {});
      const timeout = await peer.next("input_audio_buffer.timeout_triggered");
      const committed = await peer.next("input_audio_buffer.committed");
      const ids = [textAt(timeout, "item_id"), textAt(committed, "item_id")];
      expect(ids[0] === ids[1], "one item_id in timeout_triggered and committed", shown(ids));
      await peer.next("response.created");
      return "told, committed, answered";
    },
  },
  {
    id: "input.unanswered",
    title: "with create_response false a turn is not answered until the client asks",
    level: "MUST",
    source: "turn_detection, create_response",
    run: async (check) => {
      const peer = await check.open(LISTEN);
      const turn = await speak(check, peer);
      await peer.fence();
      const answers = peer.of(0, "response.created");
      expect(answers.length === 0, "no response", typesOf(answers));
      await say(peer, { output_modalities: ["text"] });
      return `nothing after ${turn.events.length} events, then the one that was asked for`;
    },
  },
];

const PUSH: readonly Requirement[] = [
  {
    id: "push.commit",
    title: "without detection a commit makes one item of the user's, and no response",
    level: "MUST",
    source: "input_audio_buffer.commit: creates a user message item, and no response",
    run: async (check) => {
      const peer = await check.open(PUSH_TO_TALK);
      const mark = peer.mark;
      await peer.say(pcm16Speech(check.question.pcm));
      peer.send({ type: "input_audio_buffer.commit" });
      const id = textAt(await peer.next("input_audio_buffer.committed"), "item_id");
      await peer.next("conversation.item.done", (event) => textAt(event, "item.id") === id);
      await peer.next(TRANSCRIBED);
      await peer.fence();
      const wrong = peer.of(mark, "response.created", "input_audio_buffer.speech_started");
      expect(wrong.length === 0, "neither detection nor response", typesOf(wrong));
      expect(peer.of(mark, "conversation.item.added").length === 1, "one item", typesOf(peer.since(mark)));
      return "one item";
    },
  },
  {
    id: "push.answer",
    title: "after a commit, response.create answers it",
    level: "MUST",
    source: "input_audio_buffer.commit, response.create",
    run: async (check) => {
      const peer = await check.open(PUSH_TO_TALK);
      await peer.say(pcm16Speech(check.question.pcm));
      peer.send({ type: "input_audio_buffer.commit" });
      const { done } = await say(peer, { output_modalities: ["text"] });
      expectOwnEnd(done);
      return "a response";
    },
  },
  {
    id: "push.too-short",
    title: "a commit of less than 100 ms is refused, and the error says how many milliseconds there were",
    level: "MUST",
    source: "input_audio_buffer.commit: an error where the buffer is empty",
    run: async (check) => {
      const peer = await check.open(PUSH_TO_TALK);
      peer.append(pcm16Speech(new Float32Array(24 * 43)));
      const error = await peer.refusal(peer.send({ type: "input_audio_buffer.commit" }));
      const code = textAt(error, "error.code");
      expect(code === "input_audio_buffer_commit_empty", "code input_audio_buffer_commit_empty", code || "none");
      const message = textAt(error, "error.message");
      expect(message.includes("43"), "a message that names 43 ms", message);
      return message;
    },
  },
  {
    id: "push.empty",
    title: "a commit of nothing is refused, and the session stays",
    level: "MUST",
    source: "input_audio_buffer.commit: an error where the buffer is empty",
    run: async (check) => {
      const peer = await check.open(PUSH_TO_TALK);
      const error = await peer.refusal(peer.send({ type: "input_audio_buffer.commit" }));
      await peer.fence();
      return textAt(error, "error.message");
    },
  },
  {
    id: "push.clear",
    title: "input_audio_buffer.clear is answered by cleared, and nothing is left to commit",
    level: "MUST",
    source: "input_audio_buffer.clear, input_audio_buffer.cleared",
    run: async (check) => {
      const peer = await check.open(PUSH_TO_TALK);
      await peer.say(pcm16Speech(check.question.pcm));
      peer.send({ type: "input_audio_buffer.clear" });
      await peer.next("input_audio_buffer.cleared");
      await peer.refusal(peer.send({ type: "input_audio_buffer.commit" }));
      return "cleared, and an empty buffer";
    },
  },
];

export const INPUT_REQUIREMENTS: readonly Requirement[] = [...DETECTION, ...PUSH];
