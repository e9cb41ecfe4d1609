import { expect, test } from "vitest";
import { type ProfiledFrame, RunMeter, summarize } from "../../../src/engines/voicechat/profile.ts";

/** Stage `s` of frame `i` takes ((7 i + 3 s) mod 11) + s + 0.5 ms. */
const frames: ProfiledFrame[] = Array.from({ length: 9 }, (_, frameIndex) => {
  const ms = (stage: number): number => ((7 * frameIndex + 3 * stage) % 11) + stage + 0.5;
  const [perceptionMs, rnntMs, languageMs, ttsMs, codecMs, totalMs] = [ms(0), ms(1), ms(2), ms(3), ms(4), ms(5)];
  const subStageMs = frameIndex % 2 === 0 ? { "language.state_fold": 1 } : {};
  return {
    frameIndex,
    perceptionMs,
    rnntMs,
    languageMs,
    ttsMs,
    codecMs,
    totalMs,
    graphRuns: 8 + (frameIndex % 3),
    subStageMs,
  };
});
const options = { frameMs: 80, dropFirst: 2, subStages: true };

test("the summary has the reference's numbers", () => {
  const { stages, ...summary } = summarize(frames, options);
  // What VoiceChatProfile.summary(drop_first=2) of mlx-vlm 0.7.10 makes of these frames.
  expect(summary).toMatchObject({ frames: 7, dropped_cold_frames: 2, frame_duration_ms: 80, realtime_factor: 0.14375 });
  expect(summary.processing_frames_per_second).toBeCloseTo(86.95652173913044, 10);
  const rows = Object.entries(stages).map(([stage, { mean_ms, p50_ms, p95_ms, max_ms }]) => [
    stage,
    ...[mean_ms, p50_ms, p95_ms, max_ms].map((ms) => Number(ms.toFixed(6))),
  ]);
  expect(rows).toEqual([
    ["perception", 5.642857, 5.5, 10.2, 10.5],
    ["rnnt", 6.5, 6.5, 10.2, 10.5],
    ["language", 7.357143, 7.5, 11.2, 11.5],
    ["tts", 8.214286, 7.5, 12.9, 13.5],
    ["codec", 9.071429, 8.5, 13.6, 14.5],
    ["total", 11.5, 11.5, 15.2, 15.5],
  ]);
});
test("a sub-stage counts as nothing in the frames in which it did not run", () => {
  expect(summarize(frames, options).sub_stages).toEqual({
    "language.state_fold": { mean_ms: 4 / 7, p50_ms: 1, p95_ms: 1, max_ms: 1 },
  });
  expect(summarize(frames, { ...options, subStages: false })).not.toHaveProperty("sub_stages");
});
test("fewer frames than are dropped make a summary of none", () => {
  const summary = summarize(frames.slice(0, 1), options);
  expect(summary).toMatchObject({
    frames: 0,
    dropped_cold_frames: 1,
    processing_frames_per_second: 0,
    realtime_factor: 0,
  });
  expect(summary.stages["total"]).toEqual({ mean_ms: 0, p50_ms: 0, p95_ms: 0, max_ms: 0 });
});
test("runs are summed up by sub-stage until they are taken", () => {
  const meter = new RunMeter();
  meter.record("mixture head", 2);
  meter.record("code picker 4", 1);
  meter.record("code picker 8", 3);
  meter.record("a new graph", 5);
  const subStageMs = { "tts.mog_head": 2, "tts.code_picker": 4, "a new graph": 5 };
  expect(meter.take()).toEqual({ graphRuns: 4, subStageMs });
  expect(meter.take()).toEqual({ graphRuns: 0, subStageMs: {} });
});
