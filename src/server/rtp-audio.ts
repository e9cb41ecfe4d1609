/**
 * The assistant's voice on a steady line. What the session releases waits here, at its own rate; every 20 ms one frame
 * at 48 kHz leaves, silence when there is nothing to say. Nothing is handed on early, so that clearing is immediate and
 * the playback position is what was really sent.
 */
import { floatToInt16 } from "../audio/pcm.ts";
import { Resampler } from "../audio/resample.ts";
import { assert } from "../util/assert.ts";
import { type Clock, samplesToMs } from "../util/clock.ts";
import { LINE_HZ } from "./peer-wire.ts";

/** What libwebrtc takes at a time. */
const PIECE_SAMPLES = LINE_HZ / 100;
const FRAME_MS = 20;
const FRAME_SAMPLES = (LINE_HZ * FRAME_MS) / 1000;
/** A frame that is later than this is not made up for: its time has passed, and the line begins anew. */
const LATENESS_MAX_MS = 60;
/** A late line sends at most this many frames at a time until it is on time again. */
const FRAMES_PER_TICK_MAX = 2;
/** Timers of whole milliseconds may ring this much too soon. */
const EARLY_MS = 1;
/** Cut speech ends in a slope this long, not in a click. */
const FADE_SAMPLES = (LINE_HZ * 5) / 1000;
/** Far beyond any answer: an engine that gets here is broken. */
const QUEUE_MS_MAX = 15 * 60_000;

/** Takes 10 ms of mono PCM16 at 48 kHz. */
export type LineWriter = (piece: Int16Array) => void;

interface Chunk {
  readonly pcm: Float32Array;
  readonly hz: number;
  readSamples: number;
}

/** Released audio that has not been sent, read as 48 kHz. One resampler lives as long as speech goes on at one rate. */
class SpeechQueue {
  #chunks: Chunk[] = [];
  #resampler: Resampler | null = null;
  #resamplerHz = 0;
  /** Resampled and not yet sent. */
  #ready = new Float32Array(0);
  /** Milliseconds given to the resampler since it began, and got back. */
  #fedMs = 0;
  #gotMs = 0;

  push(pcm: Float32Array, hz: number): void {
    if (pcm.length === 0) return;
    this.#chunks.push({ pcm, hz, readSamples: 0 });
    assert(this.unplayedMs <= QUEUE_MS_MAX, `more than ${QUEUE_MS_MAX} ms of speech wait for the line`);
  }

  get unplayedMs(): number {
    const waitingMs = this.#chunks.reduce(
      (sum, chunk) => sum + samplesToMs(chunk.pcm.length - chunk.readSamples, chunk.hz),
      0,
    );
    return waitingMs + samplesToMs(this.#ready.length, LINE_HZ) + Math.max(0, this.#fedMs - this.#gotMs);
  }

