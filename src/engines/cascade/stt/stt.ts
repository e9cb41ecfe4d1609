/** Speech to text: what a piece of speech says. Growing segments are transcribed again and again (`SegmentTranscriber`). */

export const STT_HZ = 16_000;

export interface SttOptions {
  /** ISO 639-1, or null for the model's own choice. */
  readonly language: string | null;
  readonly prompt: string | null;
}

export interface SttRequest extends SttOptions {
  /** Mono f32 at 16 kHz, at most `segmentSecondsMax`. */
  readonly pcm: Float32Array;
  /** A final transcript goes before a partial one, and a partial one is not worth a second model call to anybody. */
  readonly urgency: "final" | "partial";
  readonly signal?: AbortSignal | undefined;
}

/** A loaded recognizer. One serves every session. */
export interface Stt extends AsyncDisposable {
  readonly name: string;
  /** Longer speech is cut at pauses before it comes here. */
  readonly segmentSecondsMax: number;
  /** False where each call costs money or a long way: then there are no live partial transcripts. */
  readonly partials: boolean;
  /** @throws {EngineError | UpstreamError} stt_failed, worker_died, upstream_… */
  transcribe(request: SttRequest): Promise<string>;
}
