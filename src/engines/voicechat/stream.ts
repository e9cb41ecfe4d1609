/**
 * One live conversation: 16 kHz samples in, in chunks of any size; every 80 ms of them advance all networks by exactly one
 * frame. State, memory and the time of a frame do not grow with the length of the session. docs/voicechat-model.md, section 1.
 */
import { logMel, MelStream } from "../../audio/mel.ts";
import { allFinite } from "../../audio/pcm.ts";
import { AppError, ClientError } from "../../errors.ts";
import type { Detokenizer } from "../../text/detokenizer.ts";
import type { VoiceChatModel } from "./model.ts";
import type { CodecStream } from "./networks/codec.ts";
import type { ConformerState } from "./networks/conformer.ts";
import type { RnntState } from "./networks/rnnt.ts";
import { Timeline } from "./timeline.ts";
import { TranscriptText } from "./transcript-text.ts";

export interface StreamOptions {
  /** The checkpoint's own where null, which is none as a rule. */
  readonly systemPrompt?: string | null;
  /** A non-negative integer; the same seed gives the same answer. Default 0. */
  readonly seed?: number;
  /** Audio beyond this is refused with `context_limit`. No limit where null. */
  readonly maxStreamingSeconds?: number | null;
  /** False recomputes the language model over the whole history at every frame: for diagnosis. */
  readonly useLanguageCache?: boolean;
  /** False recomputes mel and encoder over a sliding window of samples: for diagnosis; the results differ slightly. */
  readonly usePerceptionCache?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called after every frame with what each stage took. */
  readonly onFrame?: ((timing: FrameTiming) => void) | undefined;
}

/** `frameIndex` counts frames of audio from 0; the system prompt advances the timeline and has none. */
export type VoiceChatEvent =
  | {
      readonly kind: "assistant_text_delta" | "function_delta";
      readonly frameIndex: number;
      readonly tokenId: number;
      readonly delta: string;
      /** Cumulative, and authoritative. */
      readonly text: string;
    }
  | {
      readonly kind: "user_transcript_delta";
      readonly frameIndex: number;
      readonly delta: string;
      readonly text: string;
    }
  | {
      readonly kind: "audio";
      readonly frameIndex: number;
      /** 80 ms at `hz`. */
      readonly samples: Float32Array;
      readonly hz: number;
      /** One code of each codebook. */
      readonly audioCodes: readonly number[];
    }
  | { readonly kind: "done" | "cancelled"; readonly frameIndex: number };

/** Wall time of one frame by stage. */
export interface FrameTiming {
  readonly frameIndex: number;
  readonly perceptionMs: number;
  readonly rnntMs: number;
  readonly languageMs: number;
  readonly ttsMs: number;
  readonly codecMs: number;
  readonly totalMs: number;
}

export class VoiceChatStream {
  readonly inputHz: number;
  readonly outputHz: number;
  readonly frameSamples: number;
  readonly #model: VoiceChatModel;
  readonly #timeline: Timeline;
  readonly #ear: Ear;
  readonly #codec: CodecStream;
  readonly #text: Detokenizer;
  readonly #function: Detokenizer;
  readonly #transcript: TranscriptText;
  /** Null: no limit. */
  readonly #framesMax: number | null;
  readonly #onFrame: StreamOptions["onFrame"];
  #rnnt: RnntState;
  #pending: Float32Array = new Float32Array(0);
  #frameIndex = 0;
  #closed = false;
  /** From the call of `cancel` on: no further frame is begun. */
  #cancelling = false;
  #failed = false;
  /** Calls run one after another, in the order in which they were made. */
  #tail: Promise<unknown> = Promise.resolve();

  private constructor(model: VoiceChatModel, options: StreamOptions, timeline: Timeline, rnnt: RnntState) {
    const { config, tokenizer } = model;
    this.inputHz = config.inputSampleRate;
    this.outputHz = config.outputSampleRate;
    this.frameSamples = model.inputFrameSamples;
    this.#model = model;
    this.#timeline = timeline;
    this.#rnnt = rnnt;
    this.#ear = options.usePerceptionCache === false ? new WindowEar(model) : new CachedEar(model);
    this.#codec = model.codec.stream("streaming");
    this.#text = tokenizer.detokenizer();
    this.#function = tokenizer.detokenizer();
    this.#transcript = new TranscriptText(config.rnntVocabulary);
    const seconds = options.maxStreamingSeconds ?? null;
    // In samples: 2.32 s over 0.08 s is a little less than the 29 frames that it is.
    this.#framesMax = seconds === null ? null : Math.trunc(Math.round(seconds * this.inputHz) / this.frameSamples);
    this.#onFrame = options.onFrame;
  }

