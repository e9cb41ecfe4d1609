/** The conversation's items: created, placed, read, cut, removed. */
import type { Peer } from "../peer.ts";
import type { Check, Requirement } from "../requirement.ts";
import { expect, Skipped } from "../unmet.ts";
import { at, shown, textAt, typesOf, type WireEvent } from "../wire.ts";
import { say } from "./saying.ts";

/** Adds a message of the user's, and returns its `added`; the `done` has come too. */
async function add(peer: Peer, id: string, previousId?: string): Promise<WireEvent> {
  const item = { id, type: "message", role: "user", content: [{ type: "input_text", text: "Hello." }] };
  peer.send({
    type: "conversation.item.create",
    item,
    ...(previousId === undefined ? {} : { previous_item_id: previousId }),
  });
  const isOurs = (event: WireEvent): boolean => textAt(event, "item.id") === id;
  const added = await peer.next("conversation.item.added", isOurs);
  await peer.next("conversation.item.done", isOurs);
  return added;
}

function expectPrevious(added: WireEvent, previousId: string | null): void {
  const found = at(added, "previous_item_id");
  expect(found === previousId, `previous_item_id ${shown(previousId)}`, shown(found));
}

async function retrieve(peer: Peer, itemId: string): Promise<WireEvent> {
  peer.send({ type: "conversation.item.retrieve", item_id: itemId });
  return await peer.next("conversation.item.retrieved");
}

/** A spoken answer that has ended: its item's id and the milliseconds of its audio. */
async function spoken(check: Check): Promise<{ readonly peer: Peer; readonly itemId: string; readonly ms: number }> {
  const peer = await check.open();
  const said = await say(peer, { output_modalities: ["audio"] });
  const itemId = textAt(said.done, "response.output.0.id");
  if (said.audioMs === 0 || itemId === "") throw new Skipped("the server's answer had no audio to cut");
  return { peer, itemId, ms: said.audioMs };
}

const KINDS: readonly Readonly<Record<string, unknown>>[] = [
  { id: "check_a", type: "message", role: "system", content: [{ type: "input_text", text: "Be brief." }] },
  { id: "check_b", type: "message", role: "user", content: [{ type: "input_text", text: "What time is it?" }] },
  { id: "check_c", type: "message", role: "assistant", content: [{ type: "output_text", text: "Let me see." }] },
  { id: "check_d", type: "function_call", name: "get_time", call_id: "call_a", arguments: "{}" },
  { id: "check_e", type: "function_call_output", call_id: "call_a", output: "noon" },
];

