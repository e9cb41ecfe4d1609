/** OpenAI's own client against our calls: `client.realtime.calls` as it is on npm. */
import OpenAI, { APIError, NotFoundError } from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../../src/server/server.ts";
import type { TalkingEngine } from "../support/talking-engine.ts";
import { allCallsEnded, talkingServer } from "../support/talking-server.ts";
import { WebRtcPeer } from "../support/webrtc-peer.ts";

let server: Server;
let engine: TalkingEngine;
let client: OpenAI;
beforeAll(async () => {
  ({ server, engine } = await talkingServer({ apiKey: "secret" }));
  client = new OpenAI({ apiKey: "secret", baseURL: `${server.url}/v1`, maxRetries: 0 });
});
afterAll(() => server[Symbol.asyncDispose]());

const peers: WebRtcPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await allCallsEnded(engine);
});

/** The client makes no calls itself: browsers do. */
async function call(): Promise<{ peer: WebRtcPeer; callId: string }> {
  const peer = new WebRtcPeer();
  peers.push(peer);
  const response = await fetch(`${server.url}/v1/realtime/calls`, {
    method: "POST",
    headers: { Authorization: "Bearer secret", "Content-Type": "application/sdp" },
    body: await peer.offer(),
  });
  await peer.accept(await response.text());
  await peer.event("session.created");
  return { peer, callId: response.headers.get("Location")!.split("/").at(-1)! };
}

const failure = async (promise: Promise<unknown>): Promise<unknown> => promise.then(() => null).catch((error) => error);

describe("client.realtime.calls", () => {
  it("hangs up a call, once", async () => {
    const { peer, callId } = await call();
    await client.realtime.calls.hangup(callId);
    await peer.until(() => peer.closed);
    const again = await failure(client.realtime.calls.hangup(callId));
    expect(again).toBeInstanceOf(NotFoundError);
    expect(again).toMatchObject({ code: "not_found", type: "invalid_request_error" });
    expect((again as Error).message).toMatch(new RegExp(`There is no call ${callId}`));
  });

  // Telephone calls are announced by a webhook and then answered; here is no telephone, and no such call to answer.
  it("is told that there are no telephone calls to accept, refer or reject, and what works instead", async () => {
    const { peer, callId } = await call();
    const { calls } = client.realtime;
    for (const attempt of [
      calls.accept(callId, { type: "realtime" }),
      calls.refer(callId, { target_uri: "tel:+14155550123" }),
      calls.reject(callId),
    ]) {
      const error = await failure(attempt);
      expect(error).toBeInstanceOf(APIError);
      expect(error).toMatchObject({ status: 501, code: "not_implemented", type: "invalid_request_error" });
      expect((error as Error).message).toMatch(/telephone calls \(SIP\).*hangup/);
    }
    // The call is as it was.
    peer.send({ type: "session.update", session: { type: "realtime", instructions: "Be brief." } });
    await peer.event("session.updated");
  });

  it("is told that its key is wrong", async () => {
    const stranger = client.withOptions({ apiKey: "wrong" });
    expect(await failure(stranger.realtime.calls.hangup("rtc_1"))).toMatchObject({
      status: 401,
      code: "invalid_api_key",
    });
  });
});
