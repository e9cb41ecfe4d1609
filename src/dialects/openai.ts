/** The OpenAI Realtime dialect (GA): its events are the session's commands and news under other names. */
import type { SessionCommand } from "../conversation/commands.ts";
import type { SessionEvent } from "../conversation/events.ts";
import { type AppError, ClientError } from "../errors.ts";
import { CLIENT_EVENTS, MOVED_FIELDS } from "../protocol/openai/client-events.ts";
import type { ClientEvent } from "../protocol/openai/client-types.ts";
import type { ServerEventBody, WireError } from "../protocol/openai/server-events.ts";
import { parseEvent } from "../protocol/parse.ts";
import type { Decoded, Dialect, DialectContext, Origin, Output } from "./dialect.ts";
import { InputAudio, OutputAudio } from "./openai-audio.ts";
import { writeEvent } from "./openai-events.ts";
import { readItem, readResponse, recordingOf } from "./openai-items.ts";
import { readSession } from "./openai-session.ts";

export class OpenAIDialect implements Dialect {
  readonly #context: DialectContext;
  readonly #input: InputAudio;
  /** By response: one voice, one resampler. */
  readonly #voices = new Map<string, OutputAudio>();

  constructor(context: DialectContext) {
    this.#context = context;
    this.#input = new InputAudio(context.capabilities.inputHz);
  }

  decode(text: string, origin: Origin): Decoded {
    const parsed = parseEvent<ClientEvent>(text, { schemas: CLIENT_EVENTS, movedFields: MOVED_FIELDS });
    if (!parsed.ok) return { refusal: parsed.refusal, eventId: parsed.eventId };
    const eventId = parsed.event.event_id ?? null;
    const command = this.#commandOf(parsed.event, origin);
    return command instanceof ClientError ? { refusal: command, eventId } : { command, eventId };
  }
  decodeAudio(pcm: Float32Array, hz: number): SessionCommand {
    return { type: "input.append", pcm: this.#input.resample(pcm, hz), ms: (pcm.length * 1000) / hz };
  }
  encode(event: SessionEvent): Output[] {
    if (event.type === "speech.audio") return this.#encodeAudio(event);
    const tail = event.type === "part.done" ? this.#encodeTail(event) : [];
    if (event.type === "response.created" && this.#context.audioPath === "events") {
      this.#voices.set(event.response.id, new OutputAudio(event.response.outputFormat));
    }
    if (event.type === "response.done") this.#voices.delete(event.response.id);
    return [...tail, ...writeEvent(event, this.#context).map((body) => this.#frame(body))];
  }
  encodeError(error: AppError, eventId: string | null): string {
    const wire: WireError = { type: error.entry.wireType, code: error.code, message: error.message };
    if (error instanceof ClientError && error.param !== null) wire.param = error.param;
    if (eventId !== null) wire.event_id = eventId;
    return this.#frame({ type: "error", error: wire }).text;
  }

  #commandOf(event: ClientEvent, origin: Origin): SessionCommand | ClientError {
    const { capabilities, ids, settings } = this.#context;
    switch (event.type) {
      case "session.update": {
        const patch = readSession(event.session, settings(), capabilities);
        return patch instanceof ClientError ? patch : { type: "session.update", patch };
      }
      case "input_audio_buffer.append":
        return this.#append(event.audio, origin);
      case "input_audio_buffer.commit":
        return { type: "input.commit" };
      case "input_audio_buffer.clear":
        return { type: "input.clear" };
      case "output_audio_buffer.clear":
        if (this.#context.audioPath === "track") return { type: "output.clear" };
        return new ClientError(
          "invalid_event_for_transport",
          "output_audio_buffer.clear is for WebRTC, where the server plays. Here the client plays: stop, and send response.cancel and conversation.item.truncate.",
          "type",
        );
      case "conversation.item.create":
        return this.#createItem(event);
      case "conversation.item.retrieve":
        return { type: "item.retrieve", itemId: event.item_id };
      case "conversation.item.truncate": {
        const { item_id: itemId, content_index: contentIndex, audio_end_ms: audioEndMs } = event;
        return { type: "item.truncate", itemId, contentIndex, audioEndMs };
      }
      case "conversation.item.delete":
        return { type: "item.delete", itemId: event.item_id };
      case "response.create": {
        const options = readResponse(event.response ?? {}, capabilities, ids);
        return options instanceof ClientError ? options : { type: "response.create", options };
      }
      case "response.cancel":
        return { type: "response.cancel", responseId: event.response_id ?? null };
    }
  }
  #createItem(event: Extract<ClientEvent, { type: "conversation.item.create" }>): SessionCommand | ClientError {
    const { capabilities, ids, settings } = this.#context;
    const item = readItem(event.item, ids, "item", true);
    if (item instanceof ClientError) return item;
    const audio = recordingOf(event.item);
    if (audio instanceof ClientError) return audio;
    const recording = audio === null ? null : InputAudio.recording(audio, settings().inputFormat, capabilities.inputHz);
    if (recording instanceof ClientError) return recording;
    return { type: "item.create", item, afterId: event.previous_item_id ?? null, recording };
  }
  #append(audio: string, origin: Origin): SessionCommand | ClientError {
    if (origin === "sideband" || this.#context.audioPath === "track") {
      const where =
        origin === "sideband" ? "A sideband channel carries no audio" : "Audio travels on the media track here";
      return new ClientError(
        "invalid_event_for_transport",
        `${where}; input_audio_buffer.append is not accepted.`,
        "type",
      );
    }
    const decoded = this.#input.decode(audio, this.#context.settings().inputFormat);
    return decoded instanceof ClientError ? decoded : { type: "input.append", ...decoded };
  }
  #encodeAudio(event: Extract<SessionEvent, { type: "speech.audio" }>): Output[] {
    const { pcm, hz } = event;
    if (this.#context.audioPath === "track") return [{ type: "audio", pcm, hz }];
    return (this.#voices.get(event.responseId)?.push(pcm, hz) ?? []).map((delta) => this.#delta(event, delta));
  }
  #encodeTail(event: Extract<SessionEvent, { type: "part.done" }>): Output[] {
    const tail = this.#voices.get(event.responseId)?.flush() ?? [];
    return event.whole ? tail.map((delta) => this.#delta(event, delta)) : [];
  }
  #delta(
    place: { readonly responseId: string; readonly itemId: string; readonly outputIndex: number },
    delta: string,
  ): Output {
    const { responseId: response_id, itemId: item_id, outputIndex: output_index } = place;
    const type = "response.output_audio.delta";
    return this.#frame({ type, response_id, item_id, output_index, content_index: 0, delta });
  }
  #frame(body: ServerEventBody): Extract<Output, { type: "text" }> {
    return { type: "text", text: JSON.stringify({ event_id: this.#context.ids("event"), ...body }) };
  }
}
