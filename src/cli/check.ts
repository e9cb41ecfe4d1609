/** `antiphon check`: grades a server of the OpenAI Realtime API, ours or another's. */
import { readQuestion } from "../check/question.ts";
import type { Requirement } from "../check/requirement.ts";
import { greet, type RunOptions, runSuite, SUITE, type Verdict } from "../check/suite.ts";
import { Unmet } from "../check/unmet.ts";
import { AppError, AuthError, UpstreamError } from "../errors.ts";
import { systemClock } from "../util/clock.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import { type HelpOptions, readCommandLine } from "./arguments.ts";
import { NetworkTarget } from "./check-target.ts";
import type { CliContext } from "./context.ts";
import { trustedCertificate } from "./realtime-client.ts";
import { type ServerSettings, server, serverOptions } from "./server-options.ts";
import { type Style, styled, table } from "./terminal.ts";

interface CheckSettings extends ServerSettings {
  readonly model: string | null;
  readonly only: readonly string[];
  readonly list: boolean;
  readonly strict: boolean;
  readonly timeoutMs: number;
  readonly pace: number;
  readonly json: boolean;
  readonly help: boolean;
}

const requirements = new OptionGroup("Requirements");
const other = new OptionGroup("Other");

export const CHECK_OPTIONS: OptionTable<CheckSettings> = {
  model: server.maybeText("Model to ask the server for.", { placeholder: "NAME", env: [] }),
  ...serverOptions(["ANTIPHON_API_KEY", "OPENAI_API_KEY"]),
  only: requirements.list([], "Run these only: ids or areas, with * for anything (response.*, *vad*).", {
    placeholder: "PATTERN,...",
    env: [],
  }),
  list: requirements.boolean(false, "Print the requirements and end.", { env: [] }),
  strict: requirements.boolean(false, "Let a SHOULD that is not met count as a failure.", { env: [] }),
  timeoutMs: other.integer(30_000, [100, 600_000], "How long an event may take.", { placeholder: "MS", env: [] }),
  pace: other.number(1, [0, 100], "How much faster than people speech is sent; 0 for as fast as it goes.", { env: [] }),
  json: other.boolean(false, "Print the verdicts as JSON.", { env: [] }),
  help: other.boolean(false, "Print this.", { env: [] }),
};

/** @returns 0 if the server meets what it must, else 1. @throws {AppError} */
export async function runCheck(argv: readonly string[], context: CliContext): Promise<number> {
  const line = readCommandLine(argv, CHECK_OPTIONS, HELP, context);
  if (line === null) return 0;
  const { settings, positionals } = line;
  const chosen = choose(SUITE, settings.only);
  if (settings.list) return print(context, settings.json ? json(chosen.map(facts)) : list(chosen));
  const [url, ...rest] = positionals;
  if (url === undefined || rest.length > 0) {
    throw new AppError(
      "usage",
      "check takes the address of one server: antiphon check ws://127.0.0.1:8765/v1/realtime",
    );
  }
  return await grade(url, chosen, settings, context);
}

const HELP: HelpOptions = {
  usage: "antiphon check URL [options]",
  summary: "Grades a server of the OpenAI Realtime API: one line a requirement, with what was expected and what came.",
  envPrefix: null,
  examples: [
    "antiphon check ws://127.0.0.1:8765/v1/realtime",
    "antiphon check https://voice.example --api-key KEY --only 'session.*,response.*'",
    "antiphon check ws://127.0.0.1:8000/v1/realtime --model gpt-realtime --json",
  ],
};

