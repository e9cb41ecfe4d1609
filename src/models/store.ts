/** The public door of `models`: names in, directories of whole and checked files out. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { AppError, ConfigError, DownloadError } from "../errors.ts";
import { assert } from "../util/assert.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type Log, silentLog } from "../util/log.ts";
import { suggestion } from "../util/nearest.ts";
import { fetchAsset } from "./asset.ts";
import { CacheEntry, requireFreeBytes } from "./cache.ts";
import { CATALOG } from "./catalog.ts";
import { toDownloadError } from "./failure.ts";
import { folders } from "./folder.ts";
import type { CatalogModel, Source } from "./model.ts";
import { prepareMoonshine } from "./preparation/moonshine.ts";
import { preparePiper } from "./preparation/piper.ts";
import type { ModelProgress, ProgressListener } from "./progress.ts";
import { createProxyFetch } from "./proxy.ts";
import {
  isCommit,
  isIncluded,
  isRepositoryId,
  type RepositoryFiles,
  type RepositoryOptions,
  Revisions,
  requireRepositoryId,
  snapshotVersion,
} from "./repository.ts";
import { HubRepository } from "./sources/hub.ts";
import type { HubAccess, SourceContext } from "./sources/source.ts";

/** Raised when what preparation makes of the same files changes. */
const PREPARATION_VERSION = 1;

export interface ModelStoreOptions {
  readonly cacheDir: string;
  /** Nothing is fetched over a network. */
  readonly offline: boolean;
  readonly hfToken: string | null;
  /** Address of the hub or of a mirror that speaks its API. */
  readonly hfEndpoint: string;
  readonly log?: Log;
  /** Default: through the proxy that the environment names. */
  readonly fetch?: typeof globalThis.fetch;
  readonly clock?: Clock;
  /** Default: the models that antiphon knows. */
  readonly catalog?: readonly CatalogModel[];
}

export interface EnsureOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ProgressListener | undefined;
}

/** A published model. */
export interface ModelFiles {
  readonly name: string;
  readonly directory: string;
  /** Absolute path of the file or folder with that role. */
  file(role: string): string;
}

/** One change of an entry. */
interface Pull {
  readonly name: string;
  readonly entry: CacheEntry;
  readonly signal: AbortSignal;
  readonly onProgress: ProgressListener;
}

export class ModelStore {
  readonly cacheDir: string;
  readonly catalog: readonly CatalogModel[];
  readonly #options: ModelStoreOptions;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #hub: HubAccess;
  readonly #fetch: typeof globalThis.fetch;

  /** @throws {ConfigError} config_invalid when the hub's address or token cannot be used */
  constructor(options: ModelStoreOptions) {
    this.cacheDir = resolve(options.cacheDir);
    this.catalog = options.catalog ?? CATALOG;
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#clock = options.clock ?? systemClock;
    this.#hub = hubAccess(options);
    this.#fetch = options.fetch ?? createProxyFetch();
  }

  /** @throws {AppError} model_unknown, with the name that was probably meant. */
  model(name: string): CatalogModel {
    const model = this.catalog.find((candidate) => candidate.name === name);
    if (model !== undefined) return model;
    const names = this.catalog.map((candidate) => candidate.name);
    const hint = suggestion(name, names) || ` It has ${names.join(", ")}.`;
    throw new AppError("model_unknown", `there is no model ${name} in the catalog.${hint}`);
  }

  /** The model, if it is in the cache as the catalog describes it and every file is there in full. */
  find(name: string): ModelFiles | null {
    const model = this.model(name);
    const version = versionOf(model);
    const entry = this.#modelEntry(model);
    return entry.find(version) === null ? null : modelFiles(model, entry.directory(version));
  }

