/** `antiphon models`: what there is, and putting it on this machine or taking it off. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { AppError } from "../errors.ts";
import { DEFAULT_MODELS } from "../models/catalog.ts";
import type { CatalogModel } from "../models/model.ts";
import { isRepositoryId } from "../models/repository.ts";
import { ModelStore } from "../models/store.ts";
import { suggestion } from "../util/nearest.ts";
import type { CliContext } from "./context.ts";
import { ProgressView } from "./progress-view.ts";
import { formatBytes, styled, table } from "./terminal.ts";

const HELP = `Usage: antiphon models list [--json]
       antiphon models pull NAME...
       antiphon models path NAME [ROLE]
       antiphon models rm NAME...

NAME is a name of the list, the word "default" for what \`serve\` uses by itself,
or a repository of the hub (OWNER/NAME).

  list   what the catalog has, and what is on this machine
  pull   fetch, check and keep models; goes on where an earlier pull ended
  path   print where a model is, or where its file for ROLE is
  rm     remove models from this machine
`;

const COMMANDS = { list, pull, path, rm } as const;

/** @returns the exit code. @throws {AppError} */
export async function runModels(args: readonly string[], context: CliContext): Promise<number> {
  const { values, positionals } = parse(args);
  const [command, ...names] = positionals;
  if (values.help || command === undefined) {
    (values.help ? context.stdout : context.stderr).write(HELP);
    return values.help ? 0 : 2;
  }
  if (!Object.hasOwn(COMMANDS, command)) {
    throw new AppError("usage", `unknown command "models ${command}".${suggestion(command, Object.keys(COMMANDS))}`);
  }
  if (values.json && command !== "list") throw new AppError("usage", `--json goes with "models list" only`);
  const run = COMMANDS[command as keyof typeof COMMANDS];
  return await run(new ModelStore(context.models), names, context, values.json);
}

function parse(args: readonly string[]): { values: { json: boolean; help: boolean }; positionals: string[] } {
  try {
    const options = {
      json: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    };
    return parseArgs({ args: [...args], allowPositionals: true, options: options as Options }) as ReturnType<
      typeof parse
    >;
  } catch (error) {
    throw new AppError("usage", error instanceof Error ? error.message : String(error), { cause: error });
  }
}
type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

async function list(store: ModelStore, names: readonly string[], context: CliContext, json: boolean): Promise<number> {
  refuseNames("list", names);
  const models = store.catalog.map((model) => ({ model, files: store.find(model.name) }));
  const repositories = await store.repositories();
  if (json) {
    const listed = models.map(({ model, files }) => ({ ...described(model), directory: files?.directory ?? null }));
    context.stdout.write(`${JSON.stringify({ cacheDir: store.cacheDir, models: listed, repositories }, null, 2)}\n`);
    return 0;
  }
  const dim = (text: string): string => styled(context.stdout, context, "dim", text);
  const present = styled(context.stdout, context, "green", "here");
  const absent = dim("-");
  const rows = models.map(({ model, files }) => [
    files === null ? absent : present,
    model.name + (DEFAULT_MODELS.includes(model.name) ? " *" : ""),
    model.part,
    formatBytes(model.bytes),
    model.licence,
    model.description,
  ]);
  const hub = repositories.map(({ repository, bytes }) => [present, repository, "", formatBytes(bytes), "", ""]);
  context.stdout.write(table([["", "name", "part", "size", "licence", ""], ...rows, ...hub]));
  context.stdout.write(dim(`* used by default. The cache is ${store.cacheDir}`).concat("\n"));
  return 0;
}

function described({ name, part, description, licence, bytes, roles }: CatalogModel): Record<string, unknown> {
  return { name, part, description, licence, bytes, roles: Object.keys(roles), default: DEFAULT_MODELS.includes(name) };
}

async function pull(store: ModelStore, names: readonly string[], context: CliContext): Promise<number> {
  const wanted = expand(requireNames("pull", names));
  // A misspelt last name is told before the first download.
  for (const name of wanted) if (!isRepositoryId(name)) store.model(name);
  const view = new ProgressView(context.stderr);
  const options = { signal: context.signal, onProgress: view.show };
  try {
    for (const name of wanted) {
      const { directory } = isRepositoryId(name)
        ? await store.ensureRepository(name, { ...options, refresh: true })
        : await store.ensure(name, options);
      context.stdout.write(`${name}  ${directory}\n`);
    }
  } finally {
    view.close();
  }
  return 0;
}

async function path(store: ModelStore, names: readonly string[], context: CliContext): Promise<number> {
  const [name, role, ...rest] = requireNames("path", names);
  refuseNames("path", rest);
  const found = isRepositoryId(name!) ? store.findRepository(name!) : store.find(name!);
  if (found === null) {
    context.stderr.write(`${name} is not on this machine; run \`antiphon models pull ${name}\`\n`);
    return 1;
  }
  const file = role === undefined ? found.directory : "file" in found ? found.file(role) : join(found.directory, role);
  context.stdout.write(`${file}\n`);
  return 0;
}

async function rm(store: ModelStore, names: readonly string[], context: CliContext): Promise<number> {
  const wanted = expand(requireNames("rm", names));
  for (const name of wanted) if (!isRepositoryId(name)) store.model(name);
  const options = { signal: context.signal, onProgress: new ProgressView(context.stderr).show };
  for (const name of wanted) {
    const removed = await (isRepositoryId(name) ? store.removeRepository(name, options) : store.remove(name, options));
    context.stdout.write(removed ? `${name} removed\n` : `${name} was not on this machine\n`);
  }
  return 0;
}

function expand(names: readonly string[]): string[] {
  return [...new Set(names.flatMap((name) => (name === "default" ? DEFAULT_MODELS : [name])))];
}

function requireNames(command: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) throw new AppError("usage", `"models ${command}" needs a name; see "antiphon models list"`);
  return names;
}

function refuseNames(command: string, names: readonly string[]): void {
  if (names.length > 0) throw new AppError("usage", `"models ${command}" does not take ${names.join(" ")}`);
}
