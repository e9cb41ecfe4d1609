/** `antiphon voicechat-file`: a recording to a server with a full-duplex model, and its recorded answer. */
import { concatPcm } from "../audio/pcm.ts";
import { writeWav } from "../audio/wav.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import type { CliContext } from "./context.ts";
import { DuplexView } from "./duplex-view.ts";
import { checkOutputs, writeOutput } from "./output-files.ts";
import { readRecording } from "./recording.ts";
import {
  positionalsOf,
  reportFailures,
  VOICECHAT_CLIENT_OPTIONS,
  VOICECHAT_FRAME_SAMPLES,
  VOICECHAT_INPUT_HZ,
  VOICECHAT_OUTPUT_HZ,
  VoiceChatClient,
  type VoiceChatClientSettings,
} from "./voicechat-client.ts";

interface FileSettings extends VoiceChatClientSettings {
  readonly extraSeconds: number;
  readonly help: boolean;
}

const other = new OptionGroup("Other");
/** A session of the dialect lasts at most this long. */
const SESSION_SECONDS_MAX = 600;

const VOICECHAT_FILE_OPTIONS: OptionTable<FileSettings> = {
  ...VOICECHAT_CLIENT_OPTIONS,
  extraSeconds: other.number(3, [0, SESSION_SECONDS_MAX], "Silence after the recording, for the answer.", { env: [] }),
  help: other.boolean(false, "Print this.", { short: "h", env: [] }),
};

const HELP: HelpOptions = {
  usage: "antiphon voicechat-file URL in.wav out.wav [options]",
  summary:
    "Says a recording (WAV of any kind, or what ffmpeg reads) to a VoiceChat server; prints what it hears and answers, and records the answer: WAV, 22,050 Hz.",
  envPrefix: null,
  examples: [
    'antiphon voicechat-file ws://127.0.0.1:8765/v1/realtime question.wav answer.wav --system-prompt "Be concise."',
  ],
};

/** @returns the exit code. @throws {AppError} */
export async function runVoiceChatFile(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, VOICECHAT_FILE_OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  const names = ["the server's URL", "a recording", "a file for the answer"];
  const [url, input, output] = positionalsOf(positionals, names, HELP.usage) as [string, string, string];
  await checkOutputs([{ flag: "the answer", path: output }], { flag: "the recording", path: input });
  const recording = await readRecording(input, VOICECHAT_INPUT_HZ, SESSION_SECONDS_MAX, context.signal);
  const pcm = new Float32Array(recording.length + Math.round(settings.extraSeconds * VOICECHAT_INPUT_HZ));
  pcm.set(recording);
  const answer: Float32Array[] = [];
  const { signal } = context;
  const view = new DuplexView(context.stdout, context);
  await using client = await VoiceChatClient.connect(url, settings, view, (samples) => answer.push(samples), signal);
  const hangUp = (): void => void client[Symbol.asyncDispose]();
  signal.addEventListener("abort", hangUp);
  try {
    await Promise.all([client.run(), send(client, pcm)]);
  } finally {
    signal.removeEventListener("abort", hangUp);
    // What was heard is kept, however the session ended.
    if (answer.length > 0) await writeOutput(output, writeWav(concatPcm(answer), VOICECHAT_OUTPUT_HZ));
  }
  signal.throwIfAborted();
  return reportFailures(client, context);
}

/** As fast as the server answers, and no faster. */
async function send(client: VoiceChatClient, pcm: Float32Array): Promise<void> {
  await client.opened();
  for (let at = 0; at < pcm.length && client.listening; at += VOICECHAT_FRAME_SAMPLES) {
    await client.room();
    client.append(pcm.subarray(at, at + VOICECHAT_FRAME_SAMPLES));
  }
  client.commit();
}
