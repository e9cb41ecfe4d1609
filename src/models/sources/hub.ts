/** The Hugging Face hub, or a mirror that speaks its API. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { listFiles, modelInfo, pathsInfo } from "@huggingface/hub";
import { DownloadError } from "../../errors.ts";
import { isSafePath } from "../archive.ts";
import type { Digest } from "../checksum.ts";
import { download } from "../download.ts";
import { httpFailure, toDownloadError } from "../failure.ts";
import { pause } from "../lock.ts";
import { type HubSource, type SourceFile, sourceLabel } from "../model.ts";
import { isCommit } from "../repository.ts";
import type { SourceContext } from "./source.ts";

const METADATA_ATTEMPTS_MAX = 4;
const METADATA_BACKOFF_MS = 500;
const RETRY_AFTER_MAX_MS = 60_000;

/** A file of one commit, with the digest that the hub vouches for. */
export interface HubFile {
  readonly path: string;
  readonly bytes: number;
  readonly digest: Digest | null;
}

export class HubRepository {
  readonly #repository: string;
  readonly #context: SourceContext;
  constructor(repository: string, context: SourceContext) {
    this.#repository = repository;
    this.#context = context;
  }
  /** The commit that `revision` (branch, tag or commit) means now. */
  async resolve(revision: string): Promise<string> {
    const { sha } = await this.#ask(() =>
      modelInfo({ name: this.#repository, revision, additionalFields: ["sha"], ...this.#access() }),
    );
    if (!isCommit(sha)) {
      throw new DownloadError("download_failed", `hub ${this.#repository} does not say which commit ${revision} is`);
    }
    return sha;
  }
  /** @throws {DownloadError} download_not_found when one of `paths` is not a file of `commit`. */
  async files(commit: string, paths: readonly string[]): Promise<HubFile[]> {
    const repo = this.#repository;
    const found = await this.#ask(() => pathsInfo({ repo, revision: commit, paths: [...paths], ...this.#access() }));
    return paths.map((path) => {
      const info = found.find((candidate) => candidate.path === path && candidate.type === "file");
      if (info === undefined) throw new DownloadError("download_not_found", `hub ${repo} has no file ${path}`);
      return hubFile(info);
    });
  }
  /** Every file of `commit` under `folder` (ends in `/`; empty for all). */
  async tree(commit: string, folder: string): Promise<HubFile[]> {
    const path = folder.replace(/\/$/, "");
    const options = { repo: this.#repository, revision: commit, recursive: true, ...(path !== "" && { path }) };
    return await this.#ask(async () => {
      const files: HubFile[] = [];
      for await (const entry of listFiles({ ...options, ...this.#access() })) {
        if (entry.type === "file") files.push(hubFile(entry));
      }
      return files;
    });
  }
  /** Downloads `file` to `to` under the context's directory. */
  async download(commit: string, file: HubFile, to: string): Promise<void> {
    const { hub, partial, directory } = this.#context;
    if (!isSafePath(to)) throw new DownloadError("download_failed", `hub ${this.#repository} names a file ${to}`);
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    await download(
      {
        url: `${hub.endpoint}/${this.#repository}/resolve/${commit}/${path}`,
        item: file.path,
        headers: this.#authorization,
        target: join(directory, to),
        partial: join(partial, partialName(`${this.#repository}/${file.path}`, file.digest?.hex ?? commit)),
        bytes: file.bytes,
        digest: file.digest,
        tokenSent: hub.token !== null,
      },
      this.#context,
    );
  }
  /** The token goes in here: the library takes only those of the hub itself, and mirrors have their own. */
  #access(): { hubUrl: string; fetch: typeof globalThis.fetch } {
    return { hubUrl: this.#context.hub.endpoint, fetch: (input, init) => this.#fetch(input, init) };
  }
  get #authorization(): Record<string, string> {
    const { token } = this.#context.hub;
    return token === null ? {} : { authorization: `Bearer ${token}` };
  }
  /** Answers that are not metadata become our errors before the library makes its own of them. */
  async #fetch(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const { hub, signal, fetch } = this.#context;
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(this.#authorization)) headers.set(name, value);
    const response = await fetch(input, { ...init, headers, signal });
    if (response.ok) return response;
    await response.body?.cancel();
    const retryAfterS = Number(response.headers.get("retry-after") ?? Number.NaN);
    throw httpFailure(response.status, {
      what: this.#repository,
      host: new URL(hub.endpoint).host,
      tokenSent: hub.token !== null,
      retryAfterMs: Number.isFinite(retryAfterS) ? retryAfterS * 1000 : null,
    });
  }
  async #ask<T>(question: () => Promise<T>): Promise<T> {
    const { signal, directory, report } = this.#context;
    const item = `hub ${this.#repository}`;
    for (let attempt = 1; ; attempt++) {
      try {
        return await question();
      } catch (thrown) {
        signal.throwIfAborted();
        const error = toDownloadError(thrown, item, directory);
        const askedMs = error.details["retryAfterMs"];
        const delayMs = typeof askedMs === "number" ? askedMs : METADATA_BACKOFF_MS * 2 ** (attempt - 1);
        if (!error.retryable || attempt >= METADATA_ATTEMPTS_MAX || delayMs > RETRY_AFTER_MAX_MS) throw error;
        report({ kind: "retrying", item, reason: error.message, delayMs });
        await pause(delayMs, this.#context);
      }
    }
  }
}

interface WantedFile {
  readonly file: HubFile;
  readonly to: string;
}

/**
 * Takes the files of a catalog source. A digest in the catalog goes before the hub's; where the catalog has all of them,
 * the hub is asked for nothing but the files, so that a plain mirror of them is enough.
 */
export async function fetchHub(source: HubSource, context: SourceContext): Promise<void> {
  const repository = new HubRepository(source.repository, context);
  const known = source.files.flatMap((file) => pinned(file) ?? []);
  const isKnown = known.length === source.files.length;
  const commit = isKnown ? source.revision : await repository.resolve(source.revision);
  const wanted = isKnown ? known : await describedByHub(source, repository, commit);
  for (const { file, to } of wanted) await repository.download(commit, file, to);
}

/** Null when the catalog lacks the size or the digest, as it does of a folder's files. */
function pinned({ from, to, bytes, sha256 }: SourceFile): WantedFile | null {
  if (from.endsWith("/") || bytes === undefined || sha256 === undefined) return null;
  return { file: { path: from, bytes, digest: { kind: "sha256", hex: sha256 } }, to };
}

async function describedByHub(source: HubSource, repository: HubRepository, commit: string): Promise<WantedFile[]> {
  const single = source.files.filter(({ from }) => !from.endsWith("/"));
  const paths = single.map(({ from }) => from);
  const files = paths.length === 0 ? [] : await repository.files(commit, paths);
  const wanted = files.map((file, index) => {
    const { to, sha256 } = single[index]!;
    const digest = sha256 === undefined ? file.digest : ({ kind: "sha256", hex: sha256 } as const);
    return { file: { ...file, digest }, to };
  });
  for (const { from, to } of source.files.filter((file) => file.from.endsWith("/"))) {
    const inFolder = await repository.tree(commit, from);
    if (inFolder.length === 0) throw new DownloadError("download_not_found", `${sourceLabel(source)} has no ${from}`);
    wanted.push(...inFolder.map((file) => ({ file, to: to + file.path.slice(from.length) })));
  }
  return wanted;
}

function hubFile(info: { path: string; size: number; oid?: string; lfs?: { oid: string; size: number } }): HubFile {
  const { path, lfs, oid } = info;
  if (lfs !== undefined) return { path, bytes: lfs.size, digest: { kind: "sha256", hex: lfs.oid } };
  return { path, bytes: info.size, digest: oid === undefined ? null : { kind: "git-sha1", hex: oid } };
}

/** A name for a partial download that no other content shares. */
export function partialName(identity: string, version: string): string {
  return createHash("sha256").update(`${identity}\n${version}`).digest("hex").slice(0, 32);
}
