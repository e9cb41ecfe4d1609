/** Responses: their order, their ends, and what a client may ask of one. */
import type { Peer } from "../peer.ts";
import type { Requirement } from "../requirement.ts";
import { expect, Skipped, Unmet } from "../unmet.ts";
import { at, shown, textAt, typesOf, type WireEvent } from "../wire.ts";
import { begin, expectOwnEnd, finish, LONG, type Said, say } from "./saying.ts";

const AUDIO_ORDER: readonly string[] = [
  "response.created",
  "response.output_item.added",
  "conversation.item.added",
  "response.content_part.added",
  "deltas",
  "response.output_audio.done",
  "response.output_audio_transcript.done",
  "response.content_part.done",
  "response.output_item.done",
  "conversation.item.done",
  "response.done",
];
const TEXT_ORDER: readonly string[] = AUDIO_ORDER.flatMap((type) => {
  if (type === "response.output_audio.done") return ["response.output_text.done"];
  return type === "response.output_audio_transcript.done" ? [] : [type];
});
const DELTAS: readonly string[] = [
  "response.output_audio.delta",
  "response.output_audio_transcript.delta",
  "response.output_text.delta",
];

/** The steps of the first message of a response; deltas in a row are one step. */
function stepsOf(said: Said): string[] {
  const itemId = textAt(
    said.events.find((event) => event.type === "response.output_item.added"),
    "item.id",
  );
  const isOurs = (event: WireEvent): boolean =>
    [textAt(event, "item_id"), textAt(event, "item.id")].includes(itemId) || textAt(event, "response.id") === said.id;
  const steps = said.events.filter(isOurs).map(({ type }) => (DELTAS.includes(type) ? "deltas" : type));
  return steps.filter((step, index) => step !== "deltas" || steps[index - 1] !== "deltas");
}

/** The two ends of an item may come either way round: OpenAI's own documents show both. */
function expectOrder(said: Said, order: readonly string[]): string {
  const steps = stepsOf(said);
  const ends = [steps.indexOf("response.output_item.done"), steps.indexOf("conversation.item.done")].sort(
    (a, b) => a - b,
  );
  if (ends[0] !== -1 && ends[1] === (ends[0] as number) + 1) {
    steps.splice(ends[0] as number, 2, "response.output_item.done", "conversation.item.done");
  }
  expect(steps.join() === order.join(), order.join(", "), steps.join(", "));
  return `${said.events.length} events in order`;
}

function expectStatus(done: WireEvent, status: string, reason?: string): void {
  const told = textAt(done, "response.status");
  expect(told === status, `response.done with status ${status}`, `status ${told || "nothing"}`);
  if (reason === undefined) return;
  const why = at(done, "response.status_details.reason");
  expect(why === reason, `status_details.reason ${reason}`, shown(why));
}

const TEXT = { output_modalities: ["text"] } as const;

/** A response that goes on for a while, in text. */
const beginLong = (peer: Peer): Promise<string> => begin(peer, { ...TEXT, instructions: LONG });

/** It is over before anything could be done to it: then nothing can be told. */
function skipIfDone(peer: Peer, mark: number, what: string): void {
  if (peer.of(mark, "response.done").length > 0) throw new Skipped(`the answer was over before ${what}`);
}

