/** Text to speech: one clause in, its samples out. What is a clause, and in which order, is `SpeechStream`'s affair. */

export interface TtsRequest {
  /** Speakable text: no markup, numbers in words. */
  readonly text: string;
  /** One of `voices`, or null for the first. */
  readonly voice: string | null;
  /** 0.25 to 1.5. */
  readonly speed: number;
  /** The clause that a listener waits for goes before those that are only next. */
  readonly urgency: "first" | "next";
  readonly signal: AbortSignal;
}

export interface SpokenChunk {
  /** Mono f32. */
  readonly pcm: Float32Array;
  readonly hz: number;
}

/** A loaded voice. One serves every session. */
export interface Tts extends AsyncDisposable {
  readonly name: string;
  /** The default first. */
  readonly voices: readonly string[];
  /** The rate of most of its audio; each chunk carries its own. */
  readonly hz: number;
  /** @throws {EngineError | UpstreamError} tts_failed, worker_died, upstream_… */
  speak(request: TtsRequest): AsyncIterable<SpokenChunk>;
}
