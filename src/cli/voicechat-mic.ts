/** `antiphon voicechat-mic`: microphone and speakers on a full-duplex model, which listens while it speaks. */
import { Framer } from "../audio/framer.ts";
import { pcm16ToFloat } from "../audio/pcm.ts";
import { UpstreamError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import { findAudioProgram, listDevices, Microphone, microphoneHint, Speaker } from "./audio-device.ts";
import type { CliContext } from "./context.ts";
import { DuplexView } from "./duplex-view.ts";
import type { PlaybackSink } from "./playback.ts";
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

interface MicrophoneSettings extends VoiceChatClientSettings {
  readonly listDevices: boolean;
  readonly inputDevice: string | null;
  readonly outputDevice: string | null;
  readonly help: boolean;
}

const audio = new OptionGroup("Audio");
const other = new OptionGroup("Other");

const VOICECHAT_MIC_OPTIONS: OptionTable<MicrophoneSettings> = {
  ...VOICECHAT_CLIENT_OPTIONS,
  listDevices: audio.boolean(false, "Print the audio devices and end.", { env: [] }),
  inputDevice: audio.maybeText("Microphone.", { placeholder: "NAME", env: [] }),
  outputDevice: audio.maybeText("Speakers.", { placeholder: "NAME", env: [] }),
  help: other.boolean(false, "Print this.", { short: "h", env: [] }),
};

const HELP: HelpOptions = {
  usage: "antiphon voicechat-mic URL [options]",
  summary:
    "Talks to a VoiceChat server through microphone and speakers; Ctrl-C ends.\nUse headphones: the model listens while it speaks, and through open speakers hears itself.",
  envPrefix: null,
  examples: ["antiphon voicechat-mic ws://127.0.0.1:8765/v1/realtime", "antiphon voicechat-mic --list-devices"],
};

/** @returns the exit code. @throws {AppError} */
export async function runVoiceChatMic(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, VOICECHAT_MIC_OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  if (settings.listDevices) {
    context.stdout.write(listDevices(findAudioProgram()));
    return 0;
  }
  const [url] = positionalsOf(positionals, ["the server's URL"], HELP.usage) as [string];
  return talk(url, settings, context);
}

async function talk(url: string, settings: MicrophoneSettings, context: CliContext): Promise<number> {
  const program = findAudioProgram();
  const view = new DuplexView(context.stdout, context);
  const speaker = new Speaker(program, VOICECHAT_OUTPUT_HZ, settings.outputDevice);
  const line = new LiveLine(systemClock, speaker, VOICECHAT_OUTPUT_HZ);
  try {
    const { signal } = context;
    await using client = await VoiceChatClient.connect(url, settings, view, (pcm) => line.write(pcm), signal);
    const ended = client.run();
    await openedUnless(client, ended, signal);
    context.stderr.write("Speak; Ctrl-C ends. Use headphones: through open speakers the model hears itself.\n");
    const microphone = new Microphone(program, VOICECHAT_INPUT_HZ, settings.inputDevice);
    const stop = (): void => microphone.stop();
    signal.addEventListener("abort", stop);
    try {
      await Promise.race([listen(microphone, client, context), ended, failureOf(speaker, signal)]);
      client.commit();
      await ended;
    } finally {
      signal.removeEventListener("abort", stop);
      microphone.stop();
    }
    return reportFailures(client, context);
  } finally {
    speaker.stop();
  }
}

/** Until the model can hear, Ctrl-C hangs up. @throws the signal's reason. */
async function openedUnless(client: VoiceChatClient, ended: Promise<void>, signal: AbortSignal): Promise<void> {
  const hangUp = (): void => void client[Symbol.asyncDispose]();
  signal.addEventListener("abort", hangUp);
  try {
    await Promise.race([client.opened(), ended]);
  } finally {
    signal.removeEventListener("abort", hangUp);
  }
  signal.throwIfAborted();
}

/** Speakers that go away by themselves end the conversation; Ctrl-C, which reaches their program too, is no such end. */
async function failureOf(speaker: Speaker, signal: AbortSignal): Promise<void> {
  await speaker.ended().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Behind the clock by this much, people are told; by the second, there is no conversation any more. */
const BEHIND_FRAMES_WARN = 25;
const BEHIND_FRAMES_MAX = 375;
/** A microphone that hears nothing at all for this long is one that the system keeps to itself. */
const MUTE_FRAMES = 50;

/** Sends what the microphone hears, 80 ms at a time, until it is stopped or the session is over. */
async function listen(microphone: Microphone, client: VoiceChatClient, context: CliContext): Promise<void> {
  const framer = new Framer(VOICECHAT_FRAME_SAMPLES);
  let muteFrames = 0;
  let warned = false;
  for await (const chunk of microphone.chunks()) {
    for (const frame of framer.push(pcm16ToFloat(chunk)!)) {
      if (!client.listening) return;
      client.append(frame);
      muteFrames = frame.every((sample) => sample === 0) ? muteFrames + 1 : Number.NEGATIVE_INFINITY;
      if (muteFrames === MUTE_FRAMES) {
        context.stderr.write(`antiphon: the microphone gives nothing but zeros. ${microphoneHint()}\n`);
      }
      const behind = client.aheadFrames;
      if (behind > BEHIND_FRAMES_MAX) throw tooSlow();
      if (behind > BEHIND_FRAMES_WARN && !warned) {
        warned = true;
        context.stderr.write("antiphon: the server falls behind: it answers more slowly than you speak.\n");
      }
    }
  }
  const rest = framer.flush();
  if (rest !== null && client.listening) client.append(rest);
}

const tooSlow = (): UpstreamError =>
  new UpstreamError(
    "upstream_timeout",
    `the server is ${(BEHIND_FRAMES_MAX * 80) / 1000} s behind; its machine is too slow for a live talk. A recording works: antiphon voicechat-file`,
  );

/** What may wait to be heard before silence is left out. */
const LAG_MS = 300;
const QUIET_PEAK = 1e-3;

/** Plays what comes at once. After a burst it leaves out quiet frames, until what is heard is what is said now. */
export class LiveLine implements PlaybackSink {
  readonly #clock: Clock;
  readonly #sink: PlaybackSink;
  readonly #hz: number;
  #heardUntilMs = 0;

  constructor(clock: Clock, sink: PlaybackSink, hz: number) {
    this.#clock = clock;
    this.#sink = sink;
    this.#hz = hz;
  }
  write(pcm: Float32Array): void {
    const nowMs = this.#clock.nowMs();
    const isLate = this.#heardUntilMs - nowMs > LAG_MS;
    if (isLate && pcm.every((sample) => Math.abs(sample) < QUIET_PEAK)) return;
    this.#heardUntilMs = Math.max(this.#heardUntilMs, nowMs) + (pcm.length * 1000) / this.#hz;
    this.#sink.write(pcm);
  }
}
