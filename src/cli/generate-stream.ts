/** `antiphon generate --stream`: the question goes in 80 ms by 80 ms, as in a live session, and the answer comes so. */
import { closeSync, openSync, writeSync } from "node:fs";
import { concatPcm } from "../audio/pcm.ts";
import type { EngineMethods, EngineWorkerOptions, StreamPart } from "../engines/voicechat/engine-worker.ts";
import { frameRecord, type ProfiledFrame, summarize } from "../engines/voicechat/profile.ts";
import type { VoiceChatEvent } from "../engines/voicechat/stream.ts";
import type { AppError } from "../errors.ts";
import { silentLog } from "../util/log.ts";
import { WorkerHost } from "../workers/host.ts";
import type { CliOutput } from "./context.ts";
import { FrameProgress } from "./frame-progress.ts";
import { GrowingText } from "./growing-text.ts";
import { unwritable } from "./output-files.ts";

export interface StreamRun {
  readonly worker: EngineWorkerOptions;
  readonly samples: Float32Array;
  readonly extraSeconds: number;
  readonly framesMax: number | null;
  readonly systemPrompt: string | null;
  readonly seed: number;
  readonly maxStreamingSeconds: number | null;
  /** Every event goes here as a line of JSON. */
  readonly eventsFile: string | null;
  readonly loadMsMax: number;
  readonly signal: AbortSignal;
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
}

/** What came, as far as it came. */
export interface StreamResult {
  readonly text: string;
  readonly userTranscript: string;
  readonly functionText: string;
  readonly samples: Float32Array;
  readonly hz: number;
  readonly frames: readonly ProfiledFrame[];
  readonly frameMs: number;
  readonly audioCodes: readonly (readonly number[])[];
  readonly loadMs: number;
  /** Why it ended before its time: the limit, a fault, Ctrl-C. Null where it did not. */
  readonly failure: unknown;
}

/** The first frames are slower than those that follow. */
const COLD_FRAMES = 5;

/** @throws {EngineError} when the checkpoint does not load; what goes wrong later is told beside what came before it. */
export async function runStream(run: StreamRun): Promise<StreamResult> {
  const startMs = performance.now();
  await using worker = await WorkerHost.start<EngineMethods>({
    name: "voicechat",
    stage: "engine",
    module: new URL("../engines/voicechat/engine-worker.ts", import.meta.url),
    options: run.worker,
    log: silentLog,
    limits: { loadMs: run.loadMsMax },
    signal: run.signal,
  });
  const loadMs = performance.now() - startMs;
  const facts = await worker.call("describe", null);
  const answer = new Answer(run.stdout, run.eventsFile);
  const { signal } = run;
  const streamId = "generate";
  let failure: unknown = null;
  const progress = new FrameProgress(run.stderr);
  try {
    const { systemPrompt, seed, maxStreamingSeconds } = run;
    await worker.call("open", { streamId, systemPrompt, seed, maxStreamingSeconds }, { signal });
    const pcm = input(run, facts.inputHz, facts.frameSamples);
    const total = Math.ceil(pcm.length / facts.frameSamples);
    for (let at = 0; at < pcm.length; at += facts.frameSamples) {
      const samples = pcm.slice(at, at + facts.frameSamples);
      await worker.call("push", { streamId, samples, sampleHz: facts.inputHz }, { signal, onPart: answer.take });
      answer.throwIfUnwritten();
      // On one terminal the bar would run through the words.
      if (!run.stdout.isTty) progress.show(Math.min(total, at / facts.frameSamples + 1), total);
    }
    await worker.call("flush", { streamId, padPartial: true }, { signal, onPart: answer.take });
    answer.throwIfUnwritten();
  } catch (error) {
    failure = error;
  } finally {
    progress.close();
    answer.close();
  }
  const frameMs = (1000 * facts.frameSamples) / facts.inputHz;
  return { ...answer.result(), hz: facts.outputHz, frameMs, loadMs, failure };
}

