/**
 * One session's hearing: samples in, speech events and transcripts out. Samples and orders wait in one inbox and are
 * worked off in their order, so a commit takes exactly what was pushed before it. Media time counts samples; the clock is
 * asked for one thing only: whether audio has stopped arriving in mid-speech.
 */

import { SampleRing } from "../../audio/ring.ts";
import { EngineError, toAppError } from "../../errors.ts";
import type { Clock } from "../../util/clock.ts";
import type { Log } from "../../util/log.ts";
import type { EngineEvent, EngineSettings } from "../engine.ts";
import { Inbox, type Order } from "./inbox.ts";
import { Segmenter, type SegmenterStep } from "./segmenter.ts";
import { SegmentTranscriber } from "./stt/segment-transcriber.ts";
import type { Stt } from "./stt/stt.ts";
import { TURN_SAMPLES, type TurnModel } from "./turn/turn.ts";
import { VAD_FRAME_SAMPLES, type Vad, type VadStream } from "./vad/vad.ts";

export interface EarOptions {
  readonly vad: Vad;
  readonly turn: TurnModel | null;
  readonly stt: Stt;
  readonly settings: EngineSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly segmentId: () => string;
  /** At a pause, what the turn probably says; null when it goes on after all. */
  readonly onGuess: (text: string | null) => void;
  readonly emit: (event: EngineEvent) => void;
}

interface Segment {
  /** Null while push to talk has not committed it. */
  id: string | null;
  readonly transcriber: SegmentTranscriber;
}

/** Frames that go to the detector in one call: 2 s, so that a fast writer is worked off fast. */
const BATCH_FRAMES = 64;
/** Pieces of a segment that may wait for their transcript before hearing waits too. */
const PENDING_PIECES_MAX = 2;
/** Segments that may wait for theirs. */
const PENDING_SEGMENTS_MAX = 4;
/** Without audio for this long, open speech has ended: the microphone was muted, or the network is gone. */
const STARVED_MS = 1_500;
/** A turn is complete if the model says so with at least this probability. */
const COMPLETE_PROBABILITY = 0.5;
/** Push to talk: silence that makes the final transcript worth beginning, 128 ms. */
const HELD_PAUSE_FRAMES = 4;
/** Speech in a recording, which nobody speaks over. */
const RECORDING_THRESHOLD = 0.5;

export class Ear {
  readonly #options: EarOptions;
  readonly #inbox: Inbox;
  readonly #vad: VadStream;
  readonly #segmenter: Segmenter;
  /** Eight seconds for the turn model; a segment's beginning is read from here too. */
  readonly #ring = new SampleRing(TURN_SAMPLES);
  #settings: EngineSettings;
  #segment: Segment | null = null;
  /** Push to talk: what was heard since the last commit or clear. */
  #held: Segment | null = null;
  #heldSilentFrames = 0;
  readonly #pending = new Set<Promise<void>>();
  #working: Promise<void> | null = null;
  #pauses = 0;
  #closed = false;
  #cancelWatch: () => void = () => {};

