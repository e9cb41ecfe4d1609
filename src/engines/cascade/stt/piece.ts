/** A stretch of speech short enough for one transcription; when full, it is cut at the longest pause near its end. */
import { STT_HZ } from "./stt.ts";

interface Chunk {
  readonly pcm: Float32Array;
  readonly voiced: boolean;
}

/** The share at the end of a full piece in which a pause is looked for. */
const CUT_SHARE = 0.4;
/** Silence before the first voice that a recognizer is given: Moonshine hears nothing at all behind 1.4 s of it. */
const LEAD_SAMPLES = STT_HZ * 0.5;

export class Piece {
  readonly #samplesMax: number;
  #chunks: Chunk[] = [];
  #samples = 0;
  #voicedSamples = 0;

  constructor(samplesMax: number) {
    this.#samplesMax = samplesMax;
  }
  get samples(): number {
    return this.#samples;
  }
  get voicedSamples(): number {
    return this.#voicedSamples;
  }
  /** What is to be transcribed: everything but a long silence at the beginning. */
  pcm(): Float32Array {
    const chunks = this.#chunks.slice(this.#firstIndex());
    const out = new Float32Array(chunks.reduce((sum, { pcm }) => sum + pcm.length, 0));
    let at = 0;
    for (const { pcm } of chunks) {
      out.set(pcm, at);
      at += pcm.length;
    }
    return out;
  }
  /** Takes a chunk of at most one frame; yields full pieces, cut off from the front. */
  *push(pcm: Float32Array, voiced: boolean): Generator<Piece> {
    this.#add({ pcm, voiced });
    if (this.#samples < this.#samplesMax) return;
    const cut = this.#cutIndex();
    const front = new Piece(this.#samplesMax);
    const rest = this.#chunks;
    this.#chunks = [];
    this.#samples = 0;
    this.#voicedSamples = 0;
    rest.forEach((chunk, i) => {
      if (i < cut) front.#add(chunk);
      else this.#add(chunk);
    });
    yield front;
  }
  #add(chunk: Chunk): void {
    this.#chunks.push(chunk);
    this.#samples += chunk.pcm.length;
    if (chunk.voiced) this.#voicedSamples += chunk.pcm.length;
  }
  /** The first chunk of the lead before the first voice. */
  #firstIndex(): number {
    let index = this.#chunks.findIndex(({ voiced }) => voiced);
    for (let lead = 0; index > 0; index--) {
      lead += this.#chunks[index - 1]!.pcm.length;
      if (lead > LEAD_SAMPLES) break;
    }
    return Math.max(0, index);
  }
  /** The middle of the longest unvoiced run near the end, or the end. */
  #cutIndex(): number {
    const from = Math.floor(this.#chunks.length * (1 - CUT_SHARE));
    let best = { length: 0, middle: this.#chunks.length };
    let run = 0;
    for (let i = from; i < this.#chunks.length; i++) {
      run = this.#chunks[i]?.voiced === true ? 0 : run + 1;
      if (run > best.length) best = { length: run, middle: i + 1 - Math.floor(run / 2) };
    }
    return best.middle;
  }
}