  /** Up to `samples` of speech; fewer only when there is no more. */
  take(samples: number): Float32Array {
    while (this.#ready.length < samples && this.#readChunk());
    if (this.#ready.length < samples) this.#endSpeech();
    const taken = this.#ready.subarray(0, samples);
    this.#ready = this.#ready.subarray(taken.length);
    return taken;
  }

  /** Drops everything but a short slope down to silence. Returns the milliseconds dropped. */
  clear(): number {
    const unplayedMs = this.unplayedMs;
    const slope = this.take(FADE_SAMPLES).slice();
    for (let i = 0; i < slope.length; i++) slope[i]! *= 1 - (i + 1) / slope.length;
    this.#chunks = [];
    this.#resampler = null;
    this.#fedMs = this.#gotMs = 0;
    this.#ready = slope;
    return Math.max(0, unplayedMs - samplesToMs(slope.length, LINE_HZ));
  }

  /** Resamples at most 20 ms of the oldest chunk. False when none is left. */
  #readChunk(): boolean {
    const chunk = this.#chunks[0];
    if (chunk === undefined) return false;
    if (this.#resampler === null || this.#resamplerHz !== chunk.hz) {
      this.#endSpeech();
      this.#resampler = new Resampler(chunk.hz, LINE_HZ);
      this.#resamplerHz = chunk.hz;
    }
    const end = Math.min(chunk.pcm.length, chunk.readSamples + Math.ceil((chunk.hz * FRAME_MS) / 1000));
    const slice = chunk.pcm.subarray(chunk.readSamples, end);
    chunk.readSamples = end;
    if (end === chunk.pcm.length) this.#chunks.shift();
    this.#fedMs += samplesToMs(slice.length, chunk.hz);
    this.#append(this.#resampler.push(slice));
    return true;
  }

  #endSpeech(): void {
    if (this.#resampler !== null) this.#append(this.#resampler.flush());
    this.#resampler = null;
    this.#fedMs = this.#gotMs = 0;
  }

  #append(pcm: Float32Array): void {
    this.#gotMs += samplesToMs(pcm.length, LINE_HZ);
    const joined = new Float32Array(this.#ready.length + pcm.length);
    joined.set(this.#ready);
    joined.set(pcm, this.#ready.length);
    this.#ready = joined;
  }
}

export class RtpAudio {
  readonly #clock: Clock;
  readonly #write: LineWriter;
  readonly #queue = new SpeechQueue();
  #cancelTick: (() => void) | null = null;
  /** The line's own time: frame n is due at `#originMs + n * FRAME_MS`. */
  #originMs = 0;
  #frameIndex = 0;
  #speechSamples = 0;
  #lateFrameCount = 0;

  constructor(clock: Clock, write: LineWriter) {
    this.#clock = clock;
    this.#write = write;
  }

  /** Begins to send; silence until there is speech. */
  start(): void {
    assert(this.#cancelTick === null, "the line has started already");
    this.#originMs = this.#clock.nowMs();
    this.#frameIndex = 0;
    this.#tick();
  }

  /** Idempotent. */
  stop(): void {
    this.#cancelTick?.();
    this.#cancelTick = null;
  }

  /** Mono f32 at any rate. */
  push(pcm: Float32Array, hz: number): void {
    this.#queue.push(pcm, hz);
  }

  /** The line is silent from the next frame on, save a 5 ms slope. Returns the milliseconds that will not be heard. */
  clear(): number {
    return this.#queue.clear();
  }

  /** Released and not sent. */
  get unplayedMs(): number {
    return this.#queue.unplayedMs;
  }

  /** Speech sent since the start. */
  get playedMs(): number {
    return samplesToMs(this.#speechSamples, LINE_HZ);
  }

  /** Frames whose time had passed by more than 60 ms, because the process stood still. */
  get lateFrameCount(): number {
    return this.#lateFrameCount;
  }

  #tick(): void {
    const nowMs = this.#clock.nowMs();
    const latenessMs = nowMs - this.#dueMs();
    if (latenessMs > LATENESS_MAX_MS) {
      this.#lateFrameCount += Math.floor(latenessMs / FRAME_MS);
      this.#originMs = nowMs - this.#frameIndex * FRAME_MS;
    }
    for (let sent = 0; sent < FRAMES_PER_TICK_MAX && this.#dueMs() <= nowMs + EARLY_MS; sent++) this.#sendFrame();
    // A line that is still late takes its next turn half a frame from now: two frames every 10 ms would be a burst.
    const delayMs = Math.max(FRAME_MS / 2, this.#dueMs() - nowMs);
    this.#cancelTick = this.#clock.schedule(delayMs, () => this.#tick());
  }

  #dueMs(): number {
    return this.#originMs + this.#frameIndex * FRAME_MS;
  }

  #sendFrame(): void {
    this.#frameIndex += 1;
    const speech = this.#queue.take(FRAME_SAMPLES);
    this.#speechSamples += speech.length;
    const frame = new Float32Array(FRAME_SAMPLES);
    frame.set(speech);
    for (let at = 0; at < FRAME_SAMPLES; at += PIECE_SAMPLES) {
      this.#write(floatToInt16(frame.subarray(at, at + PIECE_SAMPLES)));
    }
  }
}
