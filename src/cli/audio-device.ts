/** Microphone and speakers, through the audio programs that the machine has. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { floatToPcm16 } from "../audio/pcm.ts";
import { environment } from "../config.ts";
import { AppError } from "../errors.ts";
import type { PlaybackSink } from "./playback.ts";

/** How one family of programs records and plays raw PCM16 mono on standard output and input. */
export interface AudioProgram {
  readonly name: string;
  readonly record: CommandLine;
  readonly play: CommandLine;
  /** Command lines that print the devices: inputs, outputs. */
  readonly list: readonly [inputs: readonly string[], outputs: readonly string[]] | null;
}

type CommandLine = (hz: number, device: string | null) => readonly string[];

const option = (flag: string, device: string | null): string[] => (device === null ? [] : [flag, device]);

const pulse =
  (command: string, latencyMs: number): CommandLine =>
  (hz, device) => [
    ...[command, "--raw", "--format=s16le", `--rate=${hz}`, "--channels=1", `--latency-msec=${latencyMs}`],
    ...option("-d", device),
  ];

const PULSE: AudioProgram = {
  name: "PulseAudio or PipeWire (parec, pacat)",
  record: pulse("parec", 20),
  play: pulse("pacat", 60),
  list: [
    ["pactl", "list", "short", "sources"],
    ["pactl", "list", "short", "sinks"],
  ],
};

const alsa =
  (...command: readonly string[]): CommandLine =>
  (hz, device) => [
    ...[...command, "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", `${hz}`],
    ...option("-D", device),
  ];

const ALSA: AudioProgram = {
  name: "ALSA (arecord, aplay)",
  record: alsa("arecord"),
  play: alsa("aplay", "--buffer-time=100000"),
  list: [
    ["arecord", "-L"],
    ["aplay", "-L"],
  ],
};

const SOX_FORMAT = ["-t", "raw", "-e", "signed", "-b", "16", "-c", "1"];

/** SoX takes the device from the environment, or as a file of the driver's type. */
function sox(driver: string): AudioProgram {
  const end = (device: string | null): string[] => (device === null ? ["-d"] : ["-t", driver, device]);
  return {
    name: "SoX (sox)",
    record: (hz, device) => ["sox", "-q", "--buffer", "1024", ...end(device), ...SOX_FORMAT, "-r", `${hz}`, "-"],
    play: (hz, device) => ["sox", "-q", "--buffer", "1024", ...SOX_FORMAT, "-r", `${hz}`, "-", ...end(device)],
    list: null,
  };
}

function programs(): readonly AudioProgram[] {
  if (process.platform === "darwin") return [sox("coreaudio")];
  if (process.platform === "win32") return [sox("waveaudio")];
  return [PULSE, ALSA, sox("alsa")];
}

const INSTALL: Readonly<Record<string, string>> = {
  darwin: "brew install sox",
  win32: "winget install --id ChrisBagwell.SoX",
  linux: "apt install pulseaudio-utils, or alsa-utils",
};

/** @throws {AppError} audio_device where the machine has none of them. */
export function findAudioProgram(): AudioProgram {
  const found = programs().find((program) => onPath(program.record(1, null)[0]!) && onPath(program.play(1, null)[0]!));
  if (found !== undefined) return found;
  const names = programs().map((program) => program.name);
  throw new AppError(
    "audio_device",
    `No audio program was found (${names.join("; ")}). Install one (${INSTALL[process.platform] ?? "SoX"}), or use a recording: talk --input-file, or voicechat-file.`,
  );
}

function onPath(command: string): boolean {
  const names = process.platform === "win32" ? [`${command}.exe`, command] : [command];
  return (environment()["PATH"] ?? "").split(delimiter).some((directory) =>
    names.some((name) => {
      try {
        accessSync(join(directory, name), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    }),
  );
}

/** What the programs themselves print about devices. */
export function listDevices(program: AudioProgram): string {
  if (program.list === null) {
    return `${program.name} cannot list devices; without --input-device and --output-device it takes the system's own.\n`;
  }
  const [inputs, outputs] = program.list.map(([command, ...args]) => {
    const result = spawnSync(command!, args, { encoding: "utf8" });
    return result.status === 0 ? result.stdout.trimEnd() : `(${command}: ${firstLine(result.stderr) || "failed"})`;
  });
  return `Input devices (${program.name}):\n${inputs}\n\nOutput devices:\n${outputs}\n`;
}

const firstLine = (text: string | null): string => (text ?? "").trim().split("\n")[0] ?? "";

/** Where this system asks people whether a program may listen. */
export const microphoneHint = (): string =>
  ({
    darwin: "The terminal needs access: System Settings > Privacy & Security > Microphone.",
    win32: "The terminal needs access: Settings > Privacy & security > Microphone.",
  })[process.platform as string] ?? "Is it muted, held by another program, or is this user not in the group audio?";

export class Microphone {
  readonly #child: Child;
  constructor(program: AudioProgram, hz: number, device: string | null) {
    this.#child = new Child(program.record(hz, device), "microphone", "--input-device");
  }
  /** PCM16 as it comes, in whole samples. Ends with `stop`. @throws {AppError} audio_device if the program fails. */
  async *chunks(): AsyncGenerator<Buffer> {
    let odd: Buffer = Buffer.alloc(0);
    for await (const chunk of this.#child.stdout) {
      const bytes = Buffer.concat([odd, chunk as Buffer]);
      const whole = bytes.length - (bytes.length % 2);
      odd = bytes.subarray(whole);
      if (whole > 0) yield bytes.subarray(0, whole);
    }
    await this.#child.ended();
  }
  stop(): void {
    this.#child.stop();
  }
}

export class Speaker implements PlaybackSink {
  readonly #child: Child;
  constructor(program: AudioProgram, hz: number, device: string | null) {
    this.#child = new Child(program.play(hz, device), "speaker", "--output-device");
  }
  write(pcm: Float32Array): void {
    this.#child.stdin.write(floatToPcm16(pcm));
  }
  /** Resolves when the program has ended: after `stop`, or by itself. @throws {AppError} audio_device then. */
  ended(): Promise<void> {
    return this.#child.ended();
  }
  stop(): void {
    this.#child.stop();
  }
}

class Child {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  #stopped = false;
  constructor(commandLine: readonly string[], what: string, flag: string) {
    const [command, ...args] = commandLine;
    this.#process = spawn(command!, args, { stdio: ["pipe", "pipe", "pipe"] });
    let complaint = "";
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(-2000);
    });
    // A player that has gone breaks the pipe; its exit status says why.
    this.stdin.on("error", () => {});
    this.#ended = new Promise((resolve, reject) => {
      const fail = (reason: string): void =>
        reject(
          new AppError(
            "audio_device",
            `The ${what} cannot be used: ${command} ${reason}. See --list-devices, choose one with ${flag}.${what === "microphone" ? ` ${microphoneHint()}` : ""}`,
          ),
        );
      this.#process.once("error", (error) => fail(error.message));
      this.#process.once("close", (status, signal) => {
        if (this.#stopped || status === 0) resolve();
        else fail(`ended with ${status ?? signal}${complaint === "" ? "" : ` (${firstLine(complaint)})`}`);
      });
    });
    this.#ended.catch(() => {});
  }
  get stdin(): Writable {
    return this.#process.stdin as Writable;
  }
  get stdout(): Readable {
    return this.#process.stdout as Readable;
  }
  ended(): Promise<void> {
    return this.#ended;
  }
  stop(): void {
    this.#stopped = true;
    this.#process.kill("SIGTERM");
  }
}
