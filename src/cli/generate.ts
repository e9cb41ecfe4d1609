/** `antiphon generate`: a recorded question to a VoiceChat checkpoint, and its recorded answer. */
import { writeWav } from "../audio/wav.ts";
import { type CheckpointPlace, findCheckpoint } from "../engines/voicechat/checkpoint-place.ts";
import { EXTRA_SECONDS_MAX, RECORDING_SECONDS_MAX } from "../engines/voicechat/limits.ts";
import type { OfflineResult } from "../engines/voicechat/offline.ts";
import type { OfflineMethods, OfflineWorkerOptions } from "../engines/voicechat/offline-worker.ts";
import { AppError } from "../errors.ts";
import { ModelStore } from "../models/store.ts";
import { silentLog } from "../util/log.ts";
import { flagOf, OptionGroup, type OptionTable } from "../util/options.ts";
import { WorkerHost } from "../workers/host.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import type { CliContext } from "./context.ts";
import { FrameProgress } from "./frame-progress.ts";
import { framesReport, profileSummary, runStream, type StreamResult } from "./generate-stream.ts";
import { withoutControls } from "./growing-text.ts";
import { checkOutputs, writeOutputs } from "./output-files.ts";
import { ProgressView } from "./progress-view.ts";
import { readRecording } from "./recording.ts";
import { formatDuration, styled } from "./terminal.ts";

interface GenerateSettings {
  readonly model: string | null;
  readonly audio: string | null;
  readonly outputAudio: string | null;
  readonly prompt: string | null;
  readonly seed: number;
  readonly extraDecodingSeconds: number;
  readonly maxFrames: number | null;
  readonly json: string | null;
  readonly stream: boolean;
  readonly events: string | null;
  readonly maxStreamingSeconds: number | null;
  readonly profile: boolean;
  readonly profileStages: boolean;
  readonly profileFrames: string | null;
  readonly precision: "exact" | "fast";
  readonly provider: "cpu" | "webgpu" | "cuda" | "coreml";
  readonly maxTokens: string | null;
  readonly image: string | null;
  readonly video: string | null;
  readonly help: boolean;
}

const files = new OptionGroup("Files");
const answer = new OptionGroup("Answer");
const live = new OptionGroup("Live");
const machine = new OptionGroup("Machine");
const other = new OptionGroup("Other");
const file = (short?: string): { placeholder: string; env: []; short?: string } => ({
  placeholder: "FILE",
  env: [],
  ...(short === undefined ? {} : { short }),
});

export const GENERATE_OPTIONS: OptionTable<GenerateSettings> = {
  model: files.maybeText("Directory of a VoiceChat checkpoint (MLX), or its id on the hub, which is fetched.", {
    placeholder: "MODEL",
    short: "m",
    env: [],
  }),
  audio: files.maybeText("The question: WAV of any kind, or what ffmpeg reads.", file()),
  outputAudio: files.maybeText("Write the spoken answer here: WAV, 22,050 Hz, one channel.", file()),
  json: files.maybeText("Write text, tokens, codes and times here.", file()),
  prompt: answer.maybeText("System prompt: how the model is to answer.", { short: "p", env: [] }),
  seed: answer.integer(0, [0, Number.MAX_SAFE_INTEGER], "The same seed gives the same answer, byte for byte.", {
    env: [],
  }),
  extraDecodingSeconds: answer.number(3, [0, EXTRA_SECONDS_MAX], "Silence after the question, for the answer.", {
    env: [],
  }),
  maxFrames: answer.maybeInteger([2, 1_000_000], "Stop after this many frames of 80 ms.", { env: [] }),
  stream: live.boolean(false, "Hear and answer frame by frame, as a live session does; print words as they come.", {
    env: [],
  }),
  events: live.maybeText("Write every event here, a line of JSON each (with --stream).", file()),
  maxStreamingSeconds: live.maybeNumber([0.08, 86_400], "End the session after this much audio (with --stream).", {
    env: [],
  }),
  profile: live.boolean(false, "Print what frames took, after five cold ones (with --stream).", { env: [] }),
  profileStages: live.boolean(false, "The same, and what each network took.", { env: [] }),
  profileFrames: live.maybeText("Write the times of every frame here (with --stream).", file()),
  precision: machine.choice("exact", ["exact", "fast"], "How quantized weights are multiplied.", { env: [] }),
  provider: machine.choice("cpu", ["cpu", "webgpu", "cuda", "coreml"], "What the networks run on.", { env: [] }),
  maxTokens: other.maybeText("Ignored: the answer is as long as the question and its silence.", {
    placeholder: "N",
    short: "n",
    env: [],
  }),
  image: other.maybeText("Refused: this model hears, and does not see.", file()),
  video: other.maybeText("Refused, likewise.", file()),
  help: other.boolean(false, "Print this.", { short: "h", env: [] }),
};

