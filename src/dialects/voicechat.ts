/** The VoiceChat dialect: its words for a duplex session, both ways. Source: spec "Realtime WebSocket". */
import { base64ToBytes, bytesToBase64, floatToPcm16By32767, pcm16ToFloat } from "../audio/pcm.ts";
import type { DuplexCommand, DuplexEvent } from "../conversation/duplex-session.ts";
import type { EngineCapabilities } from "../engines/engine.ts";
import { CapacityError } from "../errors.ts";
import {
  type ClientMessage,
  readEnvelope,
  readMessage,
  type VoiceChatRefusal,
} from "../protocol/voicechat/client-messages.ts";
import type { VoiceChatErrorCode, VoiceChatEventBody } from "../protocol/voicechat/server-events.ts";
import type { IdSource } from "../util/ids.ts";

export interface VoiceChatDialectOptions {
  readonly capabilities: EngineCapabilities;
  readonly sessionId: string;
  readonly ids: IdSource;
}

export type DuplexDecoded = { readonly command: DuplexCommand } | { readonly refusal: VoiceChatRefusal };

/** Samples in one frame of 80 ms. */
const frameSamplesOf = (inputHz: number): number => Math.round(inputHz * 0.08);

const NOT_CONFIGURED: VoiceChatRefusal = { code: "invalid_request", message: "send session.update before audio" };

export class VoiceChatDialect {
  readonly #options: VoiceChatDialectOptions;
  constructor(options: VoiceChatDialectOptions) {
    this.#options = options;
  }
  /** Reads one text frame. Before the session is configured only its configuration and pings are heard. */
  decode(text: string, isConfigured: boolean): DuplexDecoded {
    const envelope = readEnvelope(text);
    if (!envelope.ok) return envelope;
    const { type } = envelope.value;
    if (!isConfigured && type !== "session.update" && type !== "session.ping") return { refusal: NOT_CONFIGURED };
    const message = readMessage(envelope.value);
    return message.ok ? commandOf(message.value) : message;
  }
  greeting(): string {
    return this.#text({ type: "session.created", session: { ...this.#session(), state: "configuring" } });
  }
  /** At most one event for each; null for what the wire does not tell. */
  encode(event: DuplexEvent): string | null {
    switch (event.type) {
      case "opened":
        return this.#text({ type: "session.updated", session: this.#configured() });
      case "ponged":
        return this.#text({ type: "session.pong" });
      case "finishing":
        return this.#text({ type: "input_audio_buffer.committed" });
      case "open.failed":
        return this.encodeError("session_initialization_failed", event.error.message);
      case "refused":
      case "expired":
        return this.encodeError("invalid_request", event.error.message);
      case "input.failed":
        return this.encodeError("inference_error", event.error.message);
      case "closed":
      case "frame.timing":
        return null;
      default:
        return this.#text(frameBody(event));
    }
  }
  encodeError(code: VoiceChatErrorCode, message: string): string {
    return this.#text({ type: "error", error: { code, message } });
  }
  #text(body: VoiceChatEventBody): string {
    return JSON.stringify({ event_id: this.#options.ids("event"), ...body });
  }
  #session(): {
    readonly id: string;
    readonly input_audio_format: { readonly type: "pcm16"; readonly sample_rate: number };
    readonly output_audio_format: { readonly type: "pcm16"; readonly sample_rate: number };
  } {
    const { capabilities, sessionId } = this.#options;
    return {
      id: sessionId,
      input_audio_format: { type: "pcm16", sample_rate: capabilities.inputHz },
      output_audio_format: { type: "pcm16", sample_rate: capabilities.outputHz },
    };
  }
  #configured(): Extract<VoiceChatEventBody, { type: "session.updated" }>["session"] {
    const { models, inputHz } = this.#options.capabilities;
    const frame_samples = frameSamplesOf(inputHz);
    return { ...this.#session(), state: "ready", model: models[0] ?? "", frame_samples };
  }
}

/** What a peer is told that gets no session at all. */
export function refusalText(error: Error, ids: IdSource): string {
  const code: VoiceChatErrorCode = error instanceof CapacityError ? "server_busy" : "invalid_request";
  return JSON.stringify({ event_id: ids("event"), type: "error", error: { code, message: error.message } });
}

function commandOf(message: ClientMessage): DuplexDecoded {
  switch (message.type) {
    case "session.update":
      return { command: { type: "open", ...message.session } };
    case "append":
      return appendOf(message.audio, message.sampleHz);
    case "commit":
      return { command: { type: "finish", padPartial: message.padPartial } };
    default:
      return { command: message };
  }
}

function appendOf(audio: string, sampleHz: number): DuplexDecoded {
  const refuse = (message: string): DuplexDecoded => ({ refusal: { code: "inference_error", message } });
  const bytes = base64ToBytes(audio);
  if (bytes === null) return refuse(`audio must be valid base64 PCM16; got ${audio.length} characters that are not`);
  const pcm = pcm16ToFloat(bytes);
  if (pcm === null) return refuse(`PCM16 audio must have an even number of bytes, got ${bytes.length}`);
  return { command: { type: "append", pcm, sampleHz } };
}

type FrameEvent = Exclude<Extract<DuplexEvent, { type: `frame.${string}` }>, { type: "frame.timing" }>;

function frameBody(event: FrameEvent): VoiceChatEventBody {
  const frame_index = event.frameIndex;
  switch (event.type) {
    case "frame.transcript":
      return {
        type: "conversation.item.input_audio_transcription.delta",
        frame_index,
        delta: event.delta,
        transcript: event.text,
      };
    case "frame.text":
    case "frame.function": {
      const type = event.type === "frame.text" ? "response.text.delta" : "response.function.delta";
      return { type, frame_index, token_id: event.tokenId, delta: event.delta, text: event.text };
    }
    case "frame.audio":
      return {
        type: "response.audio.delta",
        frame_index,
        delta: bytesToBase64(floatToPcm16By32767(event.pcm)),
        format: "pcm16",
        sample_rate: event.hz,
        channels: 1,
        audio_codes: event.audioCodes,
      };
    case "frame.done":
      return { type: "response.done", frame_index };
    case "frame.cancelled":
      return { type: "response.cancelled", frame_index };
  }
}