const ENDS: readonly Requirement[] = [
  {
    id: "response.audio-order",
    title: "a spoken response opens, fills and closes its parts in order, and each once",
    level: "MUST",
    source: "response.created to response.done",
    run: async ({ open }) => {
      const said = await say(await open(), { output_modalities: ["audio"] });
      expectOwnEnd(said.done);
      return expectOrder(said, AUDIO_ORDER);
    },
  },
  {
    id: "response.text-order",
    title: "a written response opens, fills and closes its parts in order, and each once",
    level: "MUST",
    source: "response.created to response.done, output_modalities",
    run: async ({ open }) => {
      const said = await say(await open(), TEXT);
      expectOwnEnd(said.done);
      return expectOrder(said, TEXT_ORDER);
    },
  },
  {
    id: "response.audio",
    title: "a spoken response carries audio and its transcript, and the done events repeat the deltas joined",
    level: "MUST",
    source: "response.output_audio.delta, response.output_audio_transcript.done",
    run: async ({ open }) => {
      const said = await say(await open(), { output_modalities: ["audio"] });
      expect(said.audioMs > 0 && said.audio.length % 2 === 0, "audio in whole samples", `${said.audio.length} bytes`);
      const joined = deltasOf(said, "response.output_audio_transcript.delta");
      const whole = textAt(last(said, "response.output_audio_transcript.done"), "transcript");
      expect(
        joined !== "" && joined === whole,
        "the transcript's deltas joined",
        `${whole.length} of ${joined.length} characters`,
      );
      const item = textAt(said.done, "response.output.0.content.0.transcript");
      expect(item === whole, "the same transcript in response.done", `${item.length} characters`);
      return `${Math.round(said.audioMs)} ms of audio, ${whole.length} characters`;
    },
  },
  {
    id: "response.text",
    title: "a written response carries no audio, and the done events repeat the deltas joined",
    level: "MUST",
    source: "response.output_text.delta, response.output_text.done",
    run: async ({ open }) => {
      const said = await say(await open(), TEXT);
      expect(said.audio.length === 0, "no audio", `${said.audio.length} bytes`);
      const joined = deltasOf(said, "response.output_text.delta");
      const whole = textAt(last(said, "response.output_text.done"), "text");
      expect(joined !== "" && joined === whole, "the deltas joined", `${whole.length} of ${joined.length} characters`);
      return `${whole.length} characters`;
    },
  },
  {
    id: "response.created",
    title: "response.created tells the response in progress, with its conversation and without usage",
    level: "MUST",
    source: "response.created",
    run: async ({ open }) => {
      const said = await say(await open(), TEXT);
      const created = said.events.find((event) => event.type === "response.created");
      const status = at(created, "response.status");
      expect(status === "in_progress", "status in_progress", shown(status));
      expect(textAt(created, "response.conversation_id") !== "", "a conversation_id", "none");
      expect((at(created, "response.usage") ?? null) === null, "no usage yet", shown(at(created, "response.usage")));
      return "in_progress";
    },
  },
  {
    id: "response.usage",
    title: "response.done carries usage whose parts add up",
    level: "MUST",
    source: "response.done, usage",
    run: async ({ open }) => {
      const said = await say(await open(), TEXT);
      const usage = at(said.done, "response.usage");
      const [total, input, output] = ["total_tokens", "input_tokens", "output_tokens"].map((key) =>
        Number(at(usage, key)),
      );
      expect(
        total === Number(input) + Number(output) && Number(output) > 0,
        "total_tokens = input_tokens + output_tokens",
        shown(usage),
      );
      const parts = ["text_tokens", "audio_tokens"].map((key) => Number(at(usage, `output_token_details.${key}`) ?? 0));
      expect(
        parts.reduce((a, b) => a + b, 0) === output,
        "output_token_details that add up to output_tokens",
        shown(usage),
      );
      return `${total} = ${input} + ${output}`;
    },
  },
  {
    id: "response.max-tokens",
    title: "max_output_tokens ends a response as incomplete, with the reason",
    level: "MUST",
    source: "response.create, max_output_tokens; response.done, status_details",
    run: async ({ open }) => {
      const said = await say(await open(), { ...TEXT, instructions: LONG, max_output_tokens: 3 });
      expectStatus(said.done, "incomplete", "max_output_tokens");
      return "incomplete, max_output_tokens";
    },
  },
  {
    id: "response.cancel",
    title: "response.cancel ends the response as cancelled, with every open part closed first",
    level: "MUST",
    source: "response.cancel; response.done, status_details",
    run: async ({ open }) => {
      const peer = await open();
      const mark = peer.mark;
      const id = await beginLong(peer);
      await peer.nextOf(["response.output_text.delta", "response.done"]);
      skipIfDone(peer, mark, "it could be cancelled");
      peer.send({ type: "response.cancel" });
      const said = await finish(peer, id, mark);
      if (at(said.done, "response.status") === "completed")
        throw new Skipped("the answer was over before it was cancelled");
      expectStatus(said.done, "cancelled", "client_cancelled");
      expectOrder(said, TEXT_ORDER);
      return "cancelled, client_cancelled";
    },
  },
  {
    id: "response.cancel-ends",
    title: "after a cancelled response is done, nothing more of it comes, and the next one can begin",
    level: "MUST",
    source: "response.cancel",
    run: async ({ open }) => {
      const peer = await open();
      const id = await beginLong(peer);
      peer.send({ type: "response.cancel", response_id: id });
      await peer.next("response.done");
      const mark = peer.mark;
      await say(peer, TEXT);
      const late = peer
        .since(mark)
        .filter((event) => event["response_id"] === id || textAt(event, "response.id") === id);
      expect(late.length === 0, "nothing of the cancelled response", typesOf(late));
      return "the next response";
    },
  },
  {
    id: "response.cancel-nothing",
    title: "response.cancel without a response is an error with the client's event_id, and the session stays",
    level: "MUST",
    source: "response.cancel: an error where there is nothing to cancel",
    run: async ({ open }) => {
      const peer = await open();
      const error = await peer.refusal(peer.send({ type: "response.cancel" }));
      await peer.fence();
      return textAt(error, "error.message");
    },
  },
  {
    id: "response.second",
    title: "a second response.create is refused as conversation_already_has_active_response; the first goes on",
    level: "MUST",
    source: "response.create; error, code",
    run: async ({ open }) => {
      const peer = await open();
      const mark = peer.mark;
      const id = await beginLong(peer);
      const second = peer.send({ type: "response.create" });
      const answer = await peer.nextOf(["error", "response.done"]);
      if (answer.type === "response.done")
        throw new Skipped("the first answer was over before the second could be asked for");
      const named = textAt(answer, "error.event_id");
      expect(named === second, `the error's event_id to be ${second}`, named || "none");
      const code = textAt(answer, "error.code");
      expect(
        code === "conversation_already_has_active_response",
        "code conversation_already_has_active_response",
        code,
      );
      peer.send({ type: "response.cancel" });
      await finish(peer, id, mark);
      expect(
        peer.of(mark, "response.created").length === 1,
        "one response",
        typesOf(peer.of(mark, "response.created")),
      );
      return code;
    },
  },
];

