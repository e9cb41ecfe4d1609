/** `antiphon doctor`: what this machine has, what is wrong, and how to mend it. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { availableParallelism, freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import { type Config, loadConfig } from "../config.ts";
import { AppError } from "../errors.ts";
import { DEFAULT_MODELS } from "../models/catalog.ts";
import { ModelStore } from "../models/store.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import { findAudioProgram } from "./audio-device.ts";
import type { CliContext } from "./context.ts";
import { formatBytes, styled } from "./terminal.ts";
import { nodeVersionMin } from "./version.ts";

export interface Finding {
  /** `warning`: something will not work that not everybody needs. `problem`: `antiphon serve` will not run as it is. */
  readonly status: "ok" | "warning" | "problem";
  readonly what: string;
  readonly detail: string;
  readonly mend: string | null;
}

interface DoctorSettings {
  readonly json: boolean;
  readonly help: boolean;
}

const group = new OptionGroup("Options");
const OPTIONS: OptionTable<DoctorSettings> = {
  json: group.boolean(false, "Print the findings as JSON.", { env: [] }),
  help: group.boolean(false, "Print this.", { env: [] }),
};

const HELP: HelpOptions = {
  usage: "antiphon doctor [options]",
  summary: "Says what this machine has, what is wrong, and how to mend it.",
  envPrefix: null,
};

/** What the embedded models, their runtimes and a few sessions take. */
const MEMORY_BYTES_MIN = 2e9;
const DISK_BYTES_MIN = 1e9;

/** @returns 0 if the server would run, 1 if there is a problem. */
export async function runDoctor(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  if (positionals.length > 0) throw new AppError("usage", `doctor takes no ${positionals[0]}`);
  const findings = await examine(loadConfig(), context);
  context.stdout.write(settings.json ? `${JSON.stringify(findings, null, 2)}\n` : text(findings, context));
  return findings.some((finding) => finding.status === "problem") ? 1 : 0;
}

export async function examine(config: Config, context: Pick<CliContext, "models">): Promise<Finding[]> {
  return [
    node(),
    ...runtimes(),
    cores(),
    memory(),
    await disk(config.cacheDir),
    ...(await models(config, context)),
    ...packageClients(),
    audioProgram(),
    await port(config),
    ...(await languageModels(config)),
  ];
}

const ok = (what: string, detail: string): Finding => ({ status: "ok", what, detail, mend: null });
const warning = (what: string, detail: string, mend: string): Finding => ({ status: "warning", what, detail, mend });
const problem = (what: string, detail: string, mend: string): Finding => ({ status: "problem", what, detail, mend });

function node(): Finding {
  const { node: version } = process.versions;
  const detail = `${version} on ${process.platform}-${process.arch}`;
  const wanted = nodeVersionMin();
  return wanted.localeCompare(version, "en", { numeric: true }) <= 0
    ? ok("Node.js", detail)
    : problem("Node.js", detail, `install Node.js ${wanted} or newer`);
}

/** Packages with native code: present for this machine? */
const RUNTIMES: readonly (readonly [name: string, what: string])[] = [
  ["sherpa-onnx-node", "speech (VAD, STT, TTS)"],
  ["node-llama-cpp", "local language model"],
  ["onnxruntime-node", "turn end, VoiceChat"],
  ["@roamhq/wrtc", "WebRTC"],
];

function runtimes(): Finding[] {
  return RUNTIMES.map(([name, what]) =>
    resolvable(name) ? ok(name, what) : problem(name, `missing: ${what}`, "npm ci, in antiphon's directory"),
  );
}

function resolvable(name: string): boolean {
  // By its manifest: resolving an entry point would fail for packages that only take `import`.
  const searched = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return searched.some((directory) => existsSync(`${directory}/${name}/package.json`));
}

function cores(): Finding {
  const count = availableParallelism();
  const detail = `${count}`;
  if (count >= 2) return ok("cores", detail);
  return warning("cores", detail, "two are the least for fast answers; a remote --llm takes the heaviest part away");
}

function memory(): Finding {
  const detail = `${formatBytes(freemem())} free of ${formatBytes(totalmem())}`;
  if (totalmem() >= MEMORY_BYTES_MIN) return ok("memory", detail);
  return problem(
    "memory",
    detail,
    `the embedded models want ${formatBytes(MEMORY_BYTES_MIN)}; use --llm chat-completions elsewhere`,
  );
}

async function disk(cacheDir: string): Promise<Finding> {
  let existing = cacheDir;
  while (!existsSync(existing)) existing = dirname(existing);
  const { bavail, bsize } = await statfs(existing);
  const detail = `${formatBytes(bavail * bsize)} free at ${cacheDir}`;
  if (bavail * bsize >= DISK_BYTES_MIN) return ok("disk", detail);
  return problem("disk", detail, "make room, or put the models elsewhere with ANTIPHON_CACHE");
}

