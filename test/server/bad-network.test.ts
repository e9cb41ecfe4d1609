import { expect, it } from "vitest";
import { BadNetwork } from "../support/bad-network.ts";
import { allCallsEnded, talkingServer } from "../support/talking-server.ts";
import { WebRtcPeer } from "../support/webrtc-peer.ts";

it("holds a conversation where packets are late, lost and out of order", { timeout: 90_000 }, async () => {
  const { server, engine } = await talkingServer();
  const network = new BadNetwork({ delayMs: 50, jitterMs: 40, loss: 0.05 });
  await network.open();
  const peer = new WebRtcPeer();
  try {
    const response = await fetch(`${server.url}/v1/realtime/calls`, {
      method: "POST",
      headers: { "Content-Type": "application/sdp" },
      body: network.offer(await peer.offer()),
    });
    await peer.accept(network.answer(await response.text()));
    await peer.event("session.created", 60_000);
    const content = [{ type: "input_text", text: "Hello" }];
    peer.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
    peer.send({ type: "response.create" });
    await peer.event("output_audio_buffer.started", 60_000);
    await peer.until(() => peer.heard.some(({ samples }) => samples.some((x) => x > 3000)), 60_000);
    peer.send({ type: "output_audio_buffer.clear" });
    await peer.event("output_audio_buffer.cleared", 60_000);
    // Events are never lost, whatever the network: all the words are there, in order.
    const words = peer.events.filter(({ type }) => type === "response.output_audio_transcript.delta");
    expect(words.map((event) => event["delta"]).join("")).toMatch(/word0 word1 .* word29/);
    expect(network.lost).toBeGreaterThan(0);
  } finally {
    peer.close();
    network.close();
  }
  await allCallsEnded(engine);
  await server[Symbol.asyncDispose]();
});
