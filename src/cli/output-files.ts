/** The files that a command writes when its work is done: looked at before the work, so that it is not done in vain. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { access, constants, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { AppError } from "../errors.ts";

export interface NamedFile {
  /** The flag that names it: `--json`. */
  readonly flag: string;
  readonly path: string | null;
}

/**
 * None may be a folder, lie where nothing can be written, be another one of them, or be `input`, which is kept.
 * @throws {AppError} usage
 */
export async function checkOutputs(outputs: readonly NamedFile[], input: NamedFile): Promise<void> {
  const taken = new Map<string, string>();
  if (input.path !== null) taken.set(placeOf(input.path), input.flag);
  for (const { flag, path } of outputs) {
    if (path === null) continue;
    await requireWritable(path);
    const other = isDevice(path) ? undefined : taken.get(placeOf(path));
    if (other !== undefined) throw new AppError("usage", `${flag} and ${other} are the same file: ${path}`);
    taken.set(placeOf(path), flag);
  }
}

/** @throws {AppError} output_unwritable, with the system's reason. */
export async function writeOutput(path: string, content: string | Uint8Array): Promise<void> {
  try {
    await writeFile(path, content);
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/** Writes each that has a path, also where another cannot be written. @throws {AppError} output_unwritable, of the first. */
export async function writeOutputs(
  outputs: readonly { readonly path: string | null; readonly content: () => string | Uint8Array }[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const { path, content } of outputs) {
    if (path !== null) await writeOutput(path, content()).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

export const unwritable = (path: string, cause: unknown): AppError =>
  new AppError("output_unwritable", `${path} could not be written (${codeOf(cause)})`, { cause });

async function requireWritable(path: string): Promise<void> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new AppError("usage", `${path} cannot be written (${why})`, cause === undefined ? {} : { cause });
  };
  const exists = existsSync(path);
  const folder = dirname(resolve(path));
  if (exists ? statSync(path).isDirectory() : /[/\\]$/.test(path)) refuse("it is a folder");
  if (!exists && existsSync(folder) && !statSync(folder).isDirectory()) refuse("ENOTDIR");
  try {
    await access(exists ? path : folder, constants.W_OK);
  } catch (cause) {
    refuse(codeOf(cause), cause);
  }
}

/** Many may write to /dev/null. */
const isDevice = (path: string): boolean => existsSync(path) && !statSync(path).isFile();

/** One name for one file, links resolved, whether or not it is there yet. */
function placeOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const folder = dirname(resolve(path));
  return join(existsSync(folder) ? realpathSync(folder) : folder, basename(path));
}

const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? String(cause);