  /**
   * The model, fetched, checked, prepared and published if it is not there yet. Safe among processes that share a cache.
   * @throws {DownloadError} with what each source said; whatever goes wrong, nothing half-written is published.
   */
  async ensure(name: string, options: EnsureOptions = {}): Promise<ModelFiles> {
    const found = this.find(name);
    if (found !== null) return found;
    const model = this.model(name);
    if (this.#options.offline && !hasLocalSources(model)) throw this.#notCached(name);
    const pull = newPull(name, this.#modelEntry(model), options);
    await this.#exclusively(pull, () => this.#pullModel(model, pull));
    return modelFiles(model, pull.entry.directory(versionOf(model)));
  }

  /** Removes the model and what interrupted pulls of it left. @returns whether there was anything. */
  async remove(name: string, options: EnsureOptions = {}): Promise<boolean> {
    return await this.#remove(newPull(name, this.#modelEntry(this.model(name)), options));
  }

  /** The snapshot of a hub repository that the last pull of the revision left, if it is whole. */
  findRepository(repository: string, options: RepositoryOptions = {}): RepositoryFiles | null {
    const entry = this.#repositoryEntry(repository);
    const commit = new Revisions(entry).get(options.revision ?? "main");
    if (commit === null) return null;
    const version = snapshotVersion(commit, options.include);
    return entry.find(version) === null ? null : { repository, commit, directory: entry.directory(version) };
  }

  /**
   * A hub repository as a directory of files, with the paths that they have there.
   * @throws {DownloadError} as `ensure` does
   */
  async ensureRepository(repository: string, options: RepositoryOptions = {}): Promise<RepositoryFiles> {
    const found = this.findRepository(repository, options);
    if (found !== null && (options.refresh !== true || this.#options.offline)) return found;
    if (this.#options.offline) throw this.#notCached(repository);
    const pull = newPull(repository, this.#repositoryEntry(repository), options);
    await this.#exclusively(pull, () => this.#pullRepository(pull, options));
    const pulled = this.findRepository(repository, options);
    assert(pulled !== null, `${repository} was published and is not there`);
    return pulled;
  }

  /** Removes every snapshot of the repository. @returns whether there was anything. */
  async removeRepository(repository: string, options: EnsureOptions = {}): Promise<boolean> {
    return await this.#remove(newPull(repository, this.#repositoryEntry(repository), options));
  }

  /** The repositories in the cache, with the size of their published files. */
  async repositories(): Promise<{ readonly repository: string; readonly bytes: number }[]> {
    const found: { repository: string; bytes: number }[] = [];
    const names = (await folders(join(this.cacheDir, "repositories"))).map((folder) => folder.replace("--", "/"));
    for (const repository of names.filter(isRepositoryId)) {
      const entry = this.#repositoryEntry(repository);
      const published = (await folders(entry.root)).flatMap((version) => entry.find(version) ?? []);
      const bytes = published.flatMap(({ files }) => files).reduce((sum, file) => sum + file.bytes, 0);
      if (published.length > 0) found.push({ repository, bytes });
    }
    return found;
  }

  #modelEntry(model: CatalogModel): CacheEntry {
    return new CacheEntry(join(this.cacheDir, "models", model.name), model.name);
  }

  #repositoryEntry(repository: string): CacheEntry {
    requireRepositoryId(repository);
    return new CacheEntry(join(this.cacheDir, "repositories", repository.replace("/", "--")), repository);
  }

  #notCached(name: string): DownloadError {
    return new DownloadError(
      "download_offline",
      `${name} is not in ${this.cacheDir} and downloads are off; run \`antiphon models pull ${name}\` while online`,
    );
  }

  async #remove(pull: Pull): Promise<boolean> {
    return await this.#exclusively(pull, () => pull.entry.remove());
  }

  async #exclusively<T>({ name, entry, signal, onProgress }: Pull, task: () => Promise<T>): Promise<T> {
    const onWait = (owner: string): void => onProgress({ kind: "waiting", model: name, owner });
    try {
      return await entry.exclusively({ clock: this.#clock, signal, onWait }, task);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof AppError ? error : toDownloadError(error, name, this.cacheDir);
    }
  }

  async #pullModel(model: CatalogModel, pull: Pull): Promise<void> {
    const { name, entry, onProgress } = pull;
    // The process that had the lock before may have pulled it.
    if (this.find(name) !== null) return;
    await requireFreeBytes(this.cacheDir, modelBytes(model), entry.partial);
    await entry.publish(versionOf(model), async (directory) => {
      const context = this.#context(pull, directory);
      const sources: string[] = [];
      for (const asset of model.assets) {
        const allowed = asset.filter(({ kind }) => kind === "file" || !this.#options.offline);
        const source = await fetchAsset(name, allowed, context, ({ source, error }) => {
          this.#log.warn({ model: name, source, code: error.code }, "source failed");
          onProgress({ kind: "source.failed", model: name, source, reason: error.message });
        });
        sources.push(source);
      }
      onProgress({ kind: "preparing", model: name });
      await prepare(model, directory);
      return sources;
    });
    this.#log.info({ model: name }, "model published");
  }

  async #pullRepository(pull: Pull, options: RepositoryOptions): Promise<void> {
    const { entry, name } = pull;
    const { revision = "main", include } = options;
    if (options.refresh !== true && this.findRepository(name, options) !== null) return;
    const inspected = new HubRepository(name, this.#context(pull, entry.staging));
    const commit = isCommit(revision) ? revision : await inspected.resolve(revision);
    const version = snapshotVersion(commit, include);
    if (entry.find(version) === null) {
      const files = (await inspected.tree(commit, "")).filter(({ path }) => isIncluded(path, include));
      if (files.length === 0) {
        throw new DownloadError("download_not_found", `hub ${name} has no file for ${include?.join(", ") ?? "*"}`);
      }
      const neededBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
      await requireFreeBytes(this.cacheDir, neededBytes, entry.partial);
      await entry.publish(version, async (directory) => {
        const repository = new HubRepository(name, this.#context(pull, directory));
        for (const file of files) await repository.download(commit, file, file.path);
        return [`hub ${name}@${commit}`];
      });
      this.#log.info({ repository: name, commit }, "repository published");
    }
    await new Revisions(entry).set(revision, commit);
  }

  #context({ name, entry, signal, onProgress }: Pull, directory: string): SourceContext {
    return {
      fetch: this.#fetch,
      clock: this.#clock,
      signal,
      report: (progress) => onProgress({ ...progress, model: name } as ModelProgress),
      hub: this.#hub,
      directory,
      partial: entry.partial,
      scratch: entry.scratch,
    };
  }
}

/** Neither the address nor the token is shown: both may carry a secret. */
function hubAccess({ hfEndpoint, hfToken }: ModelStoreOptions): HubAccess {
  const url = URL.canParse(hfEndpoint) ? new URL(hfEndpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigError("config_invalid", "HF_ENDPOINT is not an address; write it like https://HOST");
  }
  if (url.username !== "" || url.password !== "") {
    throw new ConfigError("config_invalid", "HF_ENDPOINT has a user name in it; give a token in HF_TOKEN instead");
  }
  const token = hfToken?.trim() || null;
  if (token !== null && !/^[\x21-\x7e]+$/.test(token)) {
    throw new ConfigError("config_invalid", "HF_TOKEN has a space or a special character in it; copy it again");
  }
  return { endpoint: hfEndpoint.trim().replace(/\/+$/, ""), token };
}

function newPull(name: string, entry: CacheEntry, options: EnsureOptions): Pull {
  const { signal = new AbortController().signal, onProgress = () => {} } = options;
  return { name, entry, signal, onProgress };
}

function modelFiles(model: CatalogModel, directory: string): ModelFiles {
  return {
    name: model.name,
    directory,
    file(role) {
      const path = model.roles[role];
      if (path === undefined) {
        const roles = Object.keys(model.roles).join(", ");
        throw new AppError("model_unknown", `model ${model.name} has no file for "${role}"; it has ${roles}`);
      }
      return join(directory, path);
    },
  };
}

/**
 * Names what is published: changes when the files that are wanted, their roles or the preparation do, and not when a
 * source of the same files is added or moves.
 */
function versionOf({ roles, assets, preparation }: CatalogModel): string {
  const wanted = assets.map(([first]) => first?.files.map(({ from, to, sha256 }) => [to, sha256 ?? from]));
  const described = JSON.stringify([PREPARATION_VERSION, roles, preparation ?? null, wanted]);
  return createHash("sha256").update(described).digest("hex").slice(0, 12);
}

function hasLocalSources(model: CatalogModel): boolean {
  return model.assets.every((asset) => asset.some(({ kind }) => kind === "file"));
}

/** The model, and the largest archive that lies beside it while it is unpacked. */
function modelBytes(model: CatalogModel): number {
  const archiveBytes = (source: Source | undefined): number =>
    source !== undefined && "archiveBytes" in source ? source.archiveBytes : 0;
  return model.bytes + Math.max(0, ...model.assets.map(([first]) => archiveBytes(first)));
}

async function prepare(model: CatalogModel, directory: string): Promise<void> {
  if (model.preparation === "moonshine-tokens") await prepareMoonshine(directory);
  if (model.preparation === "piper-voice") await preparePiper(directory);
}
