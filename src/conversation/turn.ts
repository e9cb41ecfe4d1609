/**
 * The user's side: what is heard becomes segments, a segment becomes an item, and its transcript decides what it was.
 * Push to talk goes the same way, with the peer's commit in the place of the detector's end.
 */

import type { EngineEvent, EngineStream } from "../engines/engine.ts";
import { AppError, ClientError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import { msToSamples } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import type { Emit } from "./events.ts";
import type { ItemContent, Items } from "./items.ts";
import { MediaTime } from "./media-time.ts";
import type { SessionSettings } from "./settings.ts";

/** What a segment turned out to be. */
export type TurnOutcome =
  | { readonly type: "words"; readonly text: string }
  /** A noise: nothing was said. */
  | { readonly type: "nothing" }
  | { readonly type: "failed" };

export interface TurnListener {
  /** Somebody began to speak, or a noise did. */
  speechStarted(): void;
  /** The segment holds words, or lasts longer than a noise does. `text` is what is known of it. */
  speechConfirmed(text: string): void;
  speechEnded(outcome: TurnOutcome): void;
  /** What a recording says is known, or will not be. */
  recordingRead(): void;
}

export interface TurnContext {
  readonly inputHz: number;
  readonly engine: Pick<EngineStream, "push" | "send" | "backlogSamples" | "transcribe">;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly items: Items;
  readonly settings: () => SessionSettings;
  readonly emit: Emit;
  readonly listener: TurnListener;
}

interface Segment {
  readonly id: string;
  readonly itemId: string;
  readonly contentIndex: number;
  readonly startSample: number;
  committed: boolean;
  confirmed: boolean;
  /** Not spoken now, but part of an item that the peer made: it is never a turn. */
  readonly recorded: boolean;
  partial: string;
  stopWaiting: () => void;
}

/** The shortest commit, as OpenAI has it. */
const COMMIT_MS_MIN = 100;
/** A segment that lasts longer than this is speech, whatever comes out of it. */
const CONFIRM_MS = 900;
/** Audio that stays away in mid-speech for so long is taken for silence. */
const STALL_MS = 1000;
const FILL_MS = 200;
/** Longer than any detector waits for the end of a turn. */
const FILL_MS_MAX = 12_000;
/** How long a transcript may take after its segment's end. */
const TRANSCRIPT_MS_MAX = 20_000;

export class Turn {
  readonly #context: TurnContext;
  readonly #time: MediaTime;
  readonly #segments = new Map<string, Segment>();
  /** What came since the last commit or clear, in the peer's milliseconds. */
  #bufferedMs = 0;
  #filledMs = 0;
  #stopStallWatch: () => void = () => {};

  constructor(context: TurnContext) {
    this.#context = context;
    this.#time = new MediaTime(context.inputHz);
  }
  /** Somebody is speaking now. */
  get speaking(): boolean {
    return this.#open !== undefined;
  }
  /** A segment has ended, and its transcript has not come yet. */
  get awaitsTranscript(): boolean {
    return [...this.#segments.values()].some((segment) => segment.committed);
  }
  get peerMs(): number {
    return this.#time.peerMs;
  }
  get #open(): Segment | undefined {
    return [...this.#segments.values()].find((segment) => !segment.committed);
  }

  append(pcm: Float32Array, ms: number): void {
    this.#bufferedMs += ms;
    this.#filledMs = 0;
    this.#context.engine.push(pcm);
    this.#time.received(pcm.length);
    const open = this.#open;
    if (open === undefined) return;
    this.#watchStall(STALL_MS);
    const lastedMs = ((this.#time.samples - open.startSample) * 1000) / this.#time.hz;
    if (lastedMs >= CONFIRM_MS + this.#prefixPaddingMs) this.#confirm(open);
  }
  /** What was heard since the last commit or clear becomes an item. It is not answered by itself. */
  commit(): ClientError | null {
    if (this.#bufferedMs < COMMIT_MS_MIN) {
      const message = `The input audio buffer holds ${this.#bufferedMs.toFixed(2)} ms of audio; a commit needs at least ${COMMIT_MS_MIN} ms.`;
      return new ClientError("input_audio_buffer_commit_empty", message);
    }
    const { ids } = this.#context;
    const segment = this.#open ?? this.#newSegment(ids("seg"), this.#time.samples);
    const refusal = this.#tell(() => this.#context.engine.send({ type: "input.commit", segmentId: segment.id }));
    if (refusal !== null) {
      this.#segments.delete(segment.id);
      return refusal;
    }
    this.#commit(segment);
    return null;
  }
  clear(): ClientError | null {
    const refusal = this.#tell(() => this.#context.engine.send({ type: "input.clear" }));
    if (refusal !== null) return refusal;
    this.#bufferedMs = 0;
    this.#context.emit({ type: "input.cleared" });
    this.#dropOpen();
    return null;
  }
  /** Silence since `startMs` becomes an item of its own. */
  commitSilence(startMs: number): void {
    const { emit, items } = this.#context;
    const itemId = items.promise();
    emit({ type: "input.timed_out", itemId, startMs, endMs: this.#time.peerMs });
    this.#bufferedMs = 0;
    this.#addItem(itemId);
  }
  /** Has the speech in an item of the peer's transcribed. */
  read(itemId: string, recording: Float32Array): void {
    const segment = this.#newSegment(this.#context.ids("seg"), this.#time.samples, itemId);
    this.#await(segment);
    this.#context.engine.transcribe?.(segment.id, recording);
  }
  handle(event: Extract<EngineEvent, { readonly segmentId: string }>): void {
    if (event.type === "speech.started") {
      this.#started(event.segmentId, event.startSample);
      return;
    }
    const segment = this.#segments.get(event.segmentId);
    if (segment === undefined) return;
    switch (event.type) {
      case "speech.stopped":
        if (!segment.committed) this.#stopped(segment, event.endSample);
        return;
      case "transcript.delta":
        this.#delta(segment, event.delta);
        return;
      case "transcript.completed":
        this.#completed(segment, event.text.trim(), event.audioSeconds);
        return;
      case "transcript.failed":
        this.#failed(segment, event.error);
    }
  }
  close(): void {
    this.#stopStallWatch();
    for (const segment of this.#segments.values()) segment.stopWaiting();
    this.#segments.clear();
  }

  #started(segmentId: string, startSample: number): void {
    if (this.#context.settings().turnDetection.type === "none" || this.#segments.has(segmentId)) return;
    const segment = this.#newSegment(segmentId, startSample);
    this.#context.emit({ type: "speech.started", itemId: segment.itemId, atMs: this.#time.peerMsAt(startSample) });
    this.#filledMs = 0;
    this.#watchStall(STALL_MS);
    this.#context.listener.speechStarted();
  }
  #stopped(segment: Segment, endSample: number): void {
    this.#context.emit({ type: "speech.stopped", itemId: segment.itemId, atMs: this.#time.peerMsAt(endSample) });
    this.#commit(segment);
  }
  #delta(segment: Segment, delta: string): void {
    segment.partial += delta;
    const { itemId, contentIndex } = segment;
    if (this.#transcribes) this.#context.emit({ type: "transcript.delta", itemId, contentIndex, delta });
    if (segment.partial.trim() !== "" && !segment.recorded) this.#confirm(segment, true);
  }
  #completed(segment: Segment, text: string, audioSeconds: number): void {
    if (!segment.committed) this.#commit(segment);
    this.#forget(segment);
    const { items, emit, listener } = this.#context;
    const { itemId, contentIndex } = segment;
    const item = items.get(itemId);
    if (item?.type === "message") {
      const content = item.content.map((part) => (isUnread(part) ? { ...part, transcript: text } : part));
      items.set({ ...item, content });
      if (this.#transcribes) emit({ type: "transcript.completed", itemId, contentIndex, text, audioSeconds });
    }
    if (segment.recorded) listener.recordingRead();
    else listener.speechEnded(item === undefined || text === "" ? { type: "nothing" } : { type: "words", text });
  }
  #failed(segment: Segment, error: AppError): void {
    if (!segment.committed) this.#commit(segment);
    this.#forget(segment);
    const { itemId, contentIndex } = segment;
    if (this.#context.items.get(itemId) !== undefined) {
      this.#context.emit({ type: "transcript.failed", itemId, contentIndex, error });
    }
    if (segment.recorded) this.#context.listener.recordingRead();
    else this.#context.listener.speechEnded({ type: "failed" });
  }

  #newSegment(id: string, startSample: number, recordedItemId: string | null = null): Segment {
    const recordedItem = recordedItemId === null ? undefined : this.#context.items.get(recordedItemId);
    const segment: Segment = {
      id,
      contentIndex: recordedItem?.type === "message" ? recordedItem.content.findIndex(isUnread) : 0,
      itemId: recordedItemId ?? this.#context.items.promise(),
      startSample,
      committed: false,
      confirmed: false,
      recorded: recordedItemId !== null,
      partial: "",
      stopWaiting: () => {},
    };
    this.#segments.set(id, segment);
    return segment;
  }
  #commit(segment: Segment): void {
    this.#bufferedMs = 0;
    this.#stopStallWatch();
    this.#addItem(segment.itemId);
    this.#await(segment);
  }
  #await(segment: Segment): void {
    segment.committed = true;
    segment.stopWaiting = this.#context.clock.schedule(TRANSCRIPT_MS_MAX, () => {
      const message = `No transcript came within ${TRANSCRIPT_MS_MAX / 1000} s of the end of the speech.`;
      this.#failed(segment, new AppError("stt_failed", message));
    });
  }
  #addItem(itemId: string): void {
    const { items, emit } = this.#context;
    const item = {
      type: "message",
      id: itemId,
      status: "completed",
      role: "user",
      content: [{ type: "speech", transcript: null }],
      interrupted: false,
    } as const;
    const previousId = items.lastId;
    items.add(item);
    emit({ type: "input.committed", itemId, previousId });
    emit({ type: "item.added", item, previousId, ofResponse: false });
    emit({ type: "item.done", item, previousId, ofResponse: false });
  }
  #confirm(segment: Segment, again = false): void {
    if (segment.confirmed && !again) return;
    segment.confirmed = true;
    this.#context.listener.speechConfirmed(segment.partial);
  }
  #dropOpen(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#stopStallWatch();
    this.#forget(open);
    this.#context.listener.speechEnded({ type: "nothing" });
  }
  #forget(segment: Segment): void {
    segment.stopWaiting();
    this.#segments.delete(segment.id);
  }
  get #transcribes(): boolean {
    return this.#context.settings().transcription !== null;
  }
  get #prefixPaddingMs(): number {
    const turn = this.#context.settings().turnDetection;
    return turn.type === "server_vad" ? turn.prefixPaddingMs : 300;
  }
  /** A microphone that is switched off in mid-speech must not leave the turn open: silence takes its place. */
  #watchStall(delayMs: number): void {
    this.#stopStallWatch();
    this.#stopStallWatch = this.#context.clock.schedule(delayMs, () => {
      const open = this.#open;
      if (open === undefined) return;
      // A client that is faster than the engine is made to wait: then nothing is missing.
      if (this.#context.engine.backlogSamples > 0) {
        this.#watchStall(delayMs);
        return;
      }
      if (this.#filledMs >= FILL_MS_MAX) {
        this.#stopped(open, this.#time.samples);
        return;
      }
      const samples = msToSamples(delayMs, this.#time.hz);
      this.#filledMs += delayMs;
      this.#context.engine.push(new Float32Array(samples));
      this.#time.inserted(samples);
      this.#watchStall(FILL_MS);
    });
  }
  #tell(send: () => void): ClientError | null {
    try {
      send();
      return null;
    } catch (error) {
      if (error instanceof ClientError) return error;
      throw error;
    }
  }
}

const isUnread = (part: ItemContent): boolean => part.type === "speech" && part.transcript === null;
