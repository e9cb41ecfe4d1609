import { Hono } from "hono";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { AuthError, ClientError } from "../../src/errors.ts";
import { Admission } from "../../src/server/admission.ts";
import { type CallOpening, type CallSession, Calls, registerCalls } from "../../src/server/calls.ts";
import type { App } from "../../src/server/routes.ts";
import type { Transport } from "../../src/server/transport.ts";
import { WebRtc } from "../../src/server/webrtc.ts";
import { systemClock } from "../../src/util/clock.ts";
import { countingIds } from "../../src/util/ids.ts";
import { silentLog } from "../../src/util/log.ts";
import { WebRtcPeer } from "../support/webrtc-peer.ts";

/** Says hello, answers each event with its type, tells every attached channel the same. */
class EchoSession implements CallSession {
  readonly transport: Transport;
  readonly #controls: Transport[] = [];
  constructor(transport: Transport) {
    this.transport = transport;
  }
  async run(): Promise<void> {
    this.#say({ type: "session.created" });
    for await (const message of this.transport.incoming) {
      if (message.type === "text") this.#say({ type: `echo.${JSON.parse(message.text).type}` });
    }
  }
  attach(control: Transport): void {
    this.#controls.push(control);
  }
  drain(): void {}
  close(code: number, reason: string): void {
    void this.transport.close(code, reason);
  }
  #say(event: object): void {
    for (const transport of [this.transport, ...this.#controls]) transport.send(JSON.stringify(event));
  }
}

const webrtc = new WebRtc();
afterAll(() => webrtc[Symbol.dispose]());

const peers: WebRtcPeer[] = [];
afterEach(() => {
  for (const peer of peers.splice(0)) peer.close();
});
const newPeer = (): WebRtcPeer => {
  const peer = new WebRtcPeer();
  peers.push(peer);
  return peer;
};

function server(options: { sessionsMax?: number } = {}) {
  const openings: CallOpening[] = [];
  const admission = new Admission(() => options.sessionsMax ?? 4, systemClock);
  const calls = new Calls({
    webrtc,
    admission,
    check(opening) {
      if (opening.session?.["type"] === "wrong") throw new ClientError("invalid_session_type");
    },
    connect(transport, opening) {
      openings.push(opening);
      return new EchoSession(transport);
    },
    ids: countingIds(),
    log: silentLog,
  });
  const app: App = new Hono();
  registerCalls(app, calls, (context) => {
    const key = context.req.header("Authorization");
    if (key === "Bearer wrong") throw new AuthError("invalid_api_key");
    return { session: key === "Bearer ek_1" ? { instructions: "from the secret" } : null };
  });
  const post = (body: string | FormData, headers: Record<string, string> = {}): Promise<Response> =>
    Promise.resolve(
      app.request("/v1/realtime/calls?model=m", {
        method: "POST",
        body,
        headers: typeof body === "string" ? { "Content-Type": "application/sdp", ...headers } : headers,
      }),
    );
  return { app, post, openings, admission, calls };
}

describe("POST /v1/realtime/calls", () => {
  it("answers a raw offer with 201, Location and SDP, and the session begins when the data channel opens", async () => {
    const { app, post, openings, admission, calls } = server();
    const peer = newPeer();
    const response = await post(await peer.offer());
    expect(response.status).toBe(201);
    expect(response.headers.get("content-type")).toBe("application/sdp");
    expect(response.headers.get("location")).toBe("/v1/realtime/calls/rtc_1");
    expect(openings).toEqual([{ callId: "rtc_1", model: "m", session: null }]);
    await peer.accept(await response.text());
    await peer.event("session.created");
    peer.send({ type: "session.update" });
    await peer.event("echo.session.update");
    expect(admission.sessionCount).toBe(1);

    const hungUp = await app.request("/v1/realtime/calls/rtc_1/hangup", { method: "POST" });
    expect(hungUp.status).toBe(200);
    await peer.until(() => peer.closed && calls.callCount === 0 && admission.sessionCount === 0);
    const again = await app.request("/v1/realtime/calls/rtc_1", { method: "DELETE" });
    expect(again.status).toBe(404);
    expect(await again.json()).toMatchObject({ error: { code: "not_found", type: "invalid_request_error" } });
  });

  // A wrong method was answered as if there were nothing at the address.
  it.each([
    ["GET", "", "POST"],
    ["GET", "/rtc_1", "DELETE"],
    ["DELETE", "/rtc_1/hangup", "POST"],
    ["GET", "/rtc_1/accept", "POST"],
  ])("says which method its addresses take: not %s %s", async (method, path, allowed) => {
    const refused = await server().app.request(`/v1/realtime/calls${path}`, { method });
    expect([refused.status, refused.headers.get("Allow")]).toEqual([405, allowed]);
    expect(await refused.json()).toMatchObject({ error: { code: "method_not_allowed" } });
  });

  it("takes the session from the multipart form and from the client secret, which stands", async () => {
    const { app, post, openings, admission } = server();
    const peer = newPeer();
    const form = new FormData();
    form.set("sdp", new Blob([await peer.offer()], { type: "application/sdp" }));
    form.set("session", JSON.stringify({ type: "realtime", instructions: "mine" }));
    expect((await post(form, { Authorization: "Bearer ek_1" })).status).toBe(201);
    expect(openings[0]?.session).toEqual({ type: "realtime", instructions: "from the secret" });
    // Nobody takes this call; deleting it frees the place at once.
    expect((await app.request("/v1/realtime/calls/rtc_1", { method: "DELETE" })).status).toBe(204);
    await peer.until(() => admission.sessionCount === 0);
  });

  it("gives the place back when the peer is gone", async () => {
    const { post, admission } = server({ sessionsMax: 1 });
    const peer = newPeer();
    await peer.accept(await (await post(await peer.offer())).text());
    await peer.event("session.created");
    const full = await post(await newPeer().offer());
    expect(full.status).toBe(503);
    expect(full.headers.get("retry-after")).toBe("5");
    expect(await full.json()).toMatchObject({ error: { code: "session_limit_reached" } });
    peer.close();
    await peer.until(() => admission.sessionCount === 0);
  });

  it("says what is wrong, and holds no place for it", async () => {
    const { app, post, admission } = server();
    const offer = await newPeer().offer();
    const form = (fields: Record<string, string>): FormData => {
      const data = new FormData();
      for (const [name, value] of Object.entries(fields)) data.set(name, value);
      return data;
    };
    const cases: [string | FormData, Record<string, string>, number, string][] = [
      ["hello", {}, 400, "invalid_sdp"],
      [offer.replaceAll("opus", "sopu"), {}, 400, "invalid_sdp"],
      [offer, { "Content-Type": "application/json" }, 415, "unsupported_media_type"],
      [form({ session: "{}" }), {}, 400, "missing_required_parameter"],
      [form({ sdp: offer, session: "{" }), {}, 400, "invalid_json"],
      [form({ sdp: offer, session: "[]" }), {}, 400, "invalid_value"],
      [form({ sdp: offer, session: '{"type":"wrong"}' }), {}, 400, "invalid_session_type"],
      [offer, { Authorization: "Bearer wrong" }, 401, "invalid_api_key"],
    ];
    for (const [body, headers, status, code] of cases) {
      const response = await post(body, headers);
      expect({
        status: response.status,
        code: ((await response.json()) as { error: { code: string } }).error.code,
      }).toEqual({ status, code });
    }
    expect(admission.sessionCount).toBe(0);
    const refer = await app.request("/v1/realtime/calls/rtc_1/refer", { method: "POST" });
    expect(refer.status).toBe(501);
  });

  // The refusal came after the answer was made, and cost the process that waited for the next call.
  it("answers no offer whose session is refused", async () => {
    const refusing = new Calls({
      webrtc: { answer: () => Promise.reject(new Error("an answer was made")) },
      admission: new Admission(() => 4, systemClock),
      check() {
        throw new ClientError("unknown_parameter");
      },
      connect: (transport) => new EchoSession(transport),
      ids: countingIds(),
      log: silentLog,
    });
    await expect(refusing.open("v=0", { model: null, session: {} })).rejects.toMatchObject({
      code: "unknown_parameter",
    });
  });

  it("ends a call that is opened and dropped in any way", async () => {
    const { app, post, admission, calls } = server({ sessionsMax: 20 });
    const ways: ((peer: WebRtcPeer, location: string) => unknown)[] = [
      (peer) => peer.close(),
      (peer) => peer.channel.close(),
      (_, location) => app.request(`${location}/hangup`, { method: "POST" }),
      (_, location) => app.request(location, { method: "DELETE" }),
    ];
    for (const drop of [...ways, ...ways]) {
      const peer = newPeer();
      const response = await post(await peer.offer());
      await peer.accept(await response.text());
      await peer.event("session.created");
      await drop(peer, response.headers.get("location")!);
      await peer.until(() => calls.callCount === 0 && admission.sessionCount === 0);
    }
  });
});
