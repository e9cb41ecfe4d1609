/** Who speaks while somebody else does. */
import { type Peer, pcm16Speech } from "../peer.ts";
import type { Check, Requirement } from "../requirement.ts";
import { expect, Skipped } from "../unmet.ts";
import { at, shown, textAt } from "../wire.ts";
import { begin, expectOwnEnd, finish, LONG, type Said } from "./saying.ts";

const session = (interrupt_response: boolean): object => ({
  audio: {
    input: {
      transcription: { model: "whisper-1" },
      turn_detection: { type: "server_vad", interrupt_response, create_response: interrupt_response },
    },
  },
});

/** Speaks over an answer that has just begun, and waits for that answer's end. */
async function speakOver({ question }: Check, peer: Peer, response: object): Promise<Said> {
  const mark = peer.mark;
  const id = await begin(peer, { instructions: LONG, ...response });
  await peer.say(pcm16Speech(question.pcm), { afterMs: 1500 });
  const first = await peer.nextOf(["input_audio_buffer.speech_started", "response.done"]);
  if (first.type === "response.done") throw new Skipped("the answer was over before the speech was noticed");
  return await finish(peer, id, mark);
}

export const TALK_REQUIREMENTS: readonly Requirement[] = [
  {
    id: "talk.interrupted",
    title: "speech over an answer ends it as cancelled, with the reason turn_detected",
    level: "MUST",
    source: "turn_detection, interrupt_response; response.done, status_details",
    run: async (check) => {
      const { done } = await speakOver(check, await check.open(session(true)), {});
      const told = [at(done, "response.status"), at(done, "response.status_details.reason")];
      expect(told.join() === "cancelled,turn_detected", "cancelled, turn_detected", shown(told));
      return "cancelled, turn_detected";
    },
  },
  {
    id: "talk.next",
    title: "what interrupted an answer is answered by the next response",
    level: "MUST",
    source: "turn_detection, create_response",
    run: async (check) => {
      const peer = await check.open(session(true));
      const { id } = await speakOver(check, peer, {});
      const next = textAt(await peer.next("response.created"), "response.id");
      expect(next !== id, "another response", "the same one again");
      return "another response";
    },
  },
  {
    id: "talk.uninterrupted",
    title: "with interrupt_response false an answer goes on under speech",
    level: "MUST",
    source: "turn_detection, interrupt_response",
    run: async (check) => {
      const peer = await check.open(session(false));
      const { done } = await speakOver(check, peer, { output_modalities: ["text"], max_output_tokens: 200 });
      expectOwnEnd(done);
      return textAt(done, "response.status");
    },
  },
];