  /**
   * Warms the voice and takes in the system prompt.
   * @throws {ClientError} invalid_value for a limit or seed that cannot be; {EngineError} when a network fails.
   */
  static async open(model: VoiceChatModel, options: StreamOptions = {}): Promise<VoiceChatStream> {
    const { seed = 0, maxStreamingSeconds = null, signal, useLanguageCache = true } = options;
    if (!(Number.isSafeInteger(seed) && seed >= 0)) {
      throw new ClientError("invalid_value", `seed must be a non-negative integer, got ${seed}`, "seed");
    }
    if (maxStreamingSeconds !== null && !(maxStreamingSeconds > 0)) {
      const message = `max_streaming_seconds must be positive, got ${maxStreamingSeconds}`;
      throw new ClientError("invalid_value", message, "max_streaming_seconds");
    }
    const { config, tokenizer, language, speech } = model;
    const promptIds = tokenizer.promptIds(options.systemPrompt ?? config.defaultSystemPrompt);
    const timeline = await Timeline.begin({ config, language, speech }, { promptIds, seed, signal, useLanguageCache });
    return new VoiceChatStream(model, options, timeline, await model.rnnt.initialState());
  }

  get closed(): boolean {
    return this.#closed;
  }
  /** Frames of audio answered so far. */
  get frameIndex(): number {
    return this.#frameIndex;
  }

