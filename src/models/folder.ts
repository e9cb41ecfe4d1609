/** What lies in a folder of the cache. */
import { readdir, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { systemCode } from "./failure.ts";

export interface ListedFile {
  /** With `/`, from the folder's root. */
  readonly path: string;
  readonly bytes: number;
}

/** Every file under `directory`, in the order of its path's bytes. */
export async function listFiles(directory: string): Promise<ListedFile[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const listed = await Promise.all(
    files.map(async (path) => ({
      path: relative(directory, path).split(sep).join("/"),
      bytes: (await stat(path)).size,
    })),
  );
  return listed.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

/** Files come and go while this looks; what is gone counts as nothing. */
export async function bytesUnder(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = entries.map(async (entry) => {
    if (!entry.isFile()) return 0;
    return await stat(join(entry.parentPath, entry.name)).then(
      (found) => found.size,
      () => 0,
    );
  });
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

/** Names of the folders in `directory`; none when it does not exist. */
export async function folders(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return [];
    throw error;
  }
}
