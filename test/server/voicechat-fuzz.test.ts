/** Whatever a client says, in whatever order, its session follows the protocol, and the next one is well. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DUPLEX_LIMITS } from "../../src/conversation/duplex-session.ts";
import { CLIENT_MESSAGE_TYPES } from "../../src/protocol/voicechat/client-messages.ts";
import type { Server } from "../../src/server/server.ts";
import { append, frames, metric, Peer, voiceChatServer } from "../support/voicechat-server.ts";

let server: Server;
beforeAll(async () => {
  server = await voiceChatServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const oddValue = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant(undefined));
const base64 = fc.uint8Array({ maxLength: 4000 }).map((bytes) => Buffer.from(bytes).toString("base64"));
/** Messages as they should be, nearly so, and not at all. */
const message = fc.oneof(
  { weight: 3, arbitrary: fc.nat(3000).map((samples) => append(new Float32Array(samples).fill(0.01))) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("input_audio_buffer.append"),
      audio: fc.oneof(base64, oddValue),
      sample_rate: fc.oneof(fc.constant(16_000), oddValue),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constantFrom(...CLIENT_MESSAGE_TYPES), session: oddValue, pad_partial: oddValue }),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.constant({ type: "session.ping" }) },
);
const update = fc.record({
  type: fc.constant("session.update"),
  session: fc.record(
    {
      system_prompt: fc.string({ unit: "binary", maxLength: 8 }),
      seed: fc.maxSafeNat(),
      max_streaming_seconds: fc.double({ min: 0, max: 1 }),
    },
    { requiredKeys: [] },
  ),
});
const end = fc.constantFrom("commit", "cancel", "goodbye", "vanish");
const session = fc.tuple(fc.array(message, { maxLength: 3 }), update, fc.array(message, { maxLength: 12 }), end);

const ERROR_CODES = ["invalid_request", "session_initialization_failed", "inference_error"];

/** Holds for every session, whatever was said in it. */
function expectProtocol({ heard }: Peer): void {
  expect(heard[0]).toMatchObject({ type: "session.created", session: { state: "configuring" } });
  expect(heard.filter(({ type }) => type === "session.created")).toHaveLength(1);
  expect(heard.filter(({ type }) => type === "session.updated").length).toBeLessThanOrEqual(1);
  const opened = heard.findIndex(({ type }) => type === "session.updated");
  const frameIndices = heard.flatMap(({ type, frame_index }) => (type === "response.audio.delta" ? [frame_index] : []));
  expect(frameIndices).toEqual(frameIndices.map((_, index) => index));
  for (const [index, event] of heard.entries()) {
    if (event.type === "error") expect(ERROR_CODES).toContain((event["error"] as { code: string }).code);
    if ("frame_index" in event) expect(index).toBeGreaterThan(opened);
    const isEnd = event.type === "response.done" || event.type === "response.cancelled";
    if (isEnd) expect([index, event["frame_index"]]).toEqual([heard.length - 1, frameIndices.length]);
  }
}

test("sessions of odd messages", async () => {
  await fc.assert(
    fc.asyncProperty(session, async ([before, opening, during, ending]) => {
      const peer = new Peer(server);
      await peer.until("session.created");
      for (const said of [...before, opening, ...during]) peer.say(JSON.stringify(said) ?? "");
      if (ending === "goodbye") peer.socket.close();
      else if (ending === "vanish") peer.socket.terminate();
      // Of what was said, something may have ended the session already, or the update may have been refused.
      else
        peer.say(
          { type: "session.update" },
          { type: ending === "commit" ? "input_audio_buffer.commit" : "session.cancel" },
        );
      const code = await peer.closed;
      if (ending === "commit" || ending === "cancel") expect(code).toBe(1000);
      expectProtocol(peer);
      await expect.poll(() => metric(server, "antiphon_sessions_open")).toBe(0);
    }),
    { seed: 7, numRuns: 150 },
  );
  const next = await Peer.ready(server);
  next.say(append(frames(2)), { type: "input_audio_buffer.commit" });
  expect(await next.closed).toBe(1000);
  expect(next.of("response.audio.delta")).toHaveLength(2);
  const counted = await metric(server, 'antiphon_audio_seconds_total{direction="input"}');
  expect(counted).toBeGreaterThan(0);
  expect(counted).toBeLessThan(DUPLEX_LIMITS.streamingSecondsMax);
}, 120_000);
