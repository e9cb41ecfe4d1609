/**
 * Frame probabilities in, the beginnings, pauses and ends of speech out. Plain media time: no clock, no promises.
 *
 * A segment starts after a few voiced frames (more of them, and louder, while the assistant is audible, for its own
 * voice comes back through the room), and reaches back to the first of them and the padding before it. It ends after the
 * silence that the settings name; under `semantic_vad` somebody else may end it at a pause (`end`).
 */
import { msToSamples } from "../../util/clock.ts";
import type { TurnDetection } from "../engine.ts";
import { VAD_HZ } from "./vad/vad.ts";

export type SegmenterStep =
  /** `audioFromSample` may lie before the end of the last segment: a soft beginning in its silence is not lost. */
  | { readonly type: "started"; readonly startSample: number; readonly audioFromSample: number }
  /** Silence long enough to guess that this is the end. */
  | { readonly type: "paused" }
  /** Silence long enough to ask whether the turn is complete. Only under `semantic_vad`. */
  | { readonly type: "ask" }
  | { readonly type: "resumed" }
  | { readonly type: "stopped"; readonly endSample: number };

interface Tuning {
  readonly threshold: number;
  readonly prefixSamples: number;
  readonly silenceSamples: number;
  readonly semantic: boolean;
}

const EAGERNESS_MS = { low: 8_000, medium: 4_000, high: 2_000, auto: 4_000 } as const;
/** The silence after which the final transcript is begun, in the hope that the turn is over. */
const PAUSE_MS = 128;
/** What Smart Turn was trained to be asked after. */
const ASK_MS = 200;
/** Voiced frames that make a beginning: 64 ms, so that "no" counts; 160 ms against the assistant's own voice. */
const START_FRAMES = 2;
const START_FRAMES_AUDIBLE = 5;
/** Added to the threshold while the assistant is audible, and for the room's echo after it. */
const AUDIBLE_THRESHOLD_EXTRA = 0.2;
const AUDIBLE_THRESHOLD_MAX = 0.95;
const ECHO_TAIL_MS = 160;
/** Hysteresis, as Silero's authors use it: speech goes on until the probability is this much below the threshold. */
const STOP_THRESHOLD_BELOW = 0.15;
const STOP_THRESHOLD_MIN = 0.01;
/** Voiced frames that end a pause: a single click does not. */
const RESUME_FRAMES = 2;
const DEFAULT_PREFIX_MS = 300;

export class Segmenter {
  #tuning: Tuning = { threshold: 0.5, prefixSamples: 0, silenceSamples: 0, semantic: false };
  #enabled = false;
  #atSample = 0;
  #open = false;
  /** Consecutive voiced frames before a beginning, or within a pause. */
  #voicedFrames = 0;
  #firstVoicedSample = 0;
  #lastVoicedEndSample = 0;
  /** No audio before this belongs to the next segment. */
  #floorSample = 0;
  #lastEndSample = 0;
  #paused = false;
  #asked = false;
  #audible = false;
  #audibleUntilSample = 0;

