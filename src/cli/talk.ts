/** `antiphon talk`: a recorded question and a recorded answer, or microphone and speakers. */
import { concatPcm, floatToPcm16 } from "../audio/pcm.ts";
import { writeWav } from "../audio/wav.ts";
import { AppError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import { findAudioProgram, listDevices, Microphone, Speaker } from "./audio-device.ts";
import type { CliContext } from "./context.ts";
import { checkOutputs, writeOutput } from "./output-files.ts";
import { Playback } from "./playback.ts";
import { RealtimeClient, trustedCertificate } from "./realtime-client.ts";
import { readRecording } from "./recording.ts";
import { type ServerSettings, server, serverOptions } from "./server-options.ts";
import { TALK_HZ, TalkSession } from "./talk-session.ts";
import { loadTools } from "./tool-module.ts";
import { JsonView, TextView } from "./transcript-view.ts";

interface TalkSettings extends ServerSettings {
  readonly url: string;
  readonly model: string | null;
  readonly instructions: string | null;
  readonly voice: string | null;
  readonly tools: string | null;
  readonly inputFile: string | null;
  readonly outputFile: string | null;
  readonly listDevices: boolean;
  readonly inputDevice: string | null;
  readonly outputDevice: string | null;
  readonly printJson: boolean;
  readonly help: boolean;
}

const conversation = new OptionGroup("Conversation");
const audio = new OptionGroup("Audio");
const other = new OptionGroup("Other");

export const TALK_OPTIONS: OptionTable<TalkSettings> = {
  url: server.text("ws://127.0.0.1:8765/v1/realtime", "A server of the OpenAI Realtime API.", {
    placeholder: "URL",
    env: ["ANTIPHON_URL"],
  }),
  model: server.maybeText("Model to ask the server for.", { placeholder: "NAME", env: [] }),
  ...serverOptions(["ANTIPHON_API_KEY", "OPENAI_API_KEY"]),
  instructions: conversation.maybeText("How the assistant is to be.", { env: [] }),
  voice: conversation.maybeText("Voice of the answers.", { placeholder: "NAME", env: [] }),
  tools: conversation.maybeText("Module whose functions the model may call; they run here.", {
    placeholder: "FILE",
    env: [],
  }),
  inputFile: audio.maybeText("Say this recording (WAV, or what ffmpeg reads) instead of listening to the microphone.", {
    placeholder: "FILE",
    env: [],
  }),
  outputFile: audio.maybeText(
    "Write the spoken answers to this WAV file; without speakers if there is an input file.",
    {
      placeholder: "FILE",
      env: [],
    },
  ),
  listDevices: audio.boolean(false, "Print the audio devices and end.", { env: [] }),
  inputDevice: audio.maybeText("Microphone.", { placeholder: "NAME", env: [] }),
  outputDevice: audio.maybeText("Speakers.", { placeholder: "NAME", env: [] }),
  printJson: other.boolean(false, "Print the server's events as lines of JSON.", { env: [] }),
  help: other.boolean(false, "Print this.", { env: [] }),
};

const HELP: HelpOptions = {
  usage: "antiphon talk [options]",
  summary: "Talks to a server: speaks what you say or play, prints and plays what it answers.",
  envPrefix: null,
  examples: [
    "antiphon talk",
    "antiphon talk --input-file question.wav --output-file answer.wav",
    "antiphon talk --tools weather.mjs --instructions 'Be brief.'",
  ],
};

/** What is said from a file is held in memory. */
const QUESTION_SECONDS_MAX = 3600;
/** 20 ms, as telephones do. */
const CHUNK_MS = 20;
/** After the recording, how long silence goes on before a server that says nothing counts as one that heard nothing. */
const PATIENCE_MS = 10_000;
/** And how long an answer may take that has begun. */
const ANSWER_PATIENCE_MS = 120_000;

/** @returns the exit code. @throws {AppError} */
export async function runTalk(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, TALK_OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  if (positionals.length > 0)
    throw new AppError("usage", `talk takes no ${positionals[0]}; a recording goes in with --input-file`);
  if (settings.listDevices) {
    context.stdout.write(listDevices(findAudioProgram()));
    return 0;
  }
  const { inputFile, outputFile } = settings;
  await checkOutputs([{ flag: "--output-file", path: outputFile }], { flag: "--input-file", path: inputFile });
  return settings.inputFile === null
    ? talkAloud(settings, context)
    : talkFromFile(settings, settings.inputFile, context);
}

/** A recording in real time; ends when its last question has been answered. */
async function talkFromFile(settings: TalkSettings, inputFile: string, context: CliContext): Promise<number> {
  const question = await readRecording(inputFile, TALK_HZ, QUESTION_SECONDS_MAX, context.signal);
  const answer = new Recording();
  const line = await open(settings, context, answer);
  await using client = line.client;
  const clock = systemClock;
  context.signal.addEventListener("abort", () => void client[Symbol.asyncDispose]());
  const ended = line.session.run();
  try {
    await Promise.race([play(question, line, clock), ended]);
    await line.playback.finish();
  } finally {
    await client[Symbol.asyncDispose]();
    if (settings.outputFile !== null) await writeOutput(settings.outputFile, writeWav(answer.pcm, TALK_HZ));
  }
  return report(line.session, context);
}

/** Sends the question, then silence until the conversation rests. */
async function play(question: Float32Array, line: Line, clock: Clock): Promise<void> {
  const chunkSamples = (TALK_HZ * CHUNK_MS) / 1000;
  const silence = new Float32Array(chunkSamples);
  const startMs = clock.nowMs();
  let quietSinceMs = Number.POSITIVE_INFINITY;
  let turnCount = 0;
  for (let chunk = 0; ; chunk++) {
    const at = chunk * chunkSamples;
    const pcm = at < question.length ? question.subarray(at, at + chunkSamples) : silence;
    line.session.append(floatToPcm16(pcm));
    const nowMs = clock.nowMs();
    if (at >= question.length) {
      quietSinceMs = Math.min(quietSinceMs, nowMs);
      // A turn that was just heard restarts the wait: it may be one of several.
      if (line.session.turnCount !== turnCount) quietSinceMs = nowMs;
      turnCount = line.session.turnCount;
      const quietMs = nowMs - quietSinceMs;
      if (line.session.resting && (turnCount > 0 ? quietMs >= SETTLE_MS : quietMs >= PATIENCE_MS)) return;
      if (quietMs >= ANSWER_PATIENCE_MS)
        throw new AppError("upstream_timeout", `the server has not finished its answer in ${ANSWER_PATIENCE_MS} ms`);
    }
    await until(clock, startMs + (chunk + 1) * CHUNK_MS);
  }
}

/** The end of the last turn comes this long after the last word, at most; before that, resting means nothing. */
const SETTLE_MS = 1500;

function until(clock: Clock, atMs: number): Promise<void> {
  const waitMs = atMs - clock.nowMs();
  return waitMs <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.schedule(waitMs, resolve));
}

