/** argv in, exit status out: finds the command, gives it its surroundings, says what went wrong. */
import { environment, loadConfig } from "../config.ts";
import { AppError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";
import type { CliContext, CliOutput } from "./context.ts";
import { version } from "./version.ts";

type Command = (argv: readonly string[], context: CliContext) => Promise<number>;

interface Entry {
  readonly summary: string;
  /** Each command is loaded when it is asked for. */
  readonly load: () => Promise<Command>;
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: { summary: "start the server", load: async () => (await import("./serve.ts")).runServe },
  talk: {
    summary: "talk to a server: a recording, or microphone and speakers",
    load: async () => (await import("./talk.ts")).runTalk,
  },
  generate: {
    summary: "ask a VoiceChat model a recorded question",
    load: async () => (await import("./generate.ts")).runGenerate,
  },
  "voicechat-file": {
    summary: "say a recording to a VoiceChat server, and record its answer",
    load: async () => (await import("./voicechat-file.ts")).runVoiceChatFile,
  },
  "voicechat-mic": {
    summary: "talk to a VoiceChat server through microphone and speakers",
    load: async () => (await import("./voicechat-mic.ts")).runVoiceChatMic,
  },
  check: {
    summary: "grade any server of the OpenAI Realtime API, requirement by requirement",
    load: async () => (await import("./check.ts")).runCheck,
  },
  models: { summary: "list, fetch and remove models", load: async () => (await import("./models.ts")).runModels },
  doctor: {
    summary: "what this machine has, what is wrong, and how to mend it",
    load: async () => (await import("./doctor.ts")).runDoctor,
  },
};

/** As shells report it: 1 for a failure, 2 for a command line that cannot be used, 130 for Ctrl-C. */
const USAGE_STATUS = 2;
const INTERRUPTED_STATUS = 130;

/** The status where an output cannot be written any more; null while all can. */
let outputStatus: number | null = null;

/** Runs one command and ends the process with its status. */
export async function main(argv: readonly string[]): Promise<never> {
  const status = await run(argv);
  process.exit(outputStatus ?? status);
}

async function run(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  try {
    if (name === "--version" || name === "version") return print(`${version()}\n`, 0);
    if (name === undefined) return print(usage(), USAGE_STATUS);
    if (name === "--help" || name === "-h" || name === "help") return print(usage(), 0);
    const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (entry === undefined) {
      throw new AppError(
        "usage",
        `unknown command "${name}".${suggestion(name, Object.keys(COMMANDS))} See antiphon --help.`,
      );
    }
    return await (await entry.load())(rest, context());
  } catch (error) {
    return explain(error);
  }
}

function print(text: string, status: number): number {
  process.stdout.write(text);
  return status;
}

function usage(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: antiphon COMMAND [options]\n\n${lines.join("\n")}\n\nantiphon COMMAND --help tells more; antiphon --version tells the version.\n`;
}

/** Whoever reads it wants to know what to do; the stack is for faults of ours. */
function explain(error: unknown): number {
  if (error instanceof AppError && error.code !== "internal_error") {
    process.stderr.write(`antiphon: ${error.message.replaceAll("\n", "\nantiphon: ")}\n`);
    return error.code === "usage" || error.code === "config_invalid" ? USAGE_STATUS : 1;
  }
  if (error instanceof Error && error.name === "AbortError") return INTERRUPTED_STATUS;
  process.stderr.write(
    `antiphon: a fault of antiphon itself, please report it:\n${(error as Error).stack ?? String(error)}\n`,
  );
  return 1;
}

function context(): CliContext {
  const config = loadConfig();
  const abort = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => abort.abort());
  const { cacheDir, offline, hfToken, hfEndpoint } = config;
  return {
    stdout: outputOf(process.stdout, abort),
    stderr: outputOf(process.stderr, abort),
    color: (environment()["NO_COLOR"] ?? "") === "",
    models: { cacheDir, offline, hfToken, hfEndpoint },
    signal: abort.signal,
  };
}

/**
 * A reader that has gone, as in `antiphon talk | head`, ends the command as Ctrl-C does, with its files written, and not with
 * a stack. A full disk is a failure.
 */
function outputOf(stream: NodeJS.WriteStream, abort: AbortController): CliOutput {
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (outputStatus !== null) return;
    outputStatus = code === "EPIPE" ? 0 : 1;
    if (outputStatus === 1 && stream !== process.stderr) {
      process.stderr.write(`antiphon: standard output could not be written (${code})\n`);
    }
    abort.abort();
  });
  return {
    write: (text) => void stream.write(text),
    isTty: stream.isTTY === true,
    get columns() {
      return stream.columns ?? 80;
    },
  };
}
