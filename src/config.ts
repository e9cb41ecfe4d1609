/** The server's configuration: defaults < file < environment < flags. The only reader of `process.env`. */
import { readFileSync } from "node:fs";
import { availableParallelism, homedir, platform } from "node:os";
import { join, resolve } from "node:path";
import { ConfigError } from "./errors.ts";
import type { LogLevel } from "./util/log.ts";
import { envOf, OptionGroup, type OptionTable, resolveOptions, rows, unknownVariables } from "./util/options.ts";

export interface Config {
  // Server
  readonly host: string;
  readonly port: number;
  readonly tls: "off" | "self-signed";
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  readonly apiKey: string | null;
  /** Goes before every path: `/voice` serves `/voice/v1/realtime`. */
  readonly apiPrefix: string;
  /** Origins whose pages may use the server; `*` for all. The two lists are one. */
  readonly corsOrigins: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** Sessions at a time; null for what the engine takes by default. */
  readonly maxSessions: number | null;
  readonly messageBytesMax: number;
  readonly unsentBytesMax: number;
  readonly pingMs: number;
  readonly idleTimeoutMs: number;
  readonly sessionMaxMs: number;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
  /** JSON; see `server/ice.ts`. */
  readonly iceServers: string | null;
  readonly iceUdpPort: string | null;
  readonly iceNatIp: string | null;
  // Full-duplex model
  /** A VoiceChat checkpoint to serve instead of the cascade: a directory or a hub id. */
  readonly model: string | null;
  /** The id under which it is served; the directory's name where null. */
  readonly alias: string | null;
  readonly precision: "exact" | "fast";
  readonly provider: "cpu" | "webgpu" | "cuda" | "coreml";
  // Pipeline
  /** Names under which the engine's first model is served as well. */
  readonly modelAliases: readonly string[];
  readonly vad: "silero" | "energy";
  readonly stt: "moonshine" | "parakeet-tdt" | "whisper" | "paraformer" | "openai";
  readonly sttModel: string | null;
  readonly sttBaseUrl: string | null;
  readonly sttApiKey: string | null;
  readonly llm: "auto" | "local" | "chat-completions" | "responses-api";
  readonly llmModel: string | null;
  readonly llmBaseUrl: string | null;
  readonly llmApiKey: string | null;
  readonly llmTools: "auto" | "native" | "prompted";
  readonly tts: "piper" | "kokoro" | "flite" | "openai";
  readonly ttsModel: string | null;
  readonly ttsBaseUrl: string | null;
  readonly ttsApiKey: string | null;
  readonly voice: string | null;
  readonly instructions: string | null;
  readonly threads: number;
  // Models
  readonly cacheDir: string;
  readonly dataDir: string;
  readonly offline: boolean;
  readonly hfToken: string | null;
  readonly hfEndpoint: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const server = new OptionGroup("Server");
const duplex = new OptionGroup("Full-duplex model (VoiceChat)");
const pipeline = new OptionGroup("Pipeline");
const models = new OptionGroup("Models");

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * MINUTE_MS;

export const ENV_PREFIX = "ANTIPHON_";
const DEFAULT_FILE = "antiphon.config.json";

/** Variables with the prefix that other commands read. */
const OTHER_VARIABLES: readonly string[] = ["ANTIPHON_URL", "ANTIPHON_CONFIG"];

/** The options of `antiphon serve`; `env` gives the directories that the platform keeps such files in. */
export function configOptions(env: Environment): OptionTable<Config> {
  return { ...serverOptions(), ...duplexOptions(), ...pipelineOptions(), ...modelOptions(env) };
}

type ServerKeys =
  | "host"
  | "port"
  | "tls"
  | "tlsCert"
  | "tlsKey"
  | "apiKey"
  | "corsOrigins"
  | "allowedOrigins"
  | "maxSessions"
  | "apiPrefix"
  | "messageBytesMax"
  | "unsentBytesMax"
  | "pingMs"
  | "idleTimeoutMs"
  | "sessionMaxMs"
  | "drainTimeoutMs"
  | "logLevel"
  | "iceServers"
  | "iceUdpPort"
  | "iceNatIp";
type DuplexKeys = "model" | "alias" | "precision" | "provider";
type ModelKeys = "cacheDir" | "dataDir" | "offline" | "hfToken" | "hfEndpoint";

function serverOptions(): OptionTable<Pick<Config, ServerKeys>> {
  return {
    host: server.text("127.0.0.1", "Address to listen on; 0.0.0.0 opens it to the network.", { placeholder: "HOST" }),
    port: server.integer(8765, [0, 65_535], "Port to listen on; 0 takes a free one.", { placeholder: "PORT" }),
    tls: server.choice("off", ["off", "self-signed"], "self-signed: make a certificate once, keep it, serve https."),
    tlsCert: server.maybeText("Certificate chain (PEM), together with --tls-key.", { placeholder: "FILE" }),
    tlsKey: server.maybeText("Private key (PEM) of --tls-cert.", { placeholder: "FILE" }),
    apiKey: server.maybeText("Clients must present this key. Without it everyone who can connect may talk.", {
      placeholder: "KEY",
      secret: true,
    }),
    corsOrigins: server.list([], "Origins whose web pages may use the server, besides its own; * for all.", {
      placeholder: "ORIGIN,...",
    }),
    allowedOrigins: server.list([], "Likewise: another name of --cors-origins, added to it.", {
      placeholder: "ORIGIN,...",
    }),
    apiPrefix: server.path("", "Goes before every path: /voice serves /voice/v1/realtime.", { placeholder: "/PATH" }),
    maxSessions: server.maybeInteger(
      [1, 10_000],
      "Sessions at a time: 16 unless given, 1 with --model, whose every session costs memory.",
    ),
    messageBytesMax: server.integer(16 * MIB, [1024, 256 * MIB], "Largest message that is read.", {
      placeholder: "BYTES",
    }),
    unsentBytesMax: server.integer(16 * MIB, [1024, 256 * MIB], "Unread output after which a client is dropped.", {
      placeholder: "BYTES",
    }),
    pingMs: server.integer(20_000, [100, DAY_MS], "Time between pings; two unanswered ones end a session.", {
      placeholder: "MS",
    }),
    idleTimeoutMs: server.integer(
      15 * MINUTE_MS,
      [0, DAY_MS],
      "A session that sends nothing for so long ends; 0: never.",
      {
        placeholder: "MS",
      },
    ),
    sessionMaxMs: server.integer(0, [0, 30 * DAY_MS], "Greatest length of a session; 0: no limit.", {
      placeholder: "MS",
    }),
    drainTimeoutMs: server.integer(10_000, [0, DAY_MS], "On SIGTERM, how long running answers may go on.", {
      placeholder: "MS",
    }),
    logLevel: server.choice(
      "info",
      ["silent", "error", "warn", "info", "debug", "trace"],
      "What is logged (JSON lines on stderr).",
    ),
    iceServers: server.maybeText("STUN and TURN servers for WebRTC, as JSON.", {
      placeholder: "JSON",
      env: ["ANTIPHON_ICE_SERVERS", "SPEECH_TO_SPEECH_ICE_SERVERS"],
    }),
    iceUdpPort: server.maybeText("UDP port or range of WebRTC media: 50000-50100.", { placeholder: "PORT" }),
    iceNatIp: server.maybeText("Address under which WebRTC peers reach this machine.", { placeholder: "IP" }),
  };
}

function duplexOptions(): OptionTable<Pick<Config, DuplexKeys>> {
  return {
    model: duplex.maybeText("Serve this checkpoint instead of the pipeline: a directory, or an id on the hub.", {
      placeholder: "MODEL",
      short: "m",
    }),
    alias: duplex.maybeText("Id under which it is served; the directory's name unless given.", { placeholder: "ID" }),
    precision: duplex.choice("exact", ["exact", "fast"], "How quantized weights are multiplied."),
    provider: duplex.choice("cpu", ["cpu", "webgpu", "cuda", "coreml"], "What the networks run on."),
  };
}

function pipelineOptions(): OptionTable<Omit<Config, ServerKeys | DuplexKeys | ModelKeys>> {
  const url = "an OpenAI-compatible server";
  return {
    modelAliases: pipeline.list(MODEL_ALIASES, "Names that clients may ask for and get what is served.", {
      placeholder: "NAME,...",
    }),
    vad: pipeline.choice("silero", ["silero", "energy"], "Voice activity detector."),
    stt: pipeline.choice(
      "moonshine",
      ["moonshine", "parakeet-tdt", "whisper", "paraformer", "openai"],
      "Speech to text.",
    ),
    sttModel: pipeline.maybeText("Model of the chosen --stt: a catalog name, or the remote id.", {
      placeholder: "NAME",
    }),
    sttBaseUrl: pipeline.maybeUrl(`Base address of ${url} for --stt openai, with its /v1.`),
    sttApiKey: pipeline.maybeText("Key for --stt-base-url.", { secret: true, placeholder: "KEY", env: keys("STT") }),
    llm: pipeline.choice(
      "auto",
      ["auto", "local", "chat-completions", "responses-api"],
      "Language model. auto: a key or address that is set, a local server that answers, the embedded model.",
    ),
    llmModel: pipeline.maybeText("Model: a catalog name, a .gguf file, or the remote id.", { placeholder: "NAME" }),
    llmBaseUrl: pipeline.maybeUrl(`Base address of ${url}, with its /v1.`),
    llmApiKey: pipeline.maybeText("Key for --llm-base-url.", { secret: true, placeholder: "KEY", env: keys("LLM") }),
    llmTools: pipeline.choice(
      "auto",
      ["auto", "native", "prompted"],
      "How the model calls functions: natively, or by prompt and parse. auto: natively, unless the service refuses that.",
    ),
    tts: pipeline.choice("piper", ["piper", "kokoro", "flite", "openai"], "Text to speech."),
    ttsModel: pipeline.maybeText("Model of the chosen --tts: a catalog name, or the remote id.", {
      placeholder: "NAME",
    }),
    ttsBaseUrl: pipeline.maybeUrl(`Base address of ${url} for --tts openai, with its /v1.`),
    ttsApiKey: pipeline.maybeText("Key for --tts-base-url.", { secret: true, placeholder: "KEY", env: keys("TTS") }),
    voice: pipeline.maybeText("Voice of sessions that name none.", { placeholder: "NAME" }),
    instructions: pipeline.maybeText("Instructions of sessions that bring none."),
    threads: pipeline.integer(
      Math.min(8, availableParallelism()),
      [1, 256],
      "Threads of one model; at most one per core is fast.",
    ),
  };
}

/** What programs written for OpenAI ask for by default. */
const MODEL_ALIASES = [
  "gpt-realtime",
  "gpt-realtime-mini",
  "gpt-realtime-1.5",
  "gpt-realtime-2",
  "gpt-realtime-2.1",
  "gpt-realtime-2.1-mini",
  "gpt-4o-realtime-preview",
  "gpt-4o-mini-realtime-preview",
  "gpt-4o-transcribe",
  "gpt-4o-mini-transcribe",
  "gpt-transcribe",
  "gpt-live-transcribe",
  "gpt-realtime-whisper",
  "whisper-1",
];

const keys = (stage: string): readonly string[] => [`${ENV_PREFIX}${stage}_API_KEY`, "OPENAI_API_KEY"];

function modelOptions(env: Environment): OptionTable<Pick<Config, ModelKeys>> {
  const directories = platformDirectories(env);
  return {
    cacheDir: models.text(directories.cache, "Where models are kept.", {
      placeholder: "DIR",
      env: ["ANTIPHON_CACHE", "ANTIPHON_CACHE_DIR"],
    }),
    dataDir: models.text(directories.data, "Where the self-signed certificate is kept.", { placeholder: "DIR" }),
    offline: models.boolean(false, "Download nothing."),
    hfToken: models.maybeText("Access token for gated models.", {
      placeholder: "TOKEN",
      secret: true,
      env: ["ANTIPHON_HF_TOKEN", "HF_TOKEN"],
    }),
    hfEndpoint: models.text("https://huggingface.co", "Address of the model hub or a mirror of it.", {
      placeholder: "URL",
      env: ["ANTIPHON_HF_ENDPOINT", "HF_ENDPOINT"],
    }),
  };
}

function platformDirectories(env: Environment): { readonly cache: string; readonly data: string } {
  const home = homedir();
  if (platform() === "win32") {
    const local = env["LOCALAPPDATA"] ?? join(home, "AppData", "Local");
    return { cache: join(local, "antiphon", "cache"), data: join(local, "antiphon", "data") };
  }
  if (platform() === "darwin") {
    const library = join(home, "Library");
    return { cache: join(library, "Caches", "antiphon"), data: join(library, "Application Support", "antiphon") };
  }
  return {
    cache: join(env["XDG_CACHE_HOME"] || join(home, ".cache"), "antiphon"),
    data: join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "antiphon"),
  };
}