  /**
   * The events of the frames that these samples complete; the rest waits for more. The array is the caller's again at once.
   * @throws {ClientError} invalid_audio for another rate, samples that are not numbers, or a closed session;
   *   context_limit past `maxStreamingSeconds`. The frames before the limit were answered: `onEvent` has seen theirs.
   */
  push(chunk: Float32Array, sampleHz: number, onEvent?: (event: VoiceChatEvent) => void): Promise<VoiceChatEvent[]> {
    const samples = chunk.slice();
    return this.#serially(async () => {
      if (this.#closed) throw new ClientError("invalid_audio", "the session is closed; open another");
      if (sampleHz !== this.inputHz) {
        const message = `expected ${this.inputHz} Hz PCM, received ${sampleHz} Hz; resample first`;
        throw new ClientError("invalid_audio", message, "sample_rate");
      }
      if (!allFinite(samples)) throw new ClientError("invalid_audio", "the audio has samples that are not numbers");
      return this.#consume(samples, onEvent);
    });
  }

  /** Ends the input: a partial frame is filled with silence and run, or dropped. Ends with `done`. Idempotent. */
  flush(padPartial = true, onEvent?: (event: VoiceChatEvent) => void): Promise<VoiceChatEvent[]> {
    return this.#serially(async () => {
      if (this.#closed || this.#cancelling) return [];
      const missing = padPartial && this.#pending.length > 0 ? this.frameSamples - this.#pending.length : 0;
      const events = missing > 0 ? await this.#consume(new Float32Array(missing), onEvent) : [];
      return [...events, ...this.#close("done", onEvent)];
    });
  }

  /**
   * Drops what is pending, also of calls before this one that have not come to it, and ends with `cancelled`. A frame that
   * is being computed still ends first. Idempotent.
   */
  cancel(onEvent?: (event: VoiceChatEvent) => void): Promise<VoiceChatEvent[]> {
    this.#cancelling = true;
    return this.#serially(async () => (this.#closed ? [] : this.#close("cancelled", onEvent)));
  }

  #serially<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(run);
    this.#tail = result.catch(() => {});
    return result;
  }

  #close(kind: "done" | "cancelled", onEvent: ((event: VoiceChatEvent) => void) | undefined): VoiceChatEvent[] {
    this.#closed = true;
    this.#pending = new Float32Array(0);
    const event: VoiceChatEvent = { kind, frameIndex: this.#frameIndex };
    onEvent?.(event);
    return [event];
  }

  async #consume(samples: Float32Array, onEvent?: (event: VoiceChatEvent) => void): Promise<VoiceChatEvent[]> {
    const accepted = samples.subarray(0, this.#roomSamples);
    const joined = new Float32Array(this.#pending.length + accepted.length);
    joined.set(this.#pending);
    joined.set(accepted, this.#pending.length);
    const events: VoiceChatEvent[] = [];
    let at = 0;
    try {
      while (at + this.frameSamples <= joined.length && !this.#cancelling) {
        const frame = joined.subarray(at, at + this.frameSamples);
        // Heard before its events go out: whoever takes them may throw, and the frame is not heard again.
        at += this.frameSamples;
        const step = await this.#step(frame);
        events.push(...step.events);
        this.#onFrame?.(step.timing);
        for (const event of step.events) onEvent?.(event);
      }
    } finally {
      this.#pending = this.#failed ? new Float32Array(0) : joined.slice(at);
    }
    if (accepted.length < samples.length && !this.#cancelling) {
      throw new ClientError("context_limit", `the stream exceeds its ${this.#framesMax} frames of 80 ms`);
    }
    return events;
  }
  /** What the limit leaves: whole frames, with those that wait. */
  get #roomSamples(): number {
    if (this.#framesMax === null) return Number.POSITIVE_INFINITY;
    return (this.#framesMax - this.#frameIndex) * this.frameSamples - this.#pending.length;
  }

  async #step(frame: Float32Array): Promise<{ readonly events: VoiceChatEvent[]; readonly timing: FrameTiming }> {
    const frameIndex = this.#frameIndex;
    if (this.#failed) throw new AppError("engine_failed", "a network failed before; open another session");
    this.#failed = true;
    const startMs = performance.now();
    const { encoded, projected } = await this.#ear.hear(frame);
    const heardMs = performance.now();
    const transcript = await this.#transcribe(encoded);
    const transcribedMs = performance.now();
    const step = await this.#timeline.step(projected);
    const codes = this.#model.speech.audible(step.codes ?? this.#model.speech.silenceCodes);
    const spokenMs = performance.now();
    const samples = await this.#codec.push(codes);
    const endMs = performance.now();
    const events: VoiceChatEvent[] = [
      ...transcript,
      ...this.#channel("assistant_text_delta", this.#text, step.textId),
      ...this.#channel("function_delta", this.#function, step.functionId),
      { kind: "audio", frameIndex, samples, hz: this.outputHz, audioCodes: [...codes] },
    ];
    this.#failed = false;
    this.#frameIndex += 1;
    const timing: FrameTiming = {
      frameIndex,
      perceptionMs: heardMs - startMs,
      rnntMs: transcribedMs - heardMs,
      languageMs: step.languageMs,
      ttsMs: step.speechMs,
      codecMs: endMs - spokenMs,
      totalMs: endMs - startMs,
    };
    return { events, timing };
  }

  async #transcribe(encoded: Float32Array): Promise<VoiceChatEvent[]> {
    if (this.#model.config.rnntVocabulary.length === 0) return [];
    const { state, symbols } = await this.#model.rnnt.step(this.#rnnt, encoded);
    this.#rnnt = state;
    const update = this.#transcript.push(symbols);
    return update === null ? [] : [{ kind: "user_transcript_delta", frameIndex: this.#frameIndex, ...update }];
  }

  #channel(kind: "assistant_text_delta" | "function_delta", text: Detokenizer, tokenId: number): VoiceChatEvent[] {
    if (!this.#model.tokenizer.speaks(tokenId)) return [];
    return [{ kind, frameIndex: this.#frameIndex, tokenId, ...text.push(tokenId) }];
  }
}

/** From one frame of samples to one embedding. */
interface Ear {
  hear(frame: Float32Array): Promise<{ readonly encoded: Float32Array; readonly projected: Float32Array }>;
}

class CachedEar implements Ear {
  readonly #model: VoiceChatModel;
  readonly #mel: MelStream;
  readonly #state: ConformerState;
  constructor(model: VoiceChatModel) {
    this.#model = model;
    // The reference emits a mel frame once its centre trails the edge by one frame of audio.
    this.#mel = new MelStream(model.melSettings, model.inputFrameSamples);
    this.#state = model.conformer.initialState();
  }
  hear(frame: Float32Array): ReturnType<Ear["hear"]> {
    return this.#model.conformer.step(this.#state, this.#mel.push(frame));
  }
}

/** Everything anew over a window as long as attention looks back; the last output but one, as the reference has it. */
class WindowEar implements Ear {
  readonly #model: VoiceChatModel;
  readonly #windowSamplesMax: number;
  #window: Float32Array = new Float32Array(0);
  constructor(model: VoiceChatModel) {
    this.#model = model;
    const windowFrames = Math.max(2, model.config.audioConfig.encoder.leftFrames + 1);
    this.#windowSamplesMax = windowFrames * model.inputFrameSamples;
  }
  async hear(frame: Float32Array): ReturnType<Ear["hear"]> {
    const joined = new Float32Array(this.#window.length + frame.length);
    joined.set(this.#window);
    joined.set(frame, this.#window.length);
    this.#window = joined.slice(-this.#windowSamplesMax);
    const { frames, encoded, projected } = await this.#model.conformer.encode(
      logMel(this.#window, this.#model.melSettings),
    );
    const row = (values: Float32Array): Float32Array => {
      const width = values.length / frames;
      return values.subarray((frames - 2) * width, (frames - 1) * width);
    };
    return { encoded: row(encoded), projected: row(projected) };
  }
}
