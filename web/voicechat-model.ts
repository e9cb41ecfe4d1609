/**
 * The conversation of a full-duplex model, made from its events. Nothing marks a turn there: each side's text is one
 * stream, and a new caption begins where a side speaks on after a pause in which the other one began.
 */
import type { Caption, Conversation, Phase, ServerEvent, Speaker, TurnLatency } from "./talk-model.ts";

/** Frames of 80 ms. */
const PAUSE_FRAMES = 12;
/** The transcript comes word by word; between two words the user is still speaking. */
const HEARING_FRAMES = 8;
const CAPTIONS_MAX = 400;

interface Channel {
  caption: Caption | null;
  /** Where the caption begins in the channel's text, and how much of that there is. */
  start: number;
  length: number;
  lastFrame: number;
}

const channel = (): Channel => ({ caption: null, start: 0, length: 0, lastFrame: 0 });

export class VoiceChatModel implements Conversation {
  readonly captions: Caption[] = [];
  readonly turns: TurnLatency[] = [];
  readonly responseId = null;
  #channels: Record<Speaker, Channel> = { you: channel(), assistant: channel(), function: channel() };
  #captionCount = 0;
  #frame = 0;
  #isPlaying = false;
  /** When the user's last word was heard, until something answers it. */
  #heardMs: number | null = null;

  get phase(): Phase {
    if (this.#isPlaying) return "speaking";
    const { caption, lastFrame } = this.#channels.you;
    return caption !== null && this.#frame - lastFrame <= HEARING_FRAMES ? "hearing" : "listening";
  }
  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  apply(event: ServerEvent, nowMs: number): null {
    const frame = Number(event["frame_index"] ?? 0);
    switch (event.type) {
      case "session.created":
        this.#close();
        break;
      case "conversation.item.input_audio_transcription.delta":
        this.#heardMs = nowMs;
        this.#hear("you", String(event["transcript"]), frame);
        break;
      case "response.text.delta":
        if (this.#hear("assistant", String(event["text"]), frame)) this.#answered(nowMs, "firstWordMs");
        break;
      case "response.function.delta":
        this.#hear("function", String(event["text"]), frame);
        break;
      case "response.audio.delta":
        this.#frame = frame;
    }
    return null;
  }

  turnEnded(): void {}

  setPlaying(isPlaying: boolean, nowMs: number): void {
    if (isPlaying && !this.#isPlaying) this.#answered(nowMs, "firstSoundMs");
    this.#isPlaying = isPlaying;
  }

  disconnected(): void {
    this.#isPlaying = false;
    this.#close();
  }

  /** Takes a channel's whole text; true if a new caption began with it. */
  #hear(speaker: Speaker, text: string, frame: number): boolean {
    const channel = this.#channels[speaker];
    const isNewest = channel.caption === this.captions.at(-1);
    const isOver = channel.caption === null || (!isNewest && frame - channel.lastFrame > PAUSE_FRAMES);
    if (isOver) channel.start = channel.length;
    channel.length = text.length;
    channel.lastFrame = frame;
    const said = text.slice(channel.start).trimStart();
    if (isOver && said === "") return false;
    if (isOver || channel.caption === null) channel.caption = this.#begin(speaker);
    channel.caption.text = said;
    return isOver;
  }

  #begin(speaker: Speaker): Caption {
    for (const caption of this.captions) {
      if (caption.speaker === speaker) caption.status = "done";
    }
    this.#captionCount += 1;
    const itemId = `caption_${this.#captionCount}`;
    const caption: Caption = { itemId, speaker, text: "", status: "open", heardLength: null };
    this.captions.push(caption);
    if (this.captions.length > CAPTIONS_MAX) this.captions.shift();
    return caption;
  }

  #answered(nowMs: number, what: "firstWordMs" | "firstSoundMs"): void {
    if (this.#heardMs !== null) {
      this.turns.push({ startMs: this.#heardMs, transcriptMs: null, firstWordMs: null, firstSoundMs: null });
      this.#heardMs = null;
    }
    const turn = this.turns.at(-1);
    if (turn !== undefined) turn[what] ??= nowMs - turn.startMs;
  }

  #close(): void {
    for (const caption of this.captions) caption.status = "done";
    this.#channels = { you: channel(), assistant: channel(), function: channel() };
    this.#frame = 0;
  }
}