export interface ConfigSources {
  /** By option key, as typed. */
  readonly flags?: Readonly<Record<string, string | boolean>>;
  /** A file that must exist. Default: `antiphon.config.json` in the working directory, if there is one. */
  readonly file?: string | null;
  readonly env?: Environment;
}

/** @throws {ConfigError} config_invalid: what is wrong, where it was said, and the nearest name that would be right. */
export function loadConfig(sources: ConfigSources = {}): Config {
  const env = sources.env ?? process.env;
  const options = configOptions(env);
  const known = rows(options).flatMap(([key, option]) => envOf(key, option, ENV_PREFIX));
  const strays = unknownVariables(env, ENV_PREFIX, [...known, ...OTHER_VARIABLES]);
  if (strays.length > 0) throw new ConfigError("config_invalid", strays.join("\n"));
  const file = readConfigFile(sources.file ?? env["ANTIPHON_CONFIG"] ?? null);
  const config = resolveOptions(options, {
    env,
    envPrefix: ENV_PREFIX,
    ...(file === null ? {} : { file }),
    ...(sources.flags === undefined ? {} : { flags: sources.flags }),
  });
  checkTogether(config);
  return Object.freeze({ ...config, cacheDir: expand(config.cacheDir), dataDir: expand(config.dataDir) });
}

