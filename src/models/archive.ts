/** Files and folders out of packages: wheels are zip files, npm packages are tar files. */
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { extract } from "tar";
import yauzl from "yauzl";
import { DownloadError } from "../errors.ts";
import { systemCode } from "./failure.ts";
import { listFiles } from "./folder.ts";
import type { SourceFile } from "./model.ts";

const openZip = promisify<string, yauzl.Options, yauzl.ZipFile>(yauzl.open);

/** Where `entry` goes under `directory`, or null when no file of the list wants it. */
function destination(entry: string, files: readonly SourceFile[], directory: string): string | null {
  if (entry.endsWith("/") || !isSafePath(entry)) return null;
  for (const { from, to } of files) {
    if (from === entry) return join(directory, to);
    if (from.endsWith("/") && entry.startsWith(from)) return join(directory, to, entry.slice(from.length));
  }
  return null;
}

/** Relative, and never above where it starts, on any platform. */
export function isSafePath(path: string): boolean {
  if (path === "" || /[\\\0:]/.test(path) || path.startsWith("/")) return false;
  return !path.split("/").includes("..");
}

/** @throws {DownloadError} download_failed when the archive is broken; file system errors pass. */
export async function extractZip(
  archive: string,
  files: readonly SourceFile[],
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  let zip: yauzl.ZipFile;
  try {
    zip = await openZip(archive, { lazyEntries: true, autoClose: false });
  } catch (error) {
    throw new DownloadError("download_failed", `${archive} is not a readable zip file`, { cause: error });
  }
  const openEntry = promisify(zip.openReadStream.bind(zip)) as (entry: yauzl.Entry) => Promise<NodeJS.ReadableStream>;
  try {
    for await (const entry of entries(zip)) {
      const target = destination(entry.fileName, files, directory);
      if (target !== null) await writeEntry(await openEntry(entry), target, signal);
    }
  } finally {
    zip.close();
  }
}

async function* entries(zip: yauzl.ZipFile): AsyncGenerator<yauzl.Entry> {
  for (;;) {
    const entry = await new Promise<yauzl.Entry | null>((resolve, reject) => {
      const settle = (act: () => void): void => {
        zip.removeAllListeners("entry").removeAllListeners("end").removeAllListeners("error");
        act();
      };
      zip.once("entry", (found: yauzl.Entry) => settle(() => resolve(found)));
      zip.once("end", () => settle(() => resolve(null)));
      zip.once("error", (error: unknown) => settle(() => reject(error)));
      zip.readEntry();
    });
    if (entry === null) return;
    yield entry;
  }
}

/**
 * The entries of an npm package lie under one folder, `package/` by custom, which paths here do not name. `scratch` is
 * an empty folder on the disk of `directory`.
 */
export async function extractTgz(
  archive: string,
  files: readonly SourceFile[],
  directory: string,
  scratch: string,
): Promise<void> {
  const inPackage = (path: string): string => path.replace(/^[^/]*\//, "");
  try {
    await extract({
      file: archive,
      cwd: scratch,
      strip: 1,
      strict: true,
      filter: (path) => destination(inPackage(path), files, directory) !== null,
    });
  } catch (error) {
    if (systemCode(error)?.startsWith("TAR_") !== true) throw error;
    throw new DownloadError("download_failed", `${archive} is not a readable npm package`, { cause: error });
  }
  for (const { path } of await listFiles(scratch)) {
    const target = destination(path, files, directory);
    if (target === null) continue;
    await mkdir(dirname(target), { recursive: true });
    await rename(join(scratch, path), target);
  }
}

async function writeEntry(content: NodeJS.ReadableStream, target: string, signal: AbortSignal): Promise<void> {
  const partial = `${target}.partial`;
  await mkdir(dirname(target), { recursive: true });
  try {
    await pipeline(content, createWriteStream(partial), { signal });
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  await rename(partial, target);
}
