/** Whole repositories of the hub in the cache: which commit a revision meant, and which files are wanted. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../errors.ts";
import type { CacheEntry } from "./cache.ts";
import type { ProgressListener } from "./progress.ts";

export interface RepositoryOptions {
  /** Branch, tag or commit. Default: `main`. */
  readonly revision?: string;
  /** Patterns of paths, where `*` stands for anything: `["*.json", "*.safetensors"]`. Default: every file. */
  readonly include?: readonly string[];
  /** Asks the hub what the revision means now. Default: what it meant at the last pull stands, without network. */
  readonly refresh?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ProgressListener | undefined;
}

export interface RepositoryFiles {
  /** `owner/name`. */
  readonly repository: string;
  readonly commit: string;
  readonly directory: string;
}

const ID = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/;

/** `owner/name`, as the hub spells it. */
export function isRepositoryId(text: string): boolean {
  return ID.test(text) && !text.includes("..") && !text.includes("--");
}

/** @throws {DownloadError} download_not_found */
export function requireRepositoryId(text: string): void {
  if (isRepositoryId(text)) return;
  throw new DownloadError("download_not_found", `"${text}" is not the id of a hub repository; write OWNER/NAME`);
}

export function isIncluded(path: string, include: readonly string[] | undefined): boolean {
  if (include === undefined) return true;
  return include.some((pattern) => {
    const literal = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
    return new RegExp(`^${literal.join(".*")}$`, "s").test(path);
  });
}

/** The directory's name: two choices of files of one commit do not share one. */
export function snapshotVersion(commit: string, include: readonly string[] | undefined): string {
  if (include === undefined) return commit;
  return `${commit}-${createHash("sha256").update(include.join("\n")).digest("hex").slice(0, 8)}`;
}

export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}

/** Revision -> commit, as of the last pull of each. */
export class Revisions {
  readonly #path: string;
  constructor(entry: CacheEntry) {
    this.#path = join(entry.root, "revisions.json");
  }
  get(revision: string): string | null {
    return isCommit(revision) ? revision : (this.#read().get(revision) ?? null);
  }
  /** Call it exclusively. */
  async set(revision: string, commit: string): Promise<void> {
    if (isCommit(revision)) return;
    const all = Object.fromEntries([...this.#read(), [revision, commit]]);
    await writeFile(`${this.#path}.new`, `${JSON.stringify(all, null, 1)}\n`);
    await rename(`${this.#path}.new`, this.#path);
  }
  #read(): Map<string, string> {
    try {
      return new Map(Object.entries(JSON.parse(readFileSync(this.#path, "utf8")) as Record<string, string>));
    } catch {
      return new Map();
    }
  }
}