/** The largest checkpoint from a slow disk. */
const LOAD_MS_MAX = 1_800_000;

const HELP: HelpOptions = {
  usage: "antiphon generate -m MODEL --audio FILE [--output-audio FILE] [options]",
  summary: "Asks a VoiceChat model a recorded question: prints what it heard and answered, and records the answer.",
  envPrefix: null,
  examples: [
    "antiphon generate -m NemotronLabs-VoiceChat-11B-4bit --audio question.wav --output-audio response.wav",
    'antiphon generate -m mlx-community/NemotronLabs-VoiceChat-11B-4bit --audio question.wav -p "Be concise."',
  ],
};

/** @returns the exit code. @throws {AppError} */
export async function runGenerate(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, GENERATE_OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  if (positionals.length > 0) {
    throw new AppError("usage", `generate takes no "${positionals[0]}"; the question goes in with --audio FILE`);
  }
  const { model, audio } = checkRequest(settings);
  if (settings.maxTokens !== null) context.stderr.write("antiphon: -n is ignored; see --extra-decoding-seconds\n");
  const { outputAudio, json } = settings;
  const outputs = (["outputAudio", "json", "events", "profileFrames"] as const).map((key) => ({
    flag: `--${flagOf(key)}`,
    path: settings[key],
  }));
  await checkOutputs(outputs, { flag: "--audio", path: audio });
  const { directory, config } = await fetchCheckpoint(model, context);
  const samples = await readRecording(audio, config.inputSampleRate, RECORDING_SECONDS_MAX, context.signal);
  if (settings.stream) return stream(directory, samples, settings, context);
  const { result, loadMs, totalMs } = await run(directory, samples, settings, context);
  print(result, context);
  await writeOutputs([
    { path: outputAudio, content: () => writeWav(result.samples, result.hz) },
    { path: json, content: () => `${JSON.stringify(report(result, loadMs, totalMs))}\n` },
  ]);
  return 0;
}

/** @throws {AppError} usage */
function checkRequest(settings: GenerateSettings): { model: string; audio: string } {
  const { model, audio, image, video } = settings;
  if (image !== null || video !== null) {
    const flag = image !== null ? "--image" : "--video";
    throw new AppError("usage", `${flag} is refused: this model hears, and does not see; pass --audio FILE`);
  }
  if (model === null) throw new AppError("usage", "generate needs a model: -m DIRECTORY or -m OWNER/NAME");
  if (audio === null) {
    throw new AppError(
      "usage",
      "this model has no text chat, it answers recordings: antiphon generate -m MODEL --audio question.wav --output-audio response.wav",
    );
  }
  const liveOnly = (["events", "maxStreamingSeconds", "profile", "profileStages", "profileFrames"] as const).find(
    (key) => settings[key] !== GENERATE_OPTIONS[key].default,
  );
  if (liveOnly !== undefined && !settings.stream) {
    throw new AppError("usage", `--${flagOf(liveOnly)} belongs to a live run: add --stream`);
  }
  return { model, audio };
}

async function fetchCheckpoint(model: string, context: CliContext): Promise<CheckpointPlace> {
  const view = new ProgressView(context.stderr);
  try {
    const options = { signal: context.signal, onProgress: view.show };
    return await findCheckpoint(model, new ModelStore(context.models), options);
  } finally {
    view.close();
  }
}

interface Run {
  readonly result: OfflineResult;
  readonly loadMs: number;
  readonly totalMs: number;
}

/** The networks run in a process of their own, which ends with the run. */
async function run(
  directory: string,
  samples: Float32Array,
  settings: GenerateSettings,
  context: CliContext,
): Promise<Run> {
  const { precision, provider, prompt, extraDecodingSeconds, seed, maxFrames } = settings;
  const startMs = performance.now();
  if (context.stderr.isTty) context.stderr.write("loading the model\r");
  const options: OfflineWorkerOptions = { directory, precision, provider };
  await using worker = await WorkerHost.start<OfflineMethods>({
    name: "voicechat",
    stage: "engine",
    module: new URL("../engines/voicechat/offline-worker.ts", import.meta.url),
    options,
    log: silentLog,
    limits: { loadMs: LOAD_MS_MAX },
    signal: context.signal,
  });
  const loadMs = performance.now() - startMs;
  const progress = new FrameProgress(context.stderr);
  try {
    const result = await worker.call(
      "generate",
      { samples, systemPrompt: prompt, extraDecodingSeconds, seed, framesMax: maxFrames },
      { signal: context.signal, onPart: ({ done, total }) => progress.show(done, total) },
    );
    return { result, loadMs, totalMs: performance.now() - startMs };
  } finally {
    progress.close();
  }
}

