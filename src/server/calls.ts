/**
 * Calls over WebRTC: an offer comes by HTTP, the answer goes back, and the session runs until either side leaves. A call
 * holds its place from the answer on, whether or not the peer ever connects.
 */
import { ClientError, toAppError } from "../errors.ts";
import type { IdSource } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import type { Admission } from "./admission.ts";
import { errorBody } from "./refusal.ts";
import { type App, type Ask, route } from "./routes.ts";
import type { Transport } from "./transport.ts";
import type { WebRtc, WebRtcTransport } from "./webrtc.ts";

/** What a call is opened with: the session as on the wire, as far as the caller or its client secret says. */
export interface CallOpening {
  readonly callId: string;
  readonly model: string | null;
  readonly session: Readonly<Record<string, unknown>> | null;
}

/** The session behind a call, as far as a call goes. */
export interface CallSession {
  /** Until the end; never rejects. */
  run(): Promise<void>;
  /** A second control channel: sees the events and sends its own. */
  attach(control: Transport): void;
  drain(): void;
  close(code: number, reason: string): void;
}

export interface CallsOptions {
  readonly webrtc: Pick<WebRtc, "answer">;
  /** Why calls are refused, where the sessions cannot be had over WebRTC. */
  readonly noCalls?: string;
  readonly admission: Admission;
  /** Before an answer is made. @throws {ClientError} where the opening cannot be honoured. */
  readonly check: (opening: Omit<CallOpening, "callId">) => void;
  readonly connect: (transport: Transport, opening: CallOpening) => CallSession;
  readonly ids: IdSource;
  readonly log: Log;
}

const SDP_TYPE = "application/sdp";
/** What a client that found the server full should wait. */
const RETRY_SECONDS = 5;

/** The calls there are. */
export class Calls {
  readonly #options: CallsOptions;
  readonly #calls = new Map<string, { readonly session: CallSession; readonly transport: WebRtcTransport }>();

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  get callCount(): number {
    return this.#calls.size;
  }

  /**
   * Answers an offer and runs the session until it ends.
   * @throws {ClientError} not_implemented, invalid_sdp, or what the session refuses.
   * @throws {CapacityError} session_limit_reached or server_draining.
   */
  async open(
    offerSdp: string,
    opening: Omit<CallOpening, "callId">,
  ): Promise<{ readonly callId: string; readonly answerSdp: string }> {
    const { admission, webrtc, noCalls, check, connect, ids } = this.#options;
    if (noCalls !== undefined) throw new ClientError("not_implemented", noCalls);
    admission.check();
    check(opening);
    const callId = ids("rtc");
    // The place is taken before the first wait, so that two callers cannot take the same one.
    let session: CallSession | null = null;
    const leave = admission.enter({
      drain: () => session?.drain(),
      close: (code, reason) => session?.close(code, reason),
    });
    try {
      const { answerSdp, transport } = await webrtc.answer(offerSdp);
      try {
        if (admission.draining) admission.check();
        session = connect(transport, { callId, ...opening });
      } catch (error) {
        await transport.close(1000, "the session was refused");
        throw error;
      }
      this.#calls.set(callId, { session, transport });
      void this.#run(callId, session, transport).finally(leave);
      return { callId, answerSdp };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** @throws {ClientError} not_found. */
  hangUp(callId: string): void {
    const { session, transport } = this.#find(callId);
    session.close(1000, "the call was hung up");
    // A call that was never taken has no running session to end it.
    if (!transport.isOpen) void transport.close(1000, "the call was hung up");
  }

  /** @throws {ClientError} not_found. */
  attach(callId: string, control: Transport): void {
    this.#find(callId).session.attach(control);
  }

  /** @throws {ClientError} not_found. For a refusal before the WebSocket is accepted. */
  check(callId: string): void {
    this.#find(callId);
  }

  #find(callId: string): { readonly session: CallSession; readonly transport: WebRtcTransport } {
    const call = this.#calls.get(callId);
    if (call === undefined || call.transport.isClosing)
      throw new ClientError("not_found", `There is no call ${callId}; it may have ended.`);
    return call;
  }

  async #run(callId: string, session: CallSession, transport: WebRtcTransport): Promise<void> {
    const log = this.#options.log.with({ callId });
    try {
      const opened = await transport.opened;
      log.info({ opened }, opened ? "call opened" : "call was never taken");
      if (opened) await session.run();
      else session.close(1000, "the call was never taken");
    } catch (error) {
      log.error({ code: toAppError(error).code }, "call failed");
    } finally {
      this.#calls.delete(callId);
      await transport.close(1000, "the session has ended");
      log.info({}, "call ended");
    }
  }
}