const WISHES: readonly Requirement[] = [
  {
    id: "response.out-of-band",
    title: "a response with conversation none adds nothing to the conversation and names none",
    level: "MUST",
    source: "response.create, conversation",
    run: async ({ open }) => {
      const said = await say(await open(), { ...TEXT, conversation: "none" });
      const conversation = at(said.done, "response.conversation_id") ?? null;
      expect(conversation === null, "no conversation_id", shown(conversation));
      const items = said.events.filter((event) => event.type.startsWith("conversation.item"));
      expect(items.length === 0, "no conversation.item events", typesOf(items));
      expect(deltasOf(said, "response.output_text.delta") !== "", "an answer", "none");
      return "an answer, and the conversation untouched";
    },
  },
  {
    id: "response.beside",
    title: "a response with conversation none may run beside another",
    level: "MUST",
    source: "response.create, conversation",
    run: async ({ open }) => {
      const peer = await open();
      const mark = peer.mark;
      await beginLong(peer);
      const metadata = { beside: "yes" };
      peer.send({
        type: "response.create",
        response: { ...TEXT, conversation: "none", metadata, max_output_tokens: 8 },
      });
      const created = await peer.next(
        "response.created",
        (event) => textAt(event, "response.metadata.beside") === "yes",
      );
      skipIfDone(peer, mark, "another could begin");
      const id = textAt(created, "response.id");
      await peer.next("response.done", (event) => textAt(event, "response.id") === id);
      return "both";
    },
  },
  {
    id: "response.metadata",
    title: "metadata comes back in response.created and response.done",
    level: "MUST",
    source: "response.create, metadata",
    run: async ({ open }) => {
      const metadata = { topic: "check", number: "7" };
      const said = await say(await open(), { ...TEXT, metadata });
      const created = said.events.find((event) => event.type === "response.created");
      for (const event of [created, said.done]) {
        const told = at(event, "response.metadata");
        expect(JSON.stringify(told) === JSON.stringify(metadata), shown(metadata), shown(told));
      }
      return shown(metadata);
    },
  },
  {
    id: "response.input",
    title: "input takes items and references, and an unknown reference is refused",
    level: "MUST",
    source: "response.create, input",
    run: async ({ open }) => {
      const peer = await open();
      const item = { id: "check_a", type: "message", role: "user", content: [{ type: "input_text", text: "Hello." }] };
      peer.send({ type: "conversation.item.create", item });
      await peer.next("conversation.item.done");
      const message = { type: "message", role: "user", content: [{ type: "input_text", text: "Say hello." }] };
      const wish = (id: string): object => ({
        ...TEXT,
        conversation: "none",
        input: [{ type: "item_reference", id }, message],
      });
      await say(peer, wish("check_a"));
      const error = await peer.refusal(peer.send({ type: "response.create", response: wish("check_none") }));
      return textAt(error, "error.message");
    },
  },
  {
    id: "response.own-settings",
    title: "what one response asks for leaves the session's configuration as it was",
    level: "MUST",
    source: "response.create: overrides are for this response only",
    run: async ({ open }) => {
      const peer = await open({ instructions: "Be brief." });
      const said = await say(peer, { ...TEXT, max_output_tokens: 50 });
      const modalities = at(said.done, "response.output_modalities");
      expect(JSON.stringify(modalities) === '["text"]', 'response.output_modalities ["text"]', shown(modalities));
      const session = at(await peer.fence(), "session");
      const kept = [at(session, "instructions"), at(session, "output_modalities"), at(session, "max_output_tokens")];
      expect(
        JSON.stringify(kept) === JSON.stringify(["Be brief.", ["audio"], "inf"]),
        "the session as before",
        shown(kept),
      );
      return "the session as before";
    },
  },
  {
    id: "response.session-modality",
    title: "output_modalities of the session hold for its responses",
    level: "MUST",
    source: "session.update, output_modalities",
    run: async ({ open }) => {
      const said = await say(await open(TEXT), {});
      if (deltasOf(said, "response.output_text.delta") === "") throw new Unmet("text", typesOf(said.events));
      expect(said.audio.length === 0, "no audio", `${said.audio.length} bytes`);
      return "text";
    },
  },
];

export const RESPONSE_REQUIREMENTS: readonly Requirement[] = [...ENDS, ...WISHES];

const last = (said: Said, type: string): WireEvent | undefined => said.events.findLast((event) => event.type === type);

function deltasOf(said: Said, type: string): string {
  const deltas = said.events.filter((event) => event.type === type && event["response_id"] === said.id);
  return deltas.map((event) => textAt(event, "delta")).join("");
}
