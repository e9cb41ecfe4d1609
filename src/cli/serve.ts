/** `antiphon serve`: loads the models, serves, says where, and leaves calmly when it is told to. */
import { type Config, configOptions, ENV_PREFIX, environment, loadConfig } from "../config.ts";
import { AppError } from "../errors.ts";
import { engineLoader } from "../server/load-engine.ts";
import { realtimeSessions } from "../server/realtime-sessions.ts";
import { createServer, type Server } from "../server/server.ts";
import { networkAddresses } from "../server/tls.ts";
import { voiceChatSessions } from "../server/voicechat-sessions.ts";
import { systemClock } from "../util/clock.ts";
import { createLog } from "../util/log.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { help, parseArguments } from "./arguments.ts";
import type { CliContext } from "./context.ts";
import { readableLogLine } from "./log-line.ts";
import { ProgressView } from "./progress-view.ts";
import { version } from "./version.ts";

interface ServeSettings extends Config {
  readonly config: string | null;
  readonly help: boolean;
}

const other = new OptionGroup("Other");

export function serveOptions(): OptionTable<ServeSettings> {
  return {
    ...configOptions(environment()),
    config: other.maybeText("File of options, as JSON: antiphon.config.json of this directory, if it is there.", {
      placeholder: "FILE",
      env: ["ANTIPHON_CONFIG"],
    }),
    help: other.boolean(false, "Print this.", { env: [] }),
  };
}

/** @returns the exit code. @throws {AppError} if the server cannot start. */
export async function runServe(argv: readonly string[], context: CliContext): Promise<number> {
  const options = serveOptions();
  const { flags, positionals } = parseArguments(argv, options);
  if (positionals.length > 0)
    throw new AppError("usage", `serve takes no ${positionals[0]}; see antiphon serve --help`);
  const { help: wantsHelp, config: file, ...settings } = flags;
  if (wantsHelp === true) {
    context.stdout.write(serveHelp(options));
    return 0;
  }
  const config = loadConfig({ flags: settings, file: typeof file === "string" ? file : null });
  await serve(config, context);
  return 0;
}

function serveHelp(options: OptionTable<ServeSettings>): string {
  return help(options, {
    usage: "antiphon serve [options]",
    summary:
      "Serves voice conversations over the OpenAI Realtime API.\nA value comes from, weakest first: its default, the config file (keys in camelCase), the environment, a flag.",
    envPrefix: ENV_PREFIX,
    examples: ["antiphon serve", "antiphon serve --host 0.0.0.0 --tls self-signed --api-key secret"],
  });
}

async function serve(config: Config, context: CliContext): Promise<void> {
  const progress = new ProgressView(context.stderr);
  const log = createLog(
    config.logLevel,
    context.stderr.isTty ? (line) => progress.line(readableLogLine(line)) : undefined,
  );
  const notes: { choice: string | null; stages: string | null } = { choice: null, stages: null };
  const startedMs = systemClock.nowMs();
  const server = await createServer({
    config,
    log,
    load: engineLoader({
      config,
      log,
      signal: context.signal,
      onProgress: progress.show,
      onChoice: ({ name, reason }) => {
        notes.choice = `${name} (${reason})`;
      },
      onLoaded: (stages) => {
        notes.stages = Object.entries(stages)
          .map(([stage, name]) => `${stage} ${name}`)
          .join(", ");
      },
    }),
    sessions:
      config.model === null
        ? realtimeSessions({ config, log })
        : voiceChatSessions({ log, unsentBytesMax: config.unsentBytesMax }),
  });
  try {
    await server.listen();
    progress.line(`antiphon ${version()}: loading on ${server.url} …`);
    await server.ready;
    if (context.signal.aborted) return;
    const seconds = ((systemClock.nowMs() - startedMs) / 1000).toFixed(1);
    context.stdout.write(announcement(server, config, { ...notes, seconds }));
    await stopped(context.signal);
    context.stderr.write(
      `antiphon: finishing what is being said (at most ${config.drainTimeoutMs} ms); Ctrl-C again ends at once\n`,
    );
    await server.drain();
  } finally {
    progress.close();
    await server[Symbol.asyncDispose]();
  }
}

interface Notes {
  readonly choice: string | null;
  readonly stages: string | null;
  readonly seconds: string;
}

function announcement(server: Server, config: Config, notes: Notes): string {
  const api = `${server.url.replace(/^http/, "ws")}${config.apiPrefix}/v1/realtime`;
  const lines: [string, string][] = [["ready", `in ${notes.seconds} s`]];
  if (notes.stages !== null) lines.push(["stages", notes.stages]);
  if (notes.choice !== null) lines.push(["llm", notes.choice]);
  lines.push(["page", `${server.url}${config.apiPrefix}/`], ["api", api]);
  if (isWildcard(config.host)) {
    for (const address of networkAddresses()) lines.push(["network", api.replace(/\/\/[^/]*:/, `//${address}:`)]);
  }
  lines.push(...trust(server, config));
  if (config.apiKey === null && !isLoopback(config.host)) {
    lines.push(["warning", "everyone on the network may talk; --api-key keeps strangers out"]);
  }
  const talk = config.model === null ? `antiphon talk${talkFlags(server)}` : `antiphon voicechat-mic ${api}`;
  lines.push(["talk", `open the page, or: ${talk}`], ["stop", "Ctrl-C"]);
  return lines.map(([label, text]) => `${label.padEnd(8)} ${text}\n`).join("");
}

function trust({ tls }: Server, config: Config): [string, string][] {
  if (tls === null) {
    const secure = isLoopback(config.host)
      ? []
      : ["browsers give the microphone to https pages only; add --tls self-signed"];
    return secure.map((text) => ["note", text]);
  }
  if (tls.selfSignedFile === null) return [["sha-256", tls.fingerprint]];
  return [
    ["sha-256", tls.fingerprint],
    ["trust", `browsers: compare the fingerprint and accept. Node: NODE_EXTRA_CA_CERTS=${tls.selfSignedFile}`],
    ["", `Python: SSL_CERT_FILE=${tls.selfSignedFile}`],
  ];
}

function talkFlags(server: Server): string {
  const { host } = new URL(server.url);
  if (server.tls !== null) return ` --url wss://${host.replace("0.0.0.0", "127.0.0.1")}`;
  return host === "127.0.0.1:8765" ? "" : ` --url ws://${host.replace("0.0.0.0", "127.0.0.1")}`;
}

const isLoopback = (host: string): boolean => /^(127\.|localhost$|::1$)/.test(host);
const isWildcard = (host: string): boolean => host === "0.0.0.0" || host === "::";

function stopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
