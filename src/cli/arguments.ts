/** argv against a table of options, and the help that the table gives. */
import { parseArgs } from "node:util";
import { environment } from "../config.ts";
import { AppError } from "../errors.ts";
import { suggestion } from "../util/nearest.ts";
import { envOf, flagOf, type Option, type OptionTable, resolveOptions, rows } from "../util/options.ts";
import type { CliContext } from "./context.ts";

export interface Arguments {
  /** By option key, as typed. */
  readonly flags: Readonly<Record<string, string | boolean>>;
  readonly positionals: readonly string[];
}

export interface CommandLine<Settings> {
  readonly settings: Settings;
  readonly positionals: readonly string[];
}

/** What a command line asks for; null where it asks for help, which is printed. @throws {AppError} usage, config_invalid. */
export function readCommandLine<Settings extends { readonly help: boolean }>(
  argv: readonly string[],
  table: OptionTable<Settings>,
  text: HelpOptions,
  { stdout }: Pick<CliContext, "stdout">,
): CommandLine<Settings> | null {
  const { flags, positionals } = parseArguments(argv, table);
  const settings = resolveOptions(table, { flags, env: environment() });
  if (!settings.help) return { settings, positionals };
  stdout.write(help(table, text));
  return null;
}

/** @throws {AppError} usage, with the flag that was probably meant. */
export function parseArguments<T extends object>(argv: readonly string[], table: OptionTable<T>): Arguments {
  const options = new Map(rows(table).map(([key, option]) => [flagOf(key), { key, option }]));
  const booleans = [...options].filter(([, { option }]) => option.kind === "boolean").map(([flag]) => flag);
  const spec: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const [flag, { option }] of options) {
    const type = option.kind === "boolean" ? "boolean" : "string";
    spec[flag] = option.short === null ? { type } : { type, short: option.short };
  }
  for (const flag of booleans) spec[`no-${flag}`] = { type: "boolean" };
  const { tokens } = parseArgs({ args: [...argv], options: spec, strict: false, allowPositionals: true, tokens: true });

  const flags: Record<string, string | boolean> = {};
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const negated = booleans.includes(token.name.replace(/^no-/, "")) && token.name.startsWith("no-");
    const found = options.get(negated ? token.name.slice(3) : token.name);
    if (found === undefined) {
      throw new AppError(
        "usage",
        `unknown option ${token.rawName}.${suggestion(token.name, [...options.keys()], "--")}`,
      );
    }
    // `--host --port 1`: the value was forgotten, and the next flag is not it.
    const forgotten = token.inlineValue === false && token.value.startsWith("--");
    flags[found.key] = given(token.rawName, forgotten ? "" : token.value, found.option, negated);
  }
  return { flags, positionals };
}

function given(
  rawName: string,
  value: string | undefined,
  option: Option<unknown>,
  negated: boolean,
): string | boolean {
  if (option.kind === "boolean") return negated ? false : (value ?? true);
  if (value === undefined || value === "") {
    throw new AppError("usage", `${rawName} needs a value: ${rawName} ${option.placeholder}`);
  }
  return value;
}

export interface HelpOptions {
  /** `antiphon serve [options]`. */
  readonly usage: string;
  readonly summary: string;
  readonly envPrefix: string | null;
  readonly examples?: readonly string[];
}

/** Every option with its default and its environment variable, under the headings of its groups. */
export function help<T extends object>(table: OptionTable<T>, options: HelpOptions): string {
  const lines = [`Usage: ${options.usage}`, "", options.summary];
  let group = "";
  for (const [key, option] of rows(table)) {
    if (option.group !== group) lines.push("", `${option.group}:`);
    group = option.group;
    const value = option.placeholder === "" ? "" : ` ${option.placeholder}`;
    lines.push(`  ${option.short === null ? "" : `-${option.short}, `}--${flagOf(key)}${value}`);
    lines.push(`      ${option.description} ${notes(key, option, options.envPrefix)}`);
  }
  if (options.examples !== undefined) lines.push("", "Examples:", ...options.examples.map((example) => `  ${example}`));
  return `${lines.join("\n")}\n`;
}

function notes(key: string, option: Option<unknown>, envPrefix: string | null): string {
  const env = envPrefix === null && option.env === null ? [] : envOf(key, option, envPrefix ?? "");
  const parts = [`default: ${shown(option.default)}`, ...(env.length === 0 ? [] : [env.join(" or ")])];
  return `[${parts.join("; ")}]`;
}

function shown(value: unknown): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return "none";
  if (typeof value === "boolean") return value ? "on" : "off";
  return String(value);
}