/** What one option alone cannot say. */
function checkTogether(config: Config): void {
  if ((config.tlsCert === null) !== (config.tlsKey === null)) {
    throw new ConfigError("config_invalid", "--tls-cert and --tls-key belong together; give both or neither");
  }
  if (config.tls === "self-signed" && config.tlsCert !== null) {
    throw new ConfigError(
      "config_invalid",
      "--tls self-signed makes its own certificate; leave out --tls-cert, or --tls",
    );
  }
  if (config.alias !== null && config.model === null) {
    throw new ConfigError("config_invalid", "--alias names the checkpoint of --model; give that too, or neither");
  }
  for (const [stage, baseUrl] of [
    ["stt", config.sttBaseUrl],
    ["tts", config.ttsBaseUrl],
  ] as const) {
    if (baseUrl !== null && config[stage] !== "openai") {
      throw new ConfigError(
        "config_invalid",
        `--${stage}-base-url needs --${stage} openai, got --${stage} ${config[stage]}`,
      );
    }
  }
}

function readConfigFile(named: string | null): { readonly path: string; readonly values: unknown } | null {
  const path = named ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (named === null && (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new ConfigError("config_invalid", `${path}: cannot be read (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    });
  }
  try {
    return { path, values: JSON.parse(text) as unknown };
  } catch (error) {
    throw new ConfigError("config_invalid", `${path}: not JSON: ${(error as Error).message}`, { cause: error });
  }
}

const expand = (path: string): string => resolve(path.replace(/^~(?=$|\/)/, homedir()));

/** What other commands may ask of the environment. */
export const environment = (): Environment => process.env;