async function models(config: Config, context: Pick<CliContext, "models">): Promise<Finding[]> {
  const store = new ModelStore({ ...context.models, cacheDir: config.cacheDir });
  return Promise.all(
    DEFAULT_MODELS.map(async (name) => {
      const what = `model ${name}`;
      if ((await store.find(name)) !== null) return ok(what, "in the cache");
      const pull = `antiphon models pull ${name}`;
      return config.offline
        ? problem(what, "not in the cache, and --offline is on", `${pull}, once, with --offline off`)
        : warning(what, "not in the cache yet", `antiphon serve fetches it; or now: ${pull}`);
    }),
  );
}

/** Models come through them, so that mirrors, proxies and credentials hold. */
function packageClients(): Finding[] {
  const clients = [
    ["npm", ["npm", "--version"], "install npm (it comes with Node.js)"],
    ["pip", ["python3", "-m", "pip", "--version"], "install Python 3 with pip; else models come from the hub"],
  ] as const;
  return clients.map(([name, [command, ...args], mend]) => {
    const result = spawnSync(command, args, { encoding: "utf8", shell: process.platform === "win32" });
    const found = result.status === 0;
    return found ? ok(name, result.stdout.trim().split(" from ")[0] ?? "") : warning(name, "not found", mend);
  });
}

function audioProgram(): Finding {
  try {
    return ok("audio", findAudioProgram().name);
  } catch (error) {
    return warning("audio", "no program for microphone and speakers", (error as AppError).message);
  }
}

async function port({ host, port: number }: Config): Promise<Finding> {
  const what = `port ${number}`;
  const code = await new Promise<string | null>((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "failed"));
    probe.listen(number, host, () => probe.close(() => resolve(null)));
  });
  if (code === null) return ok(what, `free on ${host}`);
  const health = await getJson(`http://127.0.0.1:${number}/health`);
  const status = (health as { status?: unknown } | null)?.status;
  if (typeof status === "string") return ok(what, `an antiphon answers there: ${status}`);
  return problem(what, `cannot be listened on (${code})`, "stop what is there, or choose another: --port N");
}

const LOCAL_SERVERS: readonly (readonly [name: string, port: number])[] = [
  ["Ollama", 11_434],
  ["LM Studio", 1234],
  ["llama.cpp", 8080],
  ["vLLM", 8000],
];

async function languageModels(config: Config): Promise<Finding[]> {
  const named = config.llmBaseUrl === null ? [] : [["--llm-base-url", `${config.llmBaseUrl}/models`] as const];
  const local = LOCAL_SERVERS.map(([name, number]) => [name, `http://127.0.0.1:${number}/v1/models`] as const);
  const answers = await Promise.all(
    [...named, ...local].map(async ([name, url]) => ({ name, url, models: await modelIds(url, config.llmApiKey) })),
  );
  const findings = answers.flatMap(({ name, url, models: ids }) => {
    if (ids !== null) return [ok(`LLM server ${name}`, `${ids.slice(0, 3).join(", ") || "no models"} at ${url}`)];
    return name.startsWith("--")
      ? [problem(`LLM server ${name}`, `no answer from ${url}`, "is it running, and the key right?")]
      : [];
  });
  if (findings.length > 0 || config.llmApiKey !== null) return findings;
  return [
    warning(
      "LLM server",
      "none answers here",
      "the embedded 135M model serves; Ollama or --llm-base-url knows far more",
    ),
  ];
}

async function modelIds(url: string, key: string | null): Promise<string[] | null> {
  const json = (await getJson(url, key)) as { data?: { id?: unknown }[] } | null;
  if (!Array.isArray(json?.data)) return null;
  return json.data.map(({ id }) => String(id));
}

async function getJson(url: string, key: string | null = null): Promise<unknown> {
  try {
    const headers: Record<string, string> = key === null ? {} : { Authorization: `Bearer ${key}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(1500) });
    return await response.json();
  } catch {
    // Nothing there, or nothing that speaks JSON: either way no server of this kind.
    return null;
  }
}

function text(findings: readonly Finding[], context: CliContext): string {
  const marks = { ok: ["green", "ok     "], warning: ["yellow", "warning"], problem: ["red", "PROBLEM"] } as const;
  const lines = findings.map(({ status, what, detail, mend }) => {
    const [color, label] = marks[status];
    const remedy = mend === null ? "" : `\n           ${mend}`;
    return `${styled(context.stdout, context, color, label)}  ${what}: ${detail}${remedy}\n`;
  });
  const problems = findings.filter((finding) => finding.status === "problem").length;
  const summary = problems === 0 ? "antiphon serve will run." : `${problems} to mend before antiphon serve can run.`;
  return `${lines.join("")}\n${summary}\n`;
}
