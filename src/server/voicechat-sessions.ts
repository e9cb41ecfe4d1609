/** Sessions of a full-duplex model over the VoiceChat dialect. */
import type { DuplexLimits } from "../conversation/duplex-session.ts";
import { refusalText } from "../dialects/voicechat.ts";
import type { Engine } from "../engines/engine.ts";
import { ClientError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type IdSource, randomId } from "../util/ids.ts";
import type { Log } from "../util/log.ts";
import { DuplexConnection } from "./duplex-connection.ts";
import type { RunningSession } from "./reception.ts";
import type { SessionMaker } from "./server.ts";

/** About 24 s of base64 PCM16; clients send 80 ms at a time. Source: spec "One session at a time". */
export const VOICECHAT_MESSAGE_BYTES_MAX: number = 1024 * 1024;

export interface VoiceChatSessionsOptions {
  readonly log: Log;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly limits?: Partial<DuplexLimits>;
  /** Unsent bytes after which a peer counts as not reading. Default 16 MiB. */
  readonly unsentBytesMax?: number;
}

/** What the server calls when it makes sessions: see `ServerOptions.sessions`. */
export function voiceChatSessions(options: VoiceChatSessionsOptions): SessionMaker {
  const { log, clock = systemClock, ids = randomId, limits = {}, unsentBytesMax } = options;
  const pace = unsentBytesMax === undefined ? {} : { unsentBytesMax };
  return (engine: () => Engine, observer) => ({
    connect(transport): RunningSession {
      const connection = new DuplexConnection({
        transport,
        engine: engine(),
        clock,
        ids,
        log,
        limits,
        ...pace,
        observer,
      });
      return {
        run: () => connection.run(),
        leave: () => connection.leave(),
        attach: (control) => void control.close(1008, "a full-duplex session has no second control channel"),
        // It speaks as long as it hears: there is no turn to wait for.
        drain: () => connection.close(1012, "the server is shutting down"),
        close: (code, reason) => connection.close(code, reason),
      };
    },
    describe() {
      throw new ClientError(
        "capability_missing",
        "A VoiceChat server makes no client secrets; connect with the API key.",
      );
    },
    noCalls: "A VoiceChat model talks over a WebSocket, not WebRTC: connect to /v1/realtime instead.",
    messageBytesMax: VOICECHAT_MESSAGE_BYTES_MAX,
    explain: (error) => ({ text: refusalText(error, ids), code: error.code === "session_limit_reached" ? 1013 : null }),
  });
}
