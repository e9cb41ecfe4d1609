/** What the page knows of the conversation, made from the events alone: captions, whose turn it is, how long things took. */

export type ServerEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** `function`: what a full-duplex model says on its channel for tools. */
export type Speaker = "you" | "assistant" | "function";

export interface Caption {
  readonly itemId: string;
  readonly speaker: Speaker;
  text: string;
  /** `open` may still grow. */
  status: "open" | "done" | "failed";
  /** How many characters of `text` were heard before an interruption; null if nothing was cut. */
  heardLength: number | null;
}

export interface TurnLatency {
  /** When the user's turn ended, in the page's milliseconds. */
  readonly startMs: number;
  transcriptMs: number | null;
  firstWordMs: number | null;
  firstSoundMs: number | null;
}

export type Phase = "listening" | "hearing" | "thinking" | "speaking";

/** What the page shows of a session, whatever its dialect. */
export interface Conversation {
  readonly captions: readonly Caption[];
  readonly turns: readonly TurnLatency[];
  readonly phase: Phase;
  readonly isPlaying: boolean;
  /** The running response, null if there is none. */
  readonly responseId: string | null;
  /** Takes a server event; returns the item whose heard part should be asked for, if any. */
  apply(event: ServerEvent, nowMs: number): { readonly retrieve: string } | null;
  /** The user has finished: by silence, by letting go of the button, or by sending text. */
  turnEnded(nowMs: number): void;
  /** The assistant can be heard, or no longer. */
  setPlaying(isPlaying: boolean, nowMs: number): void;
  /** The session is over; nothing is open any more. */
  disconnected(): void;
}

const CAPTIONS_MAX = 400;

export class TalkModel implements Conversation {
  readonly captions: Caption[] = [];
  readonly turns: TurnLatency[] = [];
  responseId: string | null = null;
  #isHearing = false;
  #isPlaying = false;
  /** A turn has ended and its answer has not come. */
  #isWaiting = false;

  get phase(): Phase {
    if (this.#isPlaying) return "speaking";
    if (this.#isHearing) return "hearing";
    return this.#isWaiting || this.responseId !== null ? "thinking" : "listening";
  }
  get isPlaying(): boolean {
    return this.#isPlaying;
  }

  apply(event: ServerEvent, nowMs: number): { readonly retrieve: string } | null {
    switch (event.type) {
      case "input_audio_buffer.speech_started":
        this.#isHearing = true;
        this.#caption(event["item_id"], "you");
        return null;
      case "input_audio_buffer.speech_stopped":
        this.turnEnded(nowMs);
        return null;
      case "conversation.item.truncated":
        return { retrieve: String(event["item_id"]) };
      case "output_audio_buffer.started":
        this.setPlaying(true, nowMs);
        return null;
      case "output_audio_buffer.stopped":
      case "output_audio_buffer.cleared":
        this.setPlaying(false, nowMs);
        return null;
    }
    if (event.type.startsWith("conversation.item.input_audio_transcription.")) this.#applyTranscription(event, nowMs);
    else if (event.type.startsWith("conversation.item.")) this.#applyItem(event);
    else if (event.type.startsWith("response.")) this.#applyResponse(event, nowMs);
    return null;
  }

  turnEnded(nowMs: number): void {
    this.#isHearing = false;
    this.#isWaiting = true;
    this.turns.push({ startMs: nowMs, transcriptMs: null, firstWordMs: null, firstSoundMs: null });
  }
  setPlaying(isPlaying: boolean, nowMs: number): void {
    this.#isPlaying = isPlaying;
    if (isPlaying) this.#isWaiting = false;
    const turn = this.turns.at(-1);
    if (isPlaying && turn !== undefined) turn.firstSoundMs ??= nowMs - turn.startMs;
  }
  disconnected(): void {
    this.responseId = null;
    this.#isHearing = this.#isPlaying = this.#isWaiting = false;
    for (const caption of this.captions) if (caption.status === "open") caption.status = "done";
  }

  #applyTranscription(event: ServerEvent, nowMs: number): void {
    const caption = this.#caption(event["item_id"], "you");
    const turn = this.turns.at(-1);
    if (event.type.endsWith(".delta")) caption.text += String(event["delta"] ?? "");
    if (event.type.endsWith(".failed")) caption.status = "failed";
    if (event.type.endsWith(".completed")) {
      caption.text = String(event["transcript"] ?? "").trim();
      caption.status = "done";
      if (turn !== undefined) turn.transcriptMs ??= nowMs - turn.startMs;
      // Nothing was said after all: a cough, a door.
      if (caption.text === "" && this.responseId === null) this.#isWaiting = false;
    }
  }

  #applyItem(event: ServerEvent): void {
    const item = event["item"] as { id?: string; type?: string; role?: string; status?: string; content?: Part[] };
    if (item?.type !== "message" || item.id === undefined) return;
    if (item.role !== "user" && item.role !== "assistant") return;
    const caption = this.#caption(item.id, item.role === "user" ? "you" : "assistant");
    const text = (item.content ?? []).map((part) => part.text ?? part.transcript ?? "").join(" ");
    const isRetrieved = event.type.endsWith(".retrieved");
    if (item.role === "user" && text !== "") {
      caption.text = text.trim();
      caption.status = "done";
    }
    if (item.role === "assistant" && (isRetrieved || event.type.endsWith(".done"))) {
      caption.status = "done";
      if (caption.text === "") caption.text = text;
      if (isRetrieved || item.status === "incomplete") caption.heardLength = commonLength(caption.text, text);
    }
  }

  #applyResponse(event: ServerEvent, nowMs: number): void {
    if (event.type === "response.created") {
      this.responseId = (event["response"] as { id: string }).id;
      this.#isWaiting = true;
    }
    if (event.type === "response.done") {
      this.responseId = null;
      this.#isWaiting = false;
    }
    if (event.type !== "response.output_audio_transcript.delta" && event.type !== "response.output_text.delta") return;
    this.#caption(event["item_id"], "assistant").text += String(event["delta"] ?? "");
    const turn = this.turns.at(-1);
    if (turn !== undefined) turn.firstWordMs ??= nowMs - turn.startMs;
  }

  #caption(itemId: unknown, speaker: Speaker): Caption {
    const id = String(itemId);
    const known = this.captions.find((caption) => caption.itemId === id);
    if (known !== undefined) return known;
    const caption: Caption = { itemId: id, speaker, text: "", status: "open", heardLength: null };
    this.captions.push(caption);
    if (this.captions.length > CAPTIONS_MAX) this.captions.shift();
    return caption;
  }
}

interface Part {
  readonly text?: string;
  readonly transcript?: string;
}

/** How much of `text` is `heard`, but for spaces; whole words only. */
export function commonLength(text: string, heard: string): number {
  let at = 0;
  for (const word of heard.trim().split(/\s+/)) {
    const next = text.indexOf(word, at);
    if (word === "" || next < 0 || text.slice(at, next).trim() !== "") break;
    at = next + word.length;
  }
  return at;
}
