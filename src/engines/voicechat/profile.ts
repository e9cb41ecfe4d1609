/** Where the time of live frames goes. Source: spec "Online session"; percentiles interpolate between neighbours. */
import type { FrameTiming } from "./stream.ts";

/** What ran on the networks' runtime within one frame. */
export interface FrameRuns {
  /** Each is one round trip from our code to the runtime. */
  readonly graphRuns: number;
  /** By sub-stage, such as `tts.backbone`. */
  readonly subStageMs: Readonly<Record<string, number>>;
}

export type ProfiledFrame = FrameTiming & FrameRuns;

/** Beginning of a graph's name -> sub-stage. */
const SUB_STAGES: readonly (readonly [graph: string, subStage: string])[] = [
  ["conformer subsampling", "perception.subsampling"],
  ["conformer encoder", "perception.layers"],
  ["rnnt prediction", "rnnt.prediction"],
  ["rnnt joint", "rnnt.joint"],
  ["language model", "language.layers"],
  ["state fold", "language.state_fold"],
  ["language heads", "language.heads"],
  ["code embedding", "tts.code_embedding"],
  ["subword encoder", "tts.subword_encoder"],
  ["speech backbone", "tts.backbone"],
  ["mixture head", "tts.mog_head"],
  ["code picker", "tts.code_picker"],
  ["codec encoder", "codec.encoder"],
  ["codec decoder", "codec.decoder"],
];

/** Sums up runs until they are taken. It knows one session: runs of two at once would be added. */
export class RunMeter {
  #graphRuns = 0;
  #subStageMs: Record<string, number> = {};

  readonly record = (graph: string, ms: number): void => {
    const subStage = SUB_STAGES.find(([name]) => graph.startsWith(name))?.[1] ?? graph;
    this.#graphRuns += 1;
    this.#subStageMs[subStage] = (this.#subStageMs[subStage] ?? 0) + ms;
  };
  /** What ran since the last call. */
  take(): FrameRuns {
    const runs = { graphRuns: this.#graphRuns, subStageMs: this.#subStageMs };
    this.#graphRuns = 0;
    this.#subStageMs = {};
    return runs;
  }
}

export interface StageStatistics {
  readonly mean_ms: number;
  readonly p50_ms: number;
  readonly p95_ms: number;
  readonly max_ms: number;
}

export interface ProfileSummary {
  readonly frames: number;
  readonly dropped_cold_frames: number;
  readonly frame_duration_ms: number;
  readonly processing_frames_per_second: number;
  /** Above 1 is slower than real time. */
  readonly realtime_factor: number;
  /** Round trips to the runtime in one frame, on average. */
  readonly host_syncs: number;
  readonly stages: Readonly<Record<string, StageStatistics>>;
  readonly sub_stages?: Readonly<Record<string, StageStatistics>>;
}

const STAGES = ["perception", "rnnt", "language", "tts", "codec", "total"] as const;

/** JSON as it is printed: statistics of `frames` after the first `dropFirst`, which are cold. */
export function summarize(
  frames: readonly ProfiledFrame[],
  options: { readonly frameMs: number; readonly dropFirst: number; readonly subStages: boolean },
): ProfileSummary {
  const { frameMs, dropFirst } = options;
  const warm = frames.slice(dropFirst);
  const stages = Object.fromEntries(
    STAGES.map((stage) => [stage, statistics(warm.map((frame) => frame[`${stage}Ms`]))] as const),
  );
  const meanMs = mean(warm.map((frame) => frame.totalMs));
  return {
    frames: warm.length,
    dropped_cold_frames: Math.min(dropFirst, frames.length),
    frame_duration_ms: frameMs,
    processing_frames_per_second: meanMs === 0 ? 0 : 1000 / meanMs,
    realtime_factor: meanMs / frameMs,
    host_syncs: mean(warm.map((frame) => frame.graphRuns)),
    stages,
    ...(options.subStages ? { sub_stages: subStagesOf(warm) } : {}),
  };
}

/** One frame as a file has it. */
export function frameRecord(frame: ProfiledFrame): Record<string, unknown> {
  const stages = Object.fromEntries(STAGES.map((stage) => [`${stage}_ms`, frame[`${stage}Ms`]]));
  return { frame_index: frame.frameIndex, ...stages, host_syncs: frame.graphRuns, sub_stages_ms: frame.subStageMs };
}

/** A frame in which a sub-stage did not run counts as none of its time. */
function subStagesOf(frames: readonly ProfiledFrame[]): Record<string, StageStatistics> {
  const names = SUB_STAGES.map(([, subStage]) => subStage);
  const ran = names.filter((name) => frames.some((frame) => name in frame.subStageMs));
  return Object.fromEntries(ran.map((name) => [name, statistics(frames.map((frame) => frame.subStageMs[name] ?? 0))]));
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

function statistics(values: readonly number[]): StageStatistics {
  const ordered = [...values].sort((a, b) => a - b);
  return {
    mean_ms: mean(values),
    p50_ms: percentile(ordered, 0.5),
    p95_ms: percentile(ordered, 0.95),
    max_ms: ordered.at(-1) ?? 0,
  };
}

function percentile(ordered: readonly number[], share: number): number {
  if (ordered.length === 0) return 0;
  const position = (ordered.length - 1) * share;
  const lower = ordered[Math.floor(position)] as number;
  const upper = ordered[Math.ceil(position)] as number;
  return lower + (position % 1) * (upper - lower);
}
