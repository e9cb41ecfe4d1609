/** Asking for an answer, and reading what came of it, without a word about its words. */
import { base64ToBytes } from "../../audio/pcm.ts";
import type { Peer } from "../peer.ts";
import { expect, Skipped, Unmet } from "../unmet.ts";
import { at, textAt, type WireEvent } from "../wire.ts";

/** A model that follows instructions is busy for long with this one, and any model for a while. */
export const LONG = "Count from one to one hundred in words, every number, slowly. Do not stop before one hundred.";
const SHORT = "Say hello in one short sentence.";

export interface Said {
  readonly id: string;
  readonly done: WireEvent;
  /** Everything from `response.created` to `response.done`. */
  readonly events: readonly WireEvent[];
  /** Bytes of its audio, one after another. */
  readonly audio: Uint8Array;
  /** Milliseconds of its audio, as PCM16 at 24,000 Hz. */
  readonly audioMs: number;
}

/** Asks for a response and waits until it has begun. */
export async function begin(peer: Peer, response: object): Promise<string> {
  peer.send({ type: "response.create", response });
  return textAt(await peer.next("response.created"), "response.id");
}

/**
 * Asks for a short response and waits until it is done. Small models do not always find an end: the limit does.
 * @throws {Skipped} where the model had nothing to say.
 */
export async function say(peer: Peer, response: object): Promise<Said> {
  const mark = peer.mark;
  const id = await begin(peer, { instructions: SHORT, max_output_tokens: SHORT_TOKENS_MAX, ...response });
  const said = await finish(peer, id, mark);
  const isEmpty =
    textAt(said.done, "response.status") === "completed" && at(said.done, "response.output.0") === undefined;
  const opened = said.events.some((event) => event.type === "response.output_item.added");
  if (isEmpty && !opened) throw new Skipped("the model had nothing to say this time");
  return said;
}
const SHORT_TOKENS_MAX = 120;

/** Ended neither by anybody nor by a failure: `incomplete` is a model that talks on to the limit. */
export function expectOwnEnd(done: WireEvent): void {
  const status = textAt(done, "response.status");
  expect(
    ["completed", "incomplete"].includes(status),
    "a response that comes to its own end",
    `status ${status || "none"}`,
  );
}

/** Waits for the end of response `id`, whose events began after `mark`. */
export async function finish(peer: Peer, id: string, mark: number): Promise<Said> {
  const done = await peer.next("response.done", (event) => textAt(event, "response.id") === id);
  const events = peer.since(mark).slice(0, peer.since(mark).indexOf(done) + 1);
  const audio = audioOf(events.filter((event) => event["response_id"] === id));
  return { id, done, events, audio, audioMs: audio.length / 48 };
}

/** @throws {Unmet} for a delta that is not base64. */
function audioOf(events: readonly WireEvent[]): Uint8Array {
  const pieces = events
    .filter((event) => event.type === "response.output_audio.delta")
    .map((event) => {
      const bytes = base64ToBytes(textAt(event, "delta"));
      if (bytes === null || bytes.length === 0) throw new Unmet("audio deltas in base64", "something else");
      return bytes;
    });
  return Buffer.concat(pieces);
}