  constructor(options: EarOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#inbox = new Inbox(options.log);
    this.#vad = options.vad.stream();
    this.#segmenter = new Segmenter(options.settings.turnDetection);
  }
  get backlogSamples(): number {
    return this.#inbox.samples;
  }
  push(pcm: Float32Array): void {
    if (this.#closed || pcm.length === 0) return;
    this.#inbox.push(pcm);
    this.#watch();
    this.#work();
  }
  order(order: Order): void {
    if (this.#closed) return;
    this.#inbox.order(order);
    this.#work();
  }
  /** A recording beside the stream, with a detector and a segment of its own. */
  transcribe(segmentId: string, pcm: Float32Array): void {
    if (this.#closed) return;
    const reading = this.#read(segmentId, pcm).finally(() => this.#pending.delete(reading));
    this.#pending.add(reading);
  }
  /** Settles when everything that was pushed has been heard, and every transcript is out. */
  async settled(): Promise<void> {
    while (this.#working !== null || this.#pending.size > 0) {
      await Promise.all([this.#working, ...this.#pending]);
    }
  }
  /** Drops everything. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#cancelWatch();
    this.#inbox.clear();
    this.#segment?.transcriber.cancel();
    this.#held?.transcriber.cancel();
    for (const transcriber of this.#transcribing) transcriber.cancel();
  }

  // ------------------------------------------------------------------------------------------------------- the work

  #work(): void {
    if (this.#working !== null) return;
    this.#working = this.#workOff().finally(() => {
      this.#working = null;
      if (!this.#closed && !this.#inbox.empty) this.#work();
    });
  }
  async #workOff(): Promise<void> {
    try {
      for (;;) {
        await this.#patience();
        const next = this.#inbox.next(BATCH_FRAMES * VAD_FRAME_SAMPLES, VAD_FRAME_SAMPLES);
        if (next === null || this.#closed) return;
        if (next.type === "audio") await this.#hear(next.pcm);
        else this.#obey(next);
      }
    } catch (error) {
      // Detectors answer for their own failures; what comes here is a fault.
      this.#options.emit({ type: "failed", error: toAppError(error) });
      this.close();
    }
  }
  /** Hearing waits while too much of what was heard waits for its words: the backlog then shows where it belongs. */
  async #patience(): Promise<void> {
    while (!this.#closed && this.#pending.size > PENDING_SEGMENTS_MAX) await Promise.race(this.#pending);
    for (const { transcriber } of [this.#segment, this.#held].filter((segment) => segment !== null)) {
      while (!this.#closed && transcriber.pendingPieces > PENDING_PIECES_MAX) await transcriber.progress();
    }
  }
  /** @param pcm whole frames, or less than one before an order */
  async #hear(pcm: Float32Array): Promise<void> {
    const frames = Math.ceil(pcm.length / VAD_FRAME_SAMPLES);
    const padded = new Float32Array(frames * VAD_FRAME_SAMPLES);
    padded.set(pcm);
    const probabilities = await this.#vad.push(padded);
    for (let i = 0; i < frames && !this.#closed; i++) {
      const frame = pcm.slice(i * VAD_FRAME_SAMPLES, (i + 1) * VAD_FRAME_SAMPLES);
      this.#frame(frame, probabilities[i] ?? 0);
    }
  }
  #frame(frame: Float32Array, probability: number): void {
    this.#ring.push(frame);
    const voiced = this.#segmenter.voiced(probability);
    // A segment that begins with this frame reads it from the ring.
    this.#segment?.transcriber.push(frame, voiced);
    for (const step of this.#segmenter.frame(probability, frame.length)) this.#step(step);
    if (this.#settings.turnDetection.type === "none") this.#hold(frame, voiced);
  }
  #step(step: SegmenterStep): void {
    if (step.type === "started") this.#start(step.startSample, step.audioFromSample);
    else if (step.type === "paused") {
      this.#pauses += 1;
      this.#segment?.transcriber.pause();
    } else if (step.type === "resumed") {
      this.#pauses += 1;
      this.#segment?.transcriber.resume();
      this.#options.onGuess(null);
    } else if (step.type === "ask") this.#askTurn();
    else this.#stop(step.endSample);
  }

  // -------------------------------------------------------------------------------------------------------- segments

  #start(startSample: number, audioFromSample: number): void {
    const segmentId = this.#options.segmentId();
    const segment = this.#open(segmentId);
    this.#segment = segment;
    const { atSample } = this.#segmenter;
    this.#options.emit({ type: "speech.started", segmentId, startSample, atSample });
    this.#feed(segment, audioFromSample);
  }
  /** Gives a new segment what was heard before it was known to be one. */
  #feed(segment: Segment, fromSample: number): void {
    const pcm = this.#ring.read(fromSample);
    for (let at = 0; at < pcm.length; at += VAD_FRAME_SAMPLES) {
      // The last two frames are those that made it one; before them lies the padding.
      const voiced = pcm.length - at <= 2 * VAD_FRAME_SAMPLES;
      segment.transcriber.push(pcm.subarray(at, at + VAD_FRAME_SAMPLES), voiced);
    }
  }
  #stop(endSample: number): void {
    const segment = this.#segment;
    if (segment === null || segment.id === null) return;
    this.#segment = null;
    this.#pauses += 1;
    const { atSample } = this.#segmenter;
    this.#options.emit({ type: "speech.stopped", segmentId: segment.id, endSample, atSample });
    this.#transcribe(segment.id, segment.transcriber);
  }
  #open(id: string | null): Segment {
    const { transcription } = this.#settings;
    const segment: Segment = {
      id,
      transcriber: new SegmentTranscriber({
        stt: this.#options.stt,
        language: transcription?.language ?? null,
        prompt: transcription?.prompt ?? null,
        partials: id !== null,
        onGuess: id === null ? undefined : (text) => this.#options.onGuess(text),
        onDelta: transcription === null ? null : (delta) => this.#delta(segment.id, delta),
      }),
    };
    return segment;
  }
  #delta(segmentId: string | null, delta: string): void {
    if (!this.#closed && segmentId !== null) this.#options.emit({ type: "transcript.delta", segmentId, delta });
  }
  readonly #transcribing = new Set<SegmentTranscriber>();
  #transcribe(segmentId: string, transcriber: SegmentTranscriber): void {
    this.#transcribing.add(transcriber);
    const done = transcriber
      .finish()
      .then(
        ({ text, audioSeconds }): EngineEvent => ({ type: "transcript.completed", segmentId, text, audioSeconds }),
        (error: unknown): EngineEvent => ({ type: "transcript.failed", segmentId, error: transcriptError(error) }),
      )
      .then((event) => {
        this.#transcribing.delete(transcriber);
        this.#pending.delete(done);
        if (!this.#closed) this.#options.emit(event);
      });
    this.#pending.add(done);
  }
  async #read(segmentId: string, pcm: Float32Array): Promise<void> {
    const { transcriber } = this.#open(segmentId);
    const vad = this.#options.vad.stream();
    const batchSamples = BATCH_FRAMES * VAD_FRAME_SAMPLES;
    try {
      for (let start = 0; start < pcm.length && !this.#closed; start += batchSamples) {
        const batch = pcm.subarray(start, start + batchSamples);
        const frames = new Float32Array(Math.ceil(batch.length / VAD_FRAME_SAMPLES) * VAD_FRAME_SAMPLES);
        frames.set(batch);
        const probabilities = await vad.push(frames);
        for (const [i, probability] of probabilities.entries()) {
          const frame = frames.subarray(i * VAD_FRAME_SAMPLES, (i + 1) * VAD_FRAME_SAMPLES);
          transcriber.push(frame, probability >= RECORDING_THRESHOLD);
        }
        while (!this.#closed && transcriber.pendingPieces > PENDING_PIECES_MAX) await transcriber.progress();
      }
      this.#transcribe(segmentId, transcriber);
    } catch (error) {
      transcriber.cancel();
      this.#options.emit({ type: "transcript.failed", segmentId, error: transcriptError(error) });
    }
  }
  #askTurn(): void {
    const { turn, log } = this.#options;
    const pause = this.#pauses;
    if (turn === null) return;
    turn.complete(this.#ring.readLast(TURN_SAMPLES)).then(
      (probability) => {
        // Another pause, or none any more: the answer is about something else.
        if (this.#closed || pause !== this.#pauses || probability < COMPLETE_PROBABILITY) return;
        for (const step of this.#segmenter.end()) this.#step(step);
      },
      // Then the longest wait ends the turn.
      (error: unknown) => log.warn({ code: toAppError(error).code }, "turn-end model failed; waiting for silence"),
    );
  }

  // ---------------------------------------------------------------------------------------------------------- orders

  #obey(order: Order): void {
    if (order.type === "settings") {
      this.#settings = order.settings;
      const { turnDetection } = order.settings;
      if (turnDetection.type === "none" && this.#segment !== null) this.#end();
      this.#segmenter.configure(turnDetection);
    } else if (order.type === "commit") this.#commit(order.segmentId);
    else if (order.type === "clear") this.#clear();
    else if (order.type === "playback") this.#segmenter.setAudible(order.audible);
    else if (order.type === "gap") this.#skip(order.samples);
    else this.#end();
  }
  /** Push to talk: keeps what is heard until it is committed, transcribing as it goes. */
  #hold(frame: Float32Array, voiced: boolean): void {
    this.#held ??= this.#open(null);
    const { transcriber } = this.#held;
    transcriber.push(frame, voiced);
    this.#heldSilentFrames = voiced ? 0 : this.#heldSilentFrames + 1;
    if (voiced) transcriber.resume();
    else if (this.#heldSilentFrames === HELD_PAUSE_FRAMES) transcriber.pause();
  }
  #commit(segmentId: string): void {
    const segment = this.#segment ?? this.#held;
    this.#segment = null;
    this.#held = null;
    this.#forgetHeard();
    if (segment === null) {
      this.#options.emit({ type: "transcript.completed", segmentId, text: "", audioSeconds: 0 });
    } else {
      segment.id = segmentId;
      this.#transcribe(segmentId, segment.transcriber);
    }
  }
  #clear(): void {
    this.#segment?.transcriber.cancel();
    this.#held?.transcriber.cancel();
    this.#segment = null;
    this.#held = null;
    this.#forgetHeard();
  }
  #forgetHeard(): void {
    this.#pauses += 1;
    this.#segmenter.drop();
    this.#heldSilentFrames = 0;
  }
  /** Ends open speech as if silence had followed. */
  #end(): void {
    for (const step of this.#segmenter.end()) this.#step(step);
  }
  #skip(samples: number): void {
    for (const step of this.#segmenter.skip(samples)) this.#step(step);
    for (let left = samples; left > 0; left -= TURN_SAMPLES) {
      this.#ring.push(new Float32Array(Math.min(left, TURN_SAMPLES)));
    }
  }
  #watch(): void {
    this.#cancelWatch();
    this.#cancelWatch = this.#options.clock.schedule(STARVED_MS, () => {
      // While there is a backlog, audio has not run out yet.
      if (!this.#inbox.empty || this.#working !== null) this.#watch();
      else if (this.#segment !== null) {
        this.#options.log.info({}, "audio stopped in mid-speech; the turn is closed");
        this.#end();
      }
    });
  }
}

function transcriptError(error: unknown): EngineError | ReturnType<typeof toAppError> {
  const known = toAppError(error);
  if (known.code !== "internal_error") return known;
  return new EngineError("stt", "The speech could not be transcribed.", { cause: error });
}