/** As a live session. What came before a limit, a fault or Ctrl-C is written all the same. */
async function stream(
  directory: string,
  samples: Float32Array,
  settings: GenerateSettings,
  context: CliContext,
): Promise<number> {
  const { precision, provider, extraDecodingSeconds, maxFrames, prompt, seed, maxStreamingSeconds } = settings;
  const { stdout, stderr, signal } = context;
  const startMs = performance.now();
  const result = await runStream({
    worker: { directory, precision, provider },
    samples,
    extraSeconds: extraDecodingSeconds,
    framesMax: maxFrames,
    systemPrompt: prompt,
    seed,
    maxStreamingSeconds,
    eventsFile: settings.events,
    loadMsMax: LOAD_MS_MAX,
    signal,
    stdout,
    stderr,
  });
  const totalMs = performance.now() - startMs;
  const { outputAudio, json, profileFrames, profile, profileStages } = settings;
  // Of a run that failed before its first frame there is nothing to keep, and an older answer is not written over.
  if (result.failure !== null && result.frames.length === 0) throw result.failure;
  const written = writeOutputs([
    { path: outputAudio, content: () => writeWav(result.samples, result.hz) },
    { path: json, content: () => `${JSON.stringify(streamReport(result, totalMs))}\n` },
    { path: profileFrames, content: () => framesReport(result) },
  ]);
  printLabels(result, context);
  if (profile || profileStages) stdout.write(`${profileSummary(result, profileStages)}\n`);
  await written;
  if (result.failure !== null) throw result.failure;
  return 0;
}

function streamReport(result: StreamResult, totalMs: number): Record<string, unknown> {
  return {
    text: result.text,
    user_transcript: result.userTranscript,
    function_text: result.functionText,
    audio_codes: result.audioCodes,
    sample_rate: result.hz,
    frames: result.audioCodes.length,
    stage_ms: { load: result.loadMs, total: totalMs },
  };
}

/** What stands around the answer, which was printed as it came. */
function printLabels(result: StreamResult, context: CliContext): void {
  const { stdout } = context;
  const line = (name: string, text: string): void =>
    stdout.write(`${styled(stdout, context, "dim", `[${name}]`)} ${printable(text)}\n`);
  line("user", result.userTranscript);
  if (printable(result.functionText) !== "") line("function", result.functionText);
}

function report(result: OfflineResult, loadMs: number, totalMs: number): Record<string, unknown> {
  const frames = result.textIds.length;
  const quantizers = result.audioCodes.length / frames;
  const codesOf = (frame: number): number[] => [
    ...result.audioCodes.subarray(frame * quantizers, (frame + 1) * quantizers),
  ];
  return {
    text: result.text,
    user_transcript: result.userTranscript,
    function_text: result.functionText,
    text_tokens: result.textIds,
    function_tokens: result.functionIds,
    audio_codes: result.textIds.map((_, frame) => codesOf(frame)),
    sample_rate: result.hz,
    frames,
    stage_ms: { load: loadMs, ...result.stageMs, total: totalMs },
  };
}

function print(result: OfflineResult, context: CliContext): void {
  const { stdout } = context;
  const label = (name: string): string => styled(stdout, context, "dim", `[${name}]`);
  stdout.write(`${label("user")} ${printable(result.userTranscript)}\n${printable(result.text)}\n`);
  const called = printable(result.functionText);
  if (called !== "") stdout.write(`${label("function")} ${called}\n`);
  const seconds = result.samples.length / result.hz;
  const workMs = Object.values(result.stageMs).reduce((sum, ms) => sum + ms, 0);
  const { stderr } = context;
  stderr.write(`${result.textIds.length} frames, ${seconds.toFixed(1)} s of speech in ${formatDuration(workMs)}\n`);
}

/** The JSON report has the text as it is. */
const printable = (text: string): string => withoutControls(text).trim();
