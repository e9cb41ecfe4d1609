/**
 * How fast is VoiceChat at its published size on this machine?
 *
 *     npx tsx bench/voicechat-fullsize.ts --dir /big/disk/voicechat-4bit [--bits 4|8] [--precision exact|fast]
 *                                         [--frames 8] [--past 7500] [--threads N] [--provider cpu|webgpu|cuda|coreml]
 *
 * Writes a checkpoint with random weights into --dir once (8.6 GB at 4 bits, 13.3 GB at 8), then loads it and runs frames as a
 * live session does. Prints JSON: load time, resident memory, the rate at which memory reads, and milliseconds per stage
 * and frame (the first two frames left out); with --past also behind so many positions, ten minutes being 7,500: attention
 * that sees everything reads what a session has gathered.
 */
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { VoiceChatModel } from "../src/engines/voicechat/model.ts";
import type { KeyValueCache } from "../src/engines/voicechat/networks/key-value-cache.ts";
import type { Provider } from "../src/onnx/runtime.ts";
import { RandomGenerator } from "../src/util/rng.ts";
import { writeCheckpoint } from "./voicechat-checkpoint.ts";

const COLD_FRAMES = 2;
const STAGES = ["perception", "rnnt", "language", "speech", "codec", "total"] as const;

type Times = Record<(typeof STAGES)[number], number>;

const { values } = parseArgs({
  options: {
    dir: { type: "string" },
    bits: { type: "string", default: "4" },
    precision: { type: "string", default: "exact" },
    frames: { type: "string", default: "8" },
    past: { type: "string", default: "0" },
    threads: { type: "string", default: `${availableParallelism()}` },
    provider: { type: "string", default: "cpu" },
  },
});
if (values.dir === undefined) throw new Error("--dir PATH says where the checkpoint is, or may be written");

const startedMs = performance.now();
writeCheckpoint(values.dir, values.bits === "8" ? 8 : 4);
const tokenizer = join(values.dir, "tokenizer.json");
// Any tokenizer of 256 characters does: the checkpoint's character table has as many.
if (!existsSync(tokenizer)) copyFileSync("test/fixtures/voicechat/tiny-4bit/checkpoint/tokenizer.json", tokenizer);
const writtenMs = performance.now();

const parts: Record<string, number> = {};
let part = { name: "checks", sinceMs: performance.now() };
const begin = (name: string): void => {
  parts[part.name] = (performance.now() - part.sinceMs) / 1000;
  part = { name, sinceMs: performance.now() };
};
const model = await VoiceChatModel.load(values.dir, {
  provider: values.provider as Provider,
  threads: Number(values.threads),
  precision: values.precision === "fast" ? "fast" : "exact",
  onPart: begin,
});
begin("done");
const loadedMs = performance.now();
const memory = { resident: status("VmRSS"), peak: status("VmHWM") };
const count = Number(values.frames);
const past = Number(values.past);
const frameMs = summaries(await run(count, 0));
const residentAfterGb = status("VmRSS");
const behind =
  past === 0 ? undefined : { past, frameMs: summaries(await run(count, past)), residentGb: status("VmRSS") };
console.log(
  JSON.stringify(
    {
      checkpointGb: statSync(join(values.dir, "model.safetensors")).size / 1e9,
      writeSeconds: (writtenMs - startedMs) / 1000,
      loadSeconds: (loadedMs - writtenMs) / 1000,
      parts,
      residentGb: memory.resident,
      peakGb: memory.peak,
      residentAfterGb,
      readGbPerSecond: readRate(),
      frameMs,
      behind,
    },
    null,
    1,
  ),
);
await model.close();

/** A live session on noise, behind `past` positions of noise: each stage timed by itself. */
async function run(count: number, past: number): Promise<Times[]> {
  const { config, conformer, rnnt, language, speech, codec } = model;
  const { featIn } = config.audioConfig.encoder;
  const heard = conformer.initialState();
  const state = language.initialState();
  const voice = speech.initialState(new RandomGenerator(0));
  for (const cache of [state.attention, voice.backbone.local, voice.backbone.global]) fill(cache, past);
  const decoder = codec.stream("streaming");
  let words = await rnnt.initialState();
  let previous = { text: config.padTokenId, function: config.padTokenId };
  const all: Times[] = [];
  for (let frame = 0; frame < count; frame++) {
    const times: Partial<Times> = {};
    const timed = async <T>(stage: keyof Times, work: () => Promise<T>): Promise<T> => {
      const sinceMs = performance.now();
      const result = await work();
      times[stage] = performance.now() - sinceMs;
      return result;
    };
    const mel = Float32Array.from({ length: (frame === 0 ? 1 : 8) * featIn }, () => Math.random() * 4 - 8);
    const { encoded, projected } = await timed("perception", () => conformer.step(heard, mel));
    words = (await timed("rnnt", () => rnnt.step(words, encoded))).state;
    const [text, functions] = [language.embed(previous.text), language.embed(previous.function)];
    const fused = projected.map((value, i) => value + (text[i] as number) + 2 * (functions[i] as number));
    previous = await timed("language", async () => language.tokens(await language.step(state, fused)));
    const codes = await timed("speech", () => speech.step(voice, previous.text));
    await timed("codec", () => decoder.push(speech.audible(codes)));
    const total = Object.values(times).reduce((sum, value) => sum + value, 0);
    all.push({ ...times, total } as Times);
  }
  return all;
}

function fill(cache: KeyValueCache, positions: number): void {
  const noise = Float32Array.from({ length: 2 ** 13 }, () => Math.random() - 0.5);
  const sizes = new Map(Object.entries(cache.feeds()).map(([name, { shape }]) => [name, rowSize(name, shape)]));
  for (let n = 0; n < positions; n++) cache.append((name) => noise.subarray(n % 64, (n % 64) + sizes.get(name)!));
}

/** Elements of one position: all axes but the one of positions, which is a key's last and a value's last but one. */
function rowSize(name: string, shape: readonly number[]): number {
  const rows = shape.at(name.startsWith("keys") ? -1 : -2) ?? 1;
  return shape.reduce((product, size) => product * size, 1) / rows;
}

function summaries(frames: readonly Times[]): Record<string, ReturnType<typeof summary>> {
  const warm = frames.slice(COLD_FRAMES);
  return Object.fromEntries(STAGES.map((stage) => [stage, summary(warm.map((times) => times[stage]))]));
}

function summary(list: readonly number[]): { mean: number; p50: number; max: number } {
  const sorted = [...list].sort((a, b) => a - b);
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  const round = (value: number): number => Math.round(value * 10) / 10;
  return { mean: round(mean), p50: round(sorted[sorted.length >> 1] as number), max: round(sorted.at(-1) as number) };
}

/** One core's: sums over half a gigabyte, the first of which also compiles. The floor of a frame is what it must read, divided by this. */
function readRate(): number {
  const block = new Float64Array(1 << 26).fill(1);
  let best = 0;
  for (let pass = 0; pass < 4; pass++) {
    const sinceMs = performance.now();
    if (sumOfLines(block) > 0) best = Math.max(best, block.byteLength / 1e6 / (performance.now() - sinceMs));
  }
  return best;
}

/** Of one number in each cache line. */
function sumOfLines(block: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < block.length; i += 8) sum += block[i] as number;
  return sum;
}

/** A line of /proc/self/status in GB; null where there is none. */
function status(key: string): number | null {
  if (!existsSync("/proc/self/status")) return null;
  const kb = new RegExp(`${key}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return kb === undefined ? null : (Number(kb) * 1024) / 1e9;
}
