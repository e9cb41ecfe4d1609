/**
 * Plays what it is given on the audio clock, one sample after another across chunks, and knows how much was heard.
 * Starts, gaps and cuts are sloped over 4 ms, so that nothing clicks. A live stream never ends: silence is a part of it,
 * and is left out where the stream has fallen behind.
 *
 * Takes  { type: "push", itemId, samples } and { type: "clear" }
 * Posts  { type: "playing", isPlaying } and, after a clear that cut something, { type: "cleared", itemId, playedMs }
 */
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: {
    onmessage: ((event: { readonly data: Command }) => void) | null;
    postMessage(message: object): void;
  };
}
declare function registerProcessor(name: string, processor: unknown): void;

type Command =
  | { readonly type: "push"; readonly itemId: string; readonly samples: Float32Array }
  | { readonly type: "clear" };

interface Chunk {
  readonly itemId: string;
  readonly samples: Float32Array;
}

const SLOPE_SECONDS = 0.004;
/** Waits for this much before it begins, so that a network's hiccup is no gap. */
const CUSHION_SECONDS = 0.06;
/** A sentence that comes in one small chunk is not kept waiting. */
const CUSHION_BLOCKS_MAX = 40;
/** Pauses shorter than this are part of speaking. */
const QUIET_SECONDS = 0.25;
const QUEUE_SECONDS_MAX = 900;
/** Of a live stream, so much may wait before quiet chunks are left out. */
const LIVE_SECONDS_MAX = 0.24;
/** A live stream is heard from here on, about -46 dB. */
const QUIET_PEAK = 0.005;

class PlaybackProcessor extends AudioWorkletProcessor {
  readonly #inputHz: number;
  readonly #isLive: boolean;
  readonly #slope: number = 1 / (SLOPE_SECONDS * sampleRate);
  #chunks: Chunk[] = [];
  /** Where the next output sample lies in the first chunk, in input samples; between two of them. */
  #position = 0;
  #queuedSamples = 0;
  #itemId = "";
  #playedSamples = 0;
  #gain = 0;
  #last = 0;
  #isFlowing = false;
  #isPlaying = false;
  #isCutting = false;
  #waitedBlocks = 0;
  #quietSamples = 0;

  constructor(options: { readonly processorOptions: { readonly inputHz: number; readonly isLive?: boolean } }) {
    super();
    this.#inputHz = options.processorOptions.inputHz;
    this.#isLive = options.processorOptions.isLive === true;
    this.port.onmessage = ({ data }) => {
      if (data.type === "push") this.#push(data);
      else if (this.#queuedSamples > 0 || this.#isPlaying) this.#isCutting = true;
    };
  }

  process(_inputs: Float32Array[][], [[output]]: [[Float32Array]]): boolean {
    const isCushioned = this.#queuedSamples >= CUSHION_SECONDS * this.#inputHz;
    // New sound waits for what is still on its slope.
    if (!this.#isFlowing && this.#gain === 0 && this.#queuedSamples > 1) {
      this.#waitedBlocks += 1;
      if (isCushioned || this.#waitedBlocks > CUSHION_BLOCKS_MAX) this.#isFlowing = true;
    }
    for (let i = 0; i < output.length; i++) output[i] = this.#next();
    if (this.#isCutting && this.#gain === 0) this.#cut();
    this.#report(output);
    return true;
  }

  #push({ itemId, samples }: Chunk): void {
    if (this.#isCutting) this.#cut();
    if (this.#queuedSamples + samples.length > QUEUE_SECONDS_MAX * this.#inputHz) return;
    const isBehind = this.#isLive && this.#queuedSamples > LIVE_SECONDS_MAX * this.#inputHz;
    if (isBehind && isQuiet(samples)) return;
    this.#chunks.push({ itemId, samples });
    this.#queuedSamples += samples.length;
  }

  #next(): number {
    const target = this.#isFlowing && !this.#isCutting ? 1 : 0;
    const step = Math.sign(target - this.#gain) * this.#slope;
    this.#gain = Math.min(1, Math.max(0, this.#gain + step));
    if (this.#isFlowing) {
      const sample = this.#read();
      if (sample === null) {
        this.#isFlowing = false;
        this.#waitedBlocks = 0;
      } else this.#last = sample;
    }
    return this.#last * this.#gain;
  }

  /** One output sample, between its two neighbours of the input; null at the end. */
  #read(): number | null {
    const chunk = this.#chunks[0];
    if (chunk === undefined) return null;
    const index = Math.floor(this.#position);
    const here = chunk.samples[index] as number;
    const there = chunk.samples[index + 1] ?? this.#chunks[1]?.samples[0] ?? here;
    const sample = here + (there - here) * (this.#position - index);
    this.#advance(chunk);
    return sample;
  }

  #advance(chunk: Chunk): void {
    if (chunk.itemId !== this.#itemId) {
      this.#itemId = chunk.itemId;
      this.#playedSamples = 0;
    }
    const step = this.#inputHz / sampleRate;
    this.#position += step;
    this.#playedSamples += step;
    while (this.#chunks[0] !== undefined && this.#position >= this.#chunks[0].samples.length) {
      this.#position -= this.#chunks[0].samples.length;
      this.#queuedSamples -= this.#chunks[0].samples.length;
      this.#chunks.shift();
    }
    if (this.#chunks.length === 0) this.#position = 0;
  }

  #cut(): void {
    this.#isCutting = false;
    const itemId = this.#chunks[0]?.itemId ?? "";
    if (this.#chunks.length > 0) {
      const playedMs = itemId === this.#itemId ? (this.#playedSamples * 1000) / this.#inputHz : 0;
      this.port.postMessage({ type: "cleared", itemId, playedMs });
    }
    this.#chunks = [];
    this.#queuedSamples = this.#position = this.#waitedBlocks = 0;
    this.#isFlowing = false;
    this.#quietSamples = QUIET_SECONDS * sampleRate;
  }

  #report(block: Float32Array): void {
    const isHeard = this.#isLive ? !isQuiet(block) : this.#isFlowing;
    this.#quietSamples = isHeard ? 0 : this.#quietSamples + block.length;
    const isPlaying = isHeard || (this.#isPlaying && this.#quietSamples < QUIET_SECONDS * sampleRate);
    if (isPlaying === this.#isPlaying) return;
    this.#isPlaying = isPlaying;
    this.port.postMessage({ type: "playing", isPlaying });
  }
}

function isQuiet(samples: Float32Array): boolean {
  return samples.every((sample) => Math.abs(sample) < QUIET_PEAK);
}

registerProcessor("playback", PlaybackProcessor);
