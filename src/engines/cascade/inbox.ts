/** What waits to be heard: samples and orders in the order in which they came, within a limit. */
import { EngineError } from "../../errors.ts";
import type { Log } from "../../util/log.ts";
import type { EngineSettings } from "../engine.ts";

export type Order =
  | { readonly type: "settings"; readonly settings: EngineSettings }
  | { readonly type: "commit"; readonly segmentId: string }
  | { readonly type: "clear" }
  | { readonly type: "playback"; readonly audible: boolean }
  /** No more audio: open speech ends. */
  | { readonly type: "end" }
  /** Samples that were dropped. Media time goes on without them. */
  | { readonly type: "gap"; readonly samples: number };

export type InboxItem = { readonly type: "audio"; readonly pcm: Float32Array } | Order;

/** 2 min at 16 kHz, 7.7 MB. Who heeds `backlogSamples` never gets here. */
const BACKLOG_SAMPLES_MAX = 120 * 16_000;
const ORDERS_MAX = 10_000;

export class Inbox {
  readonly #log: Log;
  readonly #samplesMax: number;
  #items: InboxItem[] = [];
  #head = 0;
  #samples = 0;
  #dropped = 0;
  #orders = 0;

  constructor(log: Log, samplesMax: number = BACKLOG_SAMPLES_MAX) {
    this.#log = log;
    this.#samplesMax = samplesMax;
  }
  get samples(): number {
    return this.#samples;
  }
  /** Samples dropped so far because the limit was reached. */
  get droppedSamples(): number {
    return this.#dropped;
  }
  /** True if nothing is left to work off; less than a frame of samples may be. */
  get empty(): boolean {
    return this.#head >= this.#items.length || this.#idle;
  }
  /** What is left is less than a frame, and no order waits behind it. */
  #idle = false;

  push(pcm: Float32Array): void {
    const taken = pcm.subarray(0, Math.max(0, this.#samplesMax - this.#samples));
    if (taken.length > 0) {
      this.#samples += taken.length;
      // A copy: the caller may use its buffer again.
      this.#items.push({ type: "audio", pcm: taken.slice() });
      this.#idle = false;
    }
    if (taken.length < pcm.length) this.#drop(pcm.length - taken.length);
  }
  /** @throws {EngineError} engine_failed when thousands wait already */
  order(order: Order): void {
    this.#orders += 1;
    if (this.#orders > ORDERS_MAX) throw new EngineError("engine", `${ORDERS_MAX} commands wait already; send fewer`);
    this.#items.push(order);
    this.#idle = false;
  }
  /**
   * The next order, or the next samples: whole frames up to `samplesMax`, or a rest of less than a frame if an order
   * waits behind it. Null if there is nothing to do yet.
   */
  next(samplesMax: number, frameSamples: number): InboxItem | null {
    const first = this.#items[this.#head];
    if (first === undefined) return null;
    if (first.type !== "audio") {
      this.#advance(1);
      if (first.type !== "gap") this.#orders -= 1;
      return first;
    }
    const { available, ordered } = this.#run(samplesMax);
    const whole = Math.min(samplesMax, available - (available % frameSamples));
    const length = whole > 0 ? whole : ordered ? available : 0;
    this.#idle = length === 0;
    return length === 0 ? null : { type: "audio", pcm: this.#takeAudio(length) };
  }
  clear(): void {
    this.#items = [];
    this.#head = 0;
    this.#samples = 0;
    this.#orders = 0;
  }

  #drop(samples: number): void {
    this.#dropped += samples;
    const last = this.#items.at(-1);
    if (last?.type === "gap") {
      this.#items[this.#items.length - 1] = { type: "gap", samples: last.samples + samples };
    } else {
      this.#log.warn({ backlogSamples: this.#samples }, "audio comes faster than it is heard; the newest is dropped");
      this.#items.push({ type: "gap", samples });
    }
  }
  /** Samples at the head, as far as they matter, and whether an order ends them. */
  #run(samplesMax: number): { available: number; ordered: boolean } {
    let available = 0;
    for (let i = this.#head; i < this.#items.length; i++) {
      const item = this.#items[i];
      if (item?.type !== "audio") return { available, ordered: true };
      available += item.pcm.length;
      if (available >= samplesMax) break;
    }
    return { available, ordered: false };
  }
  #takeAudio(length: number): Float32Array {
    const out = new Float32Array(length);
    let at = 0;
    while (at < length) {
      const item = this.#items[this.#head];
      if (item?.type !== "audio") break;
      const part = item.pcm.subarray(0, length - at);
      out.set(part, at);
      at += part.length;
      if (part.length === item.pcm.length) this.#advance(1);
      else this.#items[this.#head] = { type: "audio", pcm: item.pcm.subarray(part.length) };
    }
    this.#samples -= length;
    return out;
  }
  #advance(count: number): void {
    this.#head += count;
    if (this.#head < 256 || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
