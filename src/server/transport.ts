/** What a connection is to a session: text frames and audio, both ways. It never parses JSON and never resamples. */
import type { AppError } from "../errors.ts";

export type TransportMessage =
  | { readonly type: "text"; readonly text: string }
  /** Mono f32, from a media track. A WebSocket has none: there, audio travels inside the text. */
  | { readonly type: "audio"; readonly pcm: Float32Array; readonly hz: number };

/** How a transport carries the assistant's voice. */
export type AudioPath =
  /** Base64 inside events: the client buffers and plays. */
  | "events"
  /** A paced media track: the server buffers and plays, and knows what was heard. */
  | "track";

export interface Transport {
  readonly kind: "websocket" | "webrtc" | "memory";
  readonly audioPath: AudioPath;
  /** Ends when the peer is gone or the transport was closed. */
  readonly incoming: AsyncIterable<TransportMessage>;
  /** Resolves when the peer is gone, though messages of its may still wait in `incoming`. Absent where that never is. */
  readonly gone?: Promise<void>;
  /** Why the transport ended, where that was a fault and no peer's doing. */
  readonly failure?: AppError | null;
  send(text: string): void;
  /** Only where `audioPath` is `track`: queues mono f32 for the line. */
  sendAudio(pcm: Float32Array, hz: number): void;
  /** Drops queued audio; the line is silent within one frame. Returns the milliseconds that were not played. */
  clearAudio(): number;
  /** Milliseconds of queued audio that the line has not played yet; 0 where `audioPath` is `events`. */
  readonly unplayedMs: number;
  /** Bytes accepted by `send` and not yet taken by the network. */
  readonly bufferedBytes: number;
  /** Idempotent. */
  close(code: number, reason: string): Promise<void>;
}