/** What the routes need to know of a request: who asks, and what its client secret fixes. */
export type CallGate = (context: Ask) => { readonly session: Readonly<Record<string, unknown>> | null };

/** `POST /v1/realtime/calls`, `POST …/{call_id}/hangup` and `DELETE …/{call_id}`. `gate` throws where nobody may pass. */
export function registerCalls(app: App, calls: Calls, gate: CallGate, prefix: string = ""): void {
  const hangUp = (status: 200 | 204) => (context: Ask) =>
    answering(context, async () => {
      gate(context);
      calls.hangUp(context.req.param("callId") ?? "");
      return context.body(null, status);
    });
  route(app, "/v1/realtime/calls", {
    POST: (context) =>
      answering(context, async () => {
        const granted = gate(context);
        const { sdp, session } = await readCall(context);
        const model = context.req.query("model") ?? null;
        const { callId, answerSdp } = await calls.open(sdp, { model, session: merge(granted.session, session) });
        return context.body(answerSdp, 201, {
          "Content-Type": SDP_TYPE,
          Location: `${prefix}/v1/realtime/calls/${callId}`,
        });
      }),
  });
  route(app, "/v1/realtime/calls/:callId", { DELETE: hangUp(204) });
  route(app, "/v1/realtime/calls/:callId/hangup", { POST: hangUp(200) });
  for (const action of ["accept", "refer", "reject"]) {
    route(app, `/v1/realtime/calls/:callId/${action}`, {
      POST: (context) =>
        answering(context, async () => {
          gate(context);
          throw new ClientError(
            "not_implemented",
            `${action} is for telephone calls (SIP), and this server has none: calls begin with an offer to POST /v1/realtime/calls and end with hangup.`,
          );
        }),
    });
  }
}

async function answering(context: Ask, run: () => Promise<Response>): Promise<Response> {
  try {
    return await run();
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.entry.httpStatus === 503) context.header("Retry-After", String(RETRY_SECONDS));
    return context.json(errorBody(error), error.entry.httpStatus as 400);
  }
}

/** The offer, raw or as multipart with the session beside it. */
async function readCall(
  context: Ask,
): Promise<{ readonly sdp: string; readonly session: Readonly<Record<string, unknown>> | null }> {
  const contentType = context.req.header("Content-Type") ?? "";
  const [mediaType] = contentType.toLowerCase().split(";");
  if (mediaType?.trim() === SDP_TYPE) return { sdp: await context.req.text(), session: null };
  if (mediaType?.trim() !== "multipart/form-data") {
    throw new ClientError(
      "unsupported_media_type",
      `Got the content type "${contentType}"; send the offer as ${SDP_TYPE}, or as multipart/form-data with the fields sdp and session.`,
    );
  }
  const form = await context.req.parseBody().catch((cause: unknown) => {
    throw new ClientError("invalid_value", "The multipart body cannot be read.", null, { cause });
  });
  const sdp = await fieldText(form["sdp"]);
  if (sdp === null) throw new ClientError("missing_required_parameter", "The multipart body has no field sdp.", "sdp");
  return { sdp, session: readSession(await fieldText(form["session"])) };
}

async function fieldText(field: unknown): Promise<string | null> {
  if (typeof field === "string") return field;
  return field instanceof Blob ? await field.text() : null;
}

function readSession(text: string | null): Readonly<Record<string, unknown>> | null {
  if (text === null) return null;
  let session: unknown;
  try {
    session = JSON.parse(text);
  } catch (cause) {
    throw new ClientError("invalid_json", "The field session is not JSON.", "session", { cause });
  }
  if (typeof session === "object" && session !== null && !Array.isArray(session)) return { ...session };
  throw new ClientError("invalid_value", "The field session must be a JSON object.", "session");
}

/** What the client secret fixes stands; the caller may add to it. */
function merge(
  granted: Readonly<Record<string, unknown>> | null,
  asked: Readonly<Record<string, unknown>> | null,
): Readonly<Record<string, unknown>> | null {
  return granted === null || asked === null ? (granted ?? asked) : { ...asked, ...granted };
}