  constructor(detection: TurnDetection) {
    this.configure(detection);
  }
  /** One past the last sample seen. */
  get atSample(): number {
    return this.#atSample;
  }
  get open(): boolean {
    return this.#open;
  }
  /** Takes effect with the next frame; an open segment goes on under the new settings. */
  configure(detection: TurnDetection): void {
    this.#enabled = detection.type !== "none";
    if (detection.type === "none") this.drop();
    const samples = (ms: number): number => msToSamples(ms, VAD_HZ);
    this.#tuning =
      detection.type === "server_vad"
        ? {
            threshold: detection.threshold,
            prefixSamples: samples(detection.prefixPaddingMs),
            silenceSamples: Math.max(1, samples(detection.silenceMs)),
            semantic: false,
          }
        : {
            threshold: 0.5,
            prefixSamples: samples(DEFAULT_PREFIX_MS),
            silenceSamples: samples(EAGERNESS_MS[detection.type === "semantic_vad" ? detection.eagerness : "auto"]),
            semantic: detection.type === "semantic_vad",
          };
  }
  /** Whether the assistant can be heard. */
  setAudible(audible: boolean): void {
    if (this.#audible && !audible) this.#audibleUntilSample = this.#atSample + msToSamples(ECHO_TAIL_MS, VAD_HZ);
    this.#audible = audible;
  }
  /** Is a frame of this probability speech, as things stand? */
  voiced(probability: number): boolean {
    return probability >= this.#threshold();
  }
  /** @param samples the frame's length: less than a whole frame only at a commit or the end */
  frame(probability: number, samples: number): SegmenterStep[] {
    const startSample = this.#atSample;
    this.#atSample += samples;
    if (!this.#enabled) return [];
    return this.#open ? this.#inside(probability) : this.#outside(probability, startSample);
  }
  /** Media time goes on by samples that nobody heard. */
  skip(samples: number): SegmenterStep[] {
    const steps = this.end();
    this.#atSample += samples;
    this.drop();
    return steps;
  }
  /** Ends the open segment now. */
  end(): SegmenterStep[] {
    if (!this.#open) return [];
    this.#close(this.#lastVoicedEndSample);
    return [{ type: "stopped", endSample: this.#atSample }];
  }
  /** Forgets the open segment, and all that was heard so far. */
  drop(): void {
    this.#close(this.#atSample);
  }

  #threshold(): number {
    const { threshold } = this.#tuning;
    if (this.#open || !this.#echoes()) return threshold;
    return Math.max(threshold, Math.min(AUDIBLE_THRESHOLD_MAX, threshold + AUDIBLE_THRESHOLD_EXTRA));
  }
  #echoes(): boolean {
    return this.#audible || this.#atSample < this.#audibleUntilSample;
  }
  #outside(probability: number, frameStartSample: number): SegmenterStep[] {
    if (!this.voiced(probability)) {
      this.#voicedFrames = 0;
      return [];
    }
    if (this.#voicedFrames === 0) this.#firstVoicedSample = frameStartSample;
    this.#voicedFrames += 1;
    if (this.#voicedFrames < (this.#echoes() ? START_FRAMES_AUDIBLE : START_FRAMES)) return [];
    this.#open = true;
    this.#lastVoicedEndSample = this.#atSample;
    const audioFromSample = Math.max(this.#floorSample, this.#firstVoicedSample - this.#tuning.prefixSamples);
    return [{ type: "started", startSample: Math.max(audioFromSample, this.#lastEndSample), audioFromSample }];
  }
  #inside(probability: number): SegmenterStep[] {
    const { threshold, silenceSamples, semantic } = this.#tuning;
    const stopThreshold = Math.max(STOP_THRESHOLD_MIN, threshold - STOP_THRESHOLD_BELOW);
    this.#voicedFrames = probability >= threshold ? this.#voicedFrames + 1 : 0;
    if (this.#paused ? this.#voicedFrames >= RESUME_FRAMES : probability >= stopThreshold) {
      const resumed = this.#paused;
      this.#paused = false;
      this.#asked = false;
      this.#lastVoicedEndSample = this.#atSample;
      return resumed ? [{ type: "resumed" }] : [];
    }
    const silentSamples = this.#atSample - this.#lastVoicedEndSample;
    const steps: SegmenterStep[] = [];
    if (!this.#paused && silentSamples >= Math.min(silenceSamples, msToSamples(PAUSE_MS, VAD_HZ))) {
      this.#paused = true;
      steps.push({ type: "paused" });
    }
    if (semantic && !this.#asked && silentSamples >= msToSamples(ASK_MS, VAD_HZ)) {
      this.#asked = true;
      steps.push({ type: "ask" });
    }
    if (silentSamples >= silenceSamples) steps.push(...this.end());
    return steps;
  }
  #close(floorSample: number): void {
    this.#open = false;
    this.#paused = false;
    this.#asked = false;
    this.#voicedFrames = 0;
    this.#floorSample = floorSample;
    this.#lastEndSample = this.#atSample;
  }
}