/** Microphone and speakers, until Ctrl-C or the server's end. */
async function talkAloud(settings: TalkSettings, context: CliContext): Promise<number> {
  const program = findAudioProgram();
  const microphone = new Microphone(program, TALK_HZ, settings.inputDevice);
  const speaker = new Speaker(program, TALK_HZ, settings.outputDevice);
  const answer = new Recording();
  const sink = {
    write(pcm: Float32Array): void {
      speaker.write(pcm);
      if (settings.outputFile !== null) answer.write(pcm);
    },
  };
  const stop = (): void => microphone.stop();
  context.signal.addEventListener("abort", stop);
  try {
    const line = await open(settings, context, sink);
    await using client = line.client;
    if (!settings.printJson)
      context.stderr.write("Speak; Ctrl-C ends. Headphones keep the assistant from hearing itself.\n");
    const ended = line.session.run();
    await Promise.race([listen(microphone, line.session), speaker.ended(), ended]);
    await client[Symbol.asyncDispose]();
    return report(line.session, context);
  } finally {
    context.signal.removeEventListener("abort", stop);
    microphone.stop();
    speaker.stop();
    if (settings.outputFile !== null) await writeOutput(settings.outputFile, writeWav(answer.pcm, TALK_HZ));
  }
}

async function listen(microphone: Microphone, session: TalkSession): Promise<void> {
  for await (const chunk of microphone.chunks()) session.append(chunk);
}

interface Line {
  readonly client: RealtimeClient;
  readonly session: TalkSession;
  readonly playback: Playback;
}

async function open(
  settings: TalkSettings,
  context: CliContext,
  sink: { write(pcm: Float32Array): void },
): Promise<Line> {
  const tools = settings.tools === null ? [] : await loadTools(settings.tools);
  const playback = new Playback(systemClock, sink, TALK_HZ);
  const client = await RealtimeClient.connect({
    url: settings.url,
    apiKey: settings.apiKey,
    model: settings.model,
    ca: trustedCertificate(settings.tlsCa),
    signal: context.signal,
  });
  const view = settings.printJson ? new JsonView(context.stdout) : new TextView(context.stdout);
  const { instructions, voice } = settings;
  return { client, playback, session: new TalkSession({ client, playback, view, instructions, voice, tools }) };
}

/** What was heard of the answers, one after another. */
class Recording {
  readonly #pieces: Float32Array[] = [];
  write(pcm: Float32Array): void {
    this.#pieces.push(pcm);
  }
  get pcm(): Float32Array {
    return concatPcm(this.#pieces);
  }
}

function report(session: TalkSession, context: CliContext): number {
  if (session.failures.length > 0) return 1;
  if (session.turnCount > 0) return 0;
  context.stderr.write("antiphon: the server heard no speech.\n");
  return 1;
}