export const ITEM_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "item.create",
    title: "conversation.item.create is answered by added and done, with the client's id",
    level: "MUST",
    source: "conversation.item.create, conversation.item.added, conversation.item.done",
    run: async ({ open }) => {
      const peer = await open();
      const added = await add(peer, "check_a");
      expect(at(added, "item.role") === "user", "the item as it was sent", shown(at(added, "item")));
      expect(textAt(added, "item.content.0.text") === "Hello.", "its text", shown(at(added, "item.content")));
      const done = peer.of(0, "conversation.item.done").at(-1);
      expect(
        at(done, "item.status") === "completed",
        "the item done with status completed",
        shown(at(done, "item.status")),
      );
      return "added, done";
    },
  },
  {
    id: "item.kinds",
    title: "messages of all three roles, function calls and their outputs are taken as they are",
    level: "MUST",
    source: "conversation.item.create, item",
    run: async ({ open }) => {
      const peer = await open();
      for (const item of KINDS) {
        peer.send({ type: "conversation.item.create", item });
        const added = await peer.next("conversation.item.added");
        for (const [key, value] of Object.entries(item)) {
          const found = at(added, `item.${key}`);
          expect(JSON.stringify(found) === JSON.stringify(value), `item.${key} ${shown(value)}`, shown(found));
        }
      }
      return `${KINDS.length} kinds`;
    },
  },
  {
    id: "item.chain",
    title: "previous_item_id names the item before, and null for the first",
    level: "MUST",
    source: "conversation.item.added, previous_item_id",
    run: async ({ open }) => {
      const peer = await open();
      expectPrevious(await add(peer, "check_a"), null);
      expectPrevious(await add(peer, "check_b"), "check_a");
      expectPrevious(await add(peer, "check_c"), "check_b");
      return "null, check_a, check_b";
    },
  },
  {
    id: "item.place",
    title: "previous_item_id puts an item behind another, and root puts it first",
    level: "MUST",
    source: "conversation.item.create, previous_item_id",
    run: async ({ open }) => {
      const peer = await open();
      await add(peer, "check_a");
      await add(peer, "check_b");
      expectPrevious(await add(peer, "check_c", "check_a"), "check_a");
      expectPrevious(await add(peer, "check_d", "root"), null);
      expectPrevious(await add(peer, "check_e"), "check_b");
      return "behind, first, last";
    },
  },
  {
    id: "item.place-unknown",
    title: "an unknown previous_item_id is refused, and nothing is added",
    level: "MUST",
    source: "conversation.item.create, previous_item_id",
    run: async ({ open }) => {
      const peer = await open();
      const item = { id: "check_a", type: "message", role: "user", content: [{ type: "input_text", text: "Hello." }] };
      await peer.refusal(peer.send({ type: "conversation.item.create", previous_item_id: "check_none", item }));
      const error = await peer.refusal(peer.send({ type: "conversation.item.retrieve", item_id: "check_a" }));
      return textAt(error, "error.message");
    },
  },
  {
    id: "item.duplicate",
    title: "an id that is taken is refused",
    level: "SHOULD",
    source: "conversation.item.create, item.id",
    run: async ({ open }) => {
      const peer = await open();
      await add(peer, "check_a");
      const item = { id: "check_a", type: "message", role: "user", content: [{ type: "input_text", text: "Bye." }] };
      const error = await peer.refusal(peer.send({ type: "conversation.item.create", item }));
      return textAt(error, "error.message");
    },
  },
  {
    id: "item.retrieve",
    title: "conversation.item.retrieve is answered with the item",
    level: "MUST",
    source: "conversation.item.retrieve, conversation.item.retrieved",
    run: async ({ open }) => {
      const peer = await open();
      await add(peer, "check_a");
      const retrieved = await retrieve(peer, "check_a");
      expect(textAt(retrieved, "item.content.0.text") === "Hello.", "the item", shown(at(retrieved, "item")));
      return "the item";
    },
  },
  {
    id: "item.delete",
    title: "conversation.item.delete is answered by deleted, and the item is gone",
    level: "MUST",
    source: "conversation.item.delete, conversation.item.deleted",
    run: async ({ open }) => {
      const peer = await open();
      await add(peer, "check_a");
      await add(peer, "check_b");
      peer.send({ type: "conversation.item.delete", item_id: "check_a" });
      const deleted = await peer.next("conversation.item.deleted");
      expect(at(deleted, "item_id") === "check_a", "item_id check_a", shown(at(deleted, "item_id")));
      await peer.refusal(peer.send({ type: "conversation.item.retrieve", item_id: "check_a" }));
      return "deleted, and no longer there";
    },
  },
  {
    id: "item.unknown",
    title: "retrieving, deleting and truncating an unknown item are errors with the client's event_id",
    level: "MUST",
    source: "conversation.item.delete: the server responds with an error where the item does not exist",
    run: async ({ open }) => {
      const peer = await open();
      const item_id = "check_none";
      for (const type of ["conversation.item.retrieve", "conversation.item.delete"]) {
        await peer.refusal(peer.send({ type, item_id }));
      }
      await peer.refusal(peer.send({ type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: 0 }));
      await peer.fence();
      return "three errors";
    },
  },
  {
    id: "item.truncate",
    title: "truncating a spoken answer at 0 ms is taken, told back, and takes its words away",
    level: "MUST",
    source: "conversation.item.truncate, conversation.item.truncated",
    run: async (check) => {
      const { peer, itemId } = await spoken(check);
      peer.send({ type: "conversation.item.truncate", item_id: itemId, content_index: 0, audio_end_ms: 0 });
      const truncated = await peer.next("conversation.item.truncated");
      const told = [at(truncated, "item_id"), at(truncated, "content_index"), at(truncated, "audio_end_ms")];
      expect(JSON.stringify(told) === JSON.stringify([itemId, 0, 0]), "the item, part 0 and 0 ms", shown(told));
      const transcript = textAt(await retrieve(peer, itemId), "item.content.0.transcript");
      expect(transcript === "", "an item without words that were not heard", `${transcript.length} characters`);
      return "truncated, and no words left";
    },
  },
  {
    id: "item.truncate-beyond",
    title: "truncating beyond the end of the audio is an error and changes nothing",
    level: "MUST",
    source: "conversation.item.truncate, audio_end_ms: greater than the actual duration is an error",
    run: async (check) => {
      const { peer, itemId, ms } = await spoken(check);
      const before = JSON.stringify(at(await retrieve(peer, itemId), "item"));
      const beyond = { item_id: itemId, content_index: 0, audio_end_ms: Math.ceil(ms) + 60_000 };
      const error = await peer.refusal(peer.send({ type: "conversation.item.truncate", ...beyond }));
      const after = JSON.stringify(at(await retrieve(peer, itemId), "item"));
      expect(before === after, "the item as it was", "another");
      expect(
        peer.of(0, "conversation.item.truncated").length === 0,
        "no truncated event",
        typesOf(peer.events.slice(-3)),
      );
      return textAt(error, "error.message");
    },
  },
];
