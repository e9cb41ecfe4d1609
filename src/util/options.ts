/**
 * Options of a command as data: one table gives the schema, the flags, the environment names and the help. A value
 * comes from, weakest first: its default, a file, the environment, a flag.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { nearest, suggestion } from "./nearest.ts";

export interface Option<T> {
  readonly schema: z.ZodType<T>;
  readonly kind: "text" | "number" | "boolean" | "list";
  readonly default: T;
  /** What it says, in a line. */
  readonly description: string;
  readonly group: string;
  /** What stands for the value in the help: `HOST`, `MS`. */
  readonly placeholder: string;
  readonly choices: readonly string[] | null;
  /** Environment variables that set it, the strongest first; null for the one made from its name. */
  readonly env: readonly string[] | null;
  /** Never shown, not even as a default. */
  readonly secret: boolean;
  /** One letter: `m` for `-m`. */
  readonly short: string | null;
}

/** One option per field of `T`. */
export type OptionTable<T> = { readonly [K in keyof T]-?: Option<T[K]> };

interface Facts {
  readonly placeholder?: string;
  readonly env?: readonly string[];
  readonly secret?: boolean;
  readonly short?: string;
}

/** Makes the options of one group of the help. */
export class OptionGroup {
  readonly #title: string;
  constructor(title: string) {
    this.#title = title;
  }
  text(value: string, description: string, facts: Facts = {}): Option<string> {
    return this.#option(z.string(), "text", value, description, "TEXT", facts);
  }
  /** Nothing, or the beginning of a URL's path, without a slash at its end. */
  path(value: string, description: string, facts: Facts = {}): Option<string> {
    const schema = z.string().regex(/^(\/[\w.~-]+)*$/, { error: "expected a path such as /voice" });
    return this.#option(schema, "text", value, description, "/PATH", facts);
  }
  /** Text that may be absent. */
  maybeText(description: string, facts: Facts = {}): Option<string | null> {
    return this.#option(z.string().min(1).nullable(), "text", null, description, "TEXT", facts);
  }
  maybeUrl(description: string, facts: Facts = {}): Option<string | null> {
    const url = z.url({
      protocol: /^(https?|wss?)$/,
      error: "expected an address that begins with http:// or https://",
    });
    return this.#option(url.nullable(), "text", null, description, "URL", facts);
  }
  integer(value: number, range: readonly [number, number], description: string, facts: Facts = {}): Option<number> {
    const schema = wholeNumber(range);
    return this.#option(schema, "number", value, description, "N", facts);
  }
  /** A whole number that may be absent. */
  maybeInteger(range: readonly [number, number], description: string, facts: Facts = {}): Option<number | null> {
    const schema = wholeNumber(range).nullable();
    return this.#option(schema, "number", null, description, "N", facts);
  }
  number(value: number, range: readonly [number, number], description: string, facts: Facts = {}): Option<number> {
    const schema = anyNumber(range);
    return this.#option(schema, "number", value, description, "X", facts);
  }
  /** A number that may be absent. */
  maybeNumber(range: readonly [number, number], description: string, facts: Facts = {}): Option<number | null> {
    const schema = anyNumber(range).nullable();
    return this.#option(schema, "number", null, description, "X", facts);
  }
  boolean(value: boolean, description: string, facts: Facts = {}): Option<boolean> {
    return this.#option(z.boolean(), "boolean", value, description, "", facts);
  }
  list(value: readonly string[], description: string, facts: Facts = {}): Option<readonly string[]> {
    return this.#option(z.array(z.string().min(1)).readonly(), "list", value, description, "A,B", facts);
  }
  choice<const T extends string>(value: T, choices: readonly T[], description: string, facts: Facts = {}): Option<T> {
    const schema = z.enum(choices as readonly [T, ...T[]], {
      error: (issue) => {
        const given = String(issue.input);
        return `expected one of ${choices.join(", ")}, got "${given}".${suggestion(given, choices)}`;
      },
    });
    return { ...this.#option(schema as z.ZodType<T>, "text", value, description, choices.join("|"), facts), choices };
  }
  #option<T>(
    schema: z.ZodType<T>,
    kind: Option<T>["kind"],
    value: T,
    description: string,
    placeholder: string,
    facts: Facts,
  ): Option<T> {
    return {
      schema,
      kind,
      default: value,
      description,
      group: this.#title,
      placeholder: facts.placeholder ?? placeholder,
      choices: null,
      env: facts.env ?? null,
      secret: facts.secret ?? false,
      short: facts.short ?? null,
    };
  }
}