function input(run: StreamRun, hz: number, frameSamples: number): Float32Array {
  const pcm = new Float32Array(run.samples.length + Math.round(run.extraSeconds * hz));
  pcm.set(run.samples);
  return run.framesMax === null ? pcm : pcm.subarray(0, run.framesMax * frameSamples);
}

/** Prints the words as they come, and keeps what the files need. */
class Answer {
  readonly #text: GrowingText;
  readonly #eventsFile: string | null;
  readonly #events: number | null;
  /** Why the events are not all written. */
  #unwritten: AppError | null = null;
  readonly #pieces: Float32Array[] = [];
  readonly #codes: (readonly number[])[] = [];
  readonly #frames: ProfiledFrame[] = [];
  /** Of the frame whose events follow: it counts once it is heard, and Ctrl-C may come before that. */
  #timed: ProfiledFrame | null = null;
  readonly #last: Record<"assistant_text_delta" | "function_delta" | "user_transcript_delta", string> = {
    assistant_text_delta: "",
    function_delta: "",
    user_transcript_delta: "",
  };

  constructor(stdout: CliOutput, eventsFile: string | null) {
    this.#text = new GrowingText(stdout);
    this.#eventsFile = eventsFile;
    this.#events = eventsFile === null ? null : openSync(eventsFile, "w");
  }
  readonly take = (part: StreamPart): void => {
    if (part.type === "timing") {
      this.#timed = { ...part.timing, ...part.runs };
      return;
    }
    const { event } = part;
    this.#write(event);
    if (event.kind === "audio") {
      if (this.#timed !== null) this.#frames.push(this.#timed);
      this.#pieces.push(event.samples);
      this.#codes.push(event.audioCodes);
    } else if ("text" in event) {
      this.#last[event.kind] = event.text;
      if (event.kind === "assistant_text_delta") this.#text.show(event.text);
    }
  };
  /** @throws {AppError} output_unwritable: the run is not to go on when its events are lost. */
  throwIfUnwritten(): void {
    if (this.#unwritten !== null) throw this.#unwritten;
  }
  /** Called where nobody catches: between the messages of the model's process. */
  #write(event: VoiceChatEvent): void {
    if (this.#events === null || this.#unwritten !== null) return;
    try {
      writeSync(this.#events, `${JSON.stringify(eventRecord(event))}\n`);
    } catch (cause) {
      this.#unwritten = unwritable(this.#eventsFile ?? "", cause);
    }
  }
  close(): void {
    this.#text.end();
    if (this.#events !== null) closeSync(this.#events);
  }
  result(): Pick<StreamResult, "text" | "userTranscript" | "functionText" | "samples" | "audioCodes" | "frames"> {
    return {
      text: this.#last.assistant_text_delta,
      userTranscript: this.#last.user_transcript_delta,
      functionText: this.#last.function_delta,
      samples: concatPcm(this.#pieces),
      audioCodes: this.#codes,
      frames: this.#frames,
    };
  }
}

/** An event in the words of the wire, with the fields that it has. */
function eventRecord(event: VoiceChatEvent): Record<string, unknown> {
  const head = { kind: event.kind, frame_index: event.frameIndex };
  if (event.kind === "audio") return { ...head, audio_codes: event.audioCodes };
  if ("tokenId" in event) return { ...head, token_id: event.tokenId, delta: event.delta, text: event.text };
  return "text" in event ? { ...head, delta: event.delta, text: event.text } : head;
}

/** The summary as JSON, with sub-stages on request. */
export function profileSummary({ frames, frameMs }: StreamResult, subStages: boolean): string {
  return JSON.stringify(summarize(frames, { frameMs, dropFirst: COLD_FRAMES, subStages }), null, 2);
}

/** Every frame's times as JSON, cold ones too. */
export function framesReport({ frames, frameMs }: StreamResult): string {
  return `${JSON.stringify({ frame_duration_ms: frameMs, frames: frames.map(frameRecord) })}\n`;
}
