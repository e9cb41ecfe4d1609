/** Digests of files and folders, read as streams. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { checksumFailure } from "./failure.ts";
import { listFiles } from "./folder.ts";

/** `git-sha1` is git's blob id, which the hub gives for small files that are not in LFS. */
export interface Digest {
  readonly kind: "sha256" | "git-sha1";
  readonly hex: string;
}

async function fileSha256(path: string, signal?: AbortSignal): Promise<string> {
  return await hashFile(createHash("sha256"), path, signal);
}

async function hashFile(hash: Hash, path: string, signal?: AbortSignal): Promise<string> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, ...(signal && { signal }) })) {
    hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}

async function fileDigest(kind: Digest["kind"], path: string, signal?: AbortSignal): Promise<string> {
  if (kind === "sha256") return await fileSha256(path, signal);
  const { size } = await stat(path);
  return await hashFile(createHash("sha1").update(`blob ${size}\0`), path, signal);
}

/** @throws {DownloadError} download_checksum */
export async function checkFile(path: string, what: string, expected: Digest, signal?: AbortSignal): Promise<void> {
  const found = await fileDigest(expected.kind, path, signal);
  if (found !== expected.hex) throw checksumFailure(what, expected.kind, expected.hex, found);
}

/** SHA-256 of the lines `path`, size and sha256 of each file, in the order of `listFiles`. */
export async function treeSha256(directory: string): Promise<string> {
  const hash = createHash("sha256");
  for (const { path, bytes } of await listFiles(directory)) {
    hash.update(`${path}\n${bytes}\n${await fileSha256(join(directory, path))}\n`);
  }
  return hash.digest("hex");
}