function wholeNumber([min, max]: readonly [number, number]): z.ZodNumber {
  const error = `expected a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

function anyNumber([min, max]: readonly [number, number]): z.ZodNumber {
  const error = `expected a number from ${min} to ${max}`;
  return z.number({ error }).min(min, { error }).max(max, { error });
}

/** `sessionsMax` -> `sessions-max`. */
export const flagOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** `sessionsMax` -> `ANTIPHON_SESSIONS_MAX` for the prefix `ANTIPHON_`, unless the option names others. */
export function envOf(key: string, option: Option<unknown>, prefix: string): readonly string[] {
  return option.env ?? [`${prefix}${flagOf(key).replaceAll("-", "_").toUpperCase()}`];
}

export interface OptionSources {
  /** Parsed JSON, and where it came from. */
  readonly file?: { readonly path: string; readonly values: unknown };
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly envPrefix?: string;
  /** By key: text as typed, true or false for booleans. */
  readonly flags?: Readonly<Record<string, string | boolean>>;
}

interface Sourced {
  readonly value: unknown;
  readonly source: string;
}

/** @throws {ConfigError} config_invalid, naming every value that cannot be used and where it came from. */
export function resolveOptions<T extends object>(table: OptionTable<T>, sources: OptionSources): Readonly<T> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const file = fileValues(table, sources.file, problems);
  for (const [key, option] of rows(table)) {
    const given = flagValue(key, sources) ?? envValue(key, option, sources) ?? file[key];
    if (given === undefined) {
      values[key] = option.default;
      continue;
    }
    const parsed = option.schema.safeParse(fromText(option, given.value));
    if (parsed.success) values[key] = parsed.data;
    else problems.push(`${given.source}: ${parsed.error.issues.map((issue) => issue.message).join("; ")}`);
  }
  if (problems.length > 0) throw new ConfigError("config_invalid", problems.join("\n"));
  return Object.freeze(values as T);
}

export const rows = <T extends object>(table: OptionTable<T>): [string, Option<unknown>][] =>
  Object.entries(table) as [string, Option<unknown>][];

function flagValue(key: string, sources: OptionSources): Sourced | undefined {
  const value = sources.flags?.[key];
  return value === undefined ? undefined : { value, source: `--${flagOf(key)}` };
}

/** An empty variable is one that is not set: shells cannot tell the two apart well. */
function envValue(key: string, option: Option<unknown>, sources: OptionSources): Sourced | undefined {
  if (sources.env === undefined) return undefined;
  for (const name of envOf(key, option, sources.envPrefix ?? "")) {
    const value = sources.env[name];
    if (value !== undefined && value !== "") return { value, source: name };
  }
  return undefined;
}

function fileValues<T extends object>(
  table: OptionTable<T>,
  file: OptionSources["file"],
  problems: string[],
): Record<string, Sourced> {
  if (file === undefined) return {};
  if (typeof file.values !== "object" || file.values === null || Array.isArray(file.values)) {
    problems.push(`${file.path}: expected a JSON object of options`);
    return {};
  }
  const keys = rows(table).map(([key]) => key);
  const known: Record<string, Sourced> = {};
  for (const [key, value] of Object.entries(file.values)) {
    if (keys.includes(key)) known[key] = { value, source: `${file.path}: ${key}` };
    else problems.push(`${file.path}: unknown option "${key}".${suggestion(key, keys)}`);
  }
  return known;
}

/** Flags and variables are text; a file has JSON values, which stay as they are. */
function fromText(option: Option<unknown>, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (option.kind === "number") return value.trim() === "" || Number.isNaN(Number(value)) ? value : Number(value);
  if (option.kind === "boolean") return BOOLEANS[value.toLowerCase()] ?? value;
  if (option.kind === "list") return value.split(",").map((part) => part.trim());
  return value;
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  on: true,
  false: false,
  "0": false,
  no: false,
  off: false,
};

/** The names in `env` that begin with `prefix` and set nothing, each with the nearest that would. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  prefix: string,
  known: readonly string[],
): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(prefix) && !known.includes(name))
    .map((name) => {
      const best = nearest(name, known);
      return `unknown environment variable ${name}.${best === null ? "" : ` Did you mean ${best}?`}`;
    });
}