async function grade(
  url: string,
  chosen: readonly Requirement[],
  settings: CheckSettings,
  context: CliContext,
): Promise<number> {
  const { apiKey, model, timeoutMs, pace, strict } = settings;
  const target = new NetworkTarget({
    url: addressable(url),
    apiKey,
    model,
    timeoutMs,
    ca: trustedCertificate(settings.tlsCa),
  });
  const { signal } = context;
  const options = { target, question: readQuestion(), clock: systemClock, timeoutMs, pace, signal };
  await enter(options, url);
  const verdicts: Verdict[] = [];
  for await (const verdict of runSuite(chosen, options)) {
    verdicts.push(verdict);
    if (!settings.json) context.stdout.write(line(verdict, context));
  }
  const summary = summarize(verdicts);
  if (settings.json) context.stdout.write(json({ url, summary, requirements: verdicts }));
  else context.stdout.write(`\n${sentence(summary)}\n`);
  if (signal.aborted) throw new DOMException("interrupted", "AbortError");
  return summary.failedMust + (strict ? summary.failedShould : 0) > 0 ? 1 : 0;
}

function addressable(url: string): string {
  if (/^(wss?|https?):\/\//.test(url) && URL.canParse(url)) return url;
  throw new AppError("usage", `${url} is no address of a server; it begins with ws://, wss://, http:// or https://`);
}

/** A server that lets nobody in is told of once, not by every requirement. @throws {AppError} */
async function enter(options: RunOptions, url: string): Promise<void> {
  try {
    await greet(options);
  } catch (error) {
    if (!(error instanceof Unmet)) throw error;
    if (error.came === "HTTP 401") {
      throw new AuthError("invalid_api_key", `${url} wants an API key, or another one: --api-key KEY`);
    }
    const message = `${url} begins no session: expected ${error.expected}; came ${error.came}`;
    throw new UpstreamError("upstream_failed", message, { cause: error });
  }
}

/** @throws {AppError} usage where a pattern names nothing. */
export function choose(suite: readonly Requirement[], patterns: readonly string[]): readonly Requirement[] {
  if (patterns.length === 0) return suite;
  const tests = patterns.map((pattern) => {
    const escaped = pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
    return { pattern, test: new RegExp(`^${escaped}(\\..*)?$`) };
  });
  const idle = tests.find(({ test }) => !suite.some(({ id }) => test.test(id)));
  if (idle !== undefined) {
    throw new AppError("usage", `--only ${idle.pattern} names no requirement; see antiphon check --list`);
  }
  return suite.filter(({ id }) => tests.some(({ test }) => test.test(id)));
}

interface Summary {
  readonly total: number;
  readonly passed: number;
  readonly failedMust: number;
  readonly failedShould: number;
  readonly skipped: number;
}

function summarize(verdicts: readonly Verdict[]): Summary {
  const count = (test: (verdict: Verdict) => boolean): number => verdicts.filter(test).length;
  return {
    total: verdicts.length,
    passed: count(({ status }) => status === "passed"),
    failedMust: count(({ status, level }) => status === "failed" && level === "MUST"),
    failedShould: count(({ status, level }) => status === "failed" && level === "SHOULD"),
    skipped: count(({ status }) => status === "skipped"),
  };
}

const sentence = ({ total, passed, failedMust, failedShould, skipped }: Summary): string =>
  `${total} requirements: ${passed} passed, ${failedMust} MUST failed, ${failedShould} SHOULD failed, ${skipped} skipped.`;

const STYLES: Readonly<Record<Verdict["status"], Style>> = { passed: "green", failed: "red", skipped: "yellow" };

/** `passed MUST   session.updated  …: what came`; a failure says both sides. */
function line(verdict: Verdict, { stdout, color }: CliContext): string {
  const { id, status, level, title, expected, came } = verdict;
  const word = styled(stdout, { color }, STYLES[status], status.padEnd(7));
  const head = `${word} ${level.padEnd(6)} ${id.padEnd(ID_COLUMNS)} ${title}`;
  return status === "failed" ? `${head}; expected ${expected}; came ${came}\n` : `${head}; came ${came}\n`;
}
const ID_COLUMNS = Math.max(...SUITE.map(({ id }) => id.length));

const list = (chosen: readonly Requirement[]): string =>
  table(chosen.map(({ id, level, title }) => [id, level, title]));

const facts = ({ id, title, level, source }: Requirement): object => ({ id, title, level, source });
const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

function print(context: CliContext, text: string): number {
  context.stdout.write(text);
  return 0;
}
