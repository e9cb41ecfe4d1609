/** One asset of a model out of the first of its sources that gives it. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../errors.ts";
import { toDownloadError } from "./failure.ts";
import { type Source, sourceLabel } from "./model.ts";
import { fetchFile } from "./sources/file.ts";
import { fetchHttps } from "./sources/https.ts";
import { fetchHub } from "./sources/hub.ts";
import { fetchNpm } from "./sources/npm.ts";
import { fetchPypi } from "./sources/pypi.ts";
import type { SourceContext } from "./sources/source.ts";

interface Failure {
  readonly source: string;
  readonly error: DownloadError;
}

/**
 * Leaves the asset's files in `context.directory`; `onFailure` hears of each source but the last that did not give
 * them. @returns the label of the source that did.
 * @throws {DownloadError} with what each source said
 */
export async function fetchAsset(
  name: string,
  sources: readonly Source[],
  context: SourceContext,
  onFailure: (failure: Failure) => void,
): Promise<string> {
  const failures: Failure[] = [];
  for (const source of sources) {
    const label = sourceLabel(source);
    try {
      await mkdir(context.scratch, { recursive: true });
      await fetchFrom(source, context);
      return label;
    } catch (thrown) {
      context.signal.throwIfAborted();
      const error = toDownloadError(thrown, label, context.directory);
      // Another source would meet the same disk.
      if (error.code === "download_disk_full") throw error;
      for (const { to } of source.files) await rm(join(context.directory, to), { recursive: true, force: true });
      await rm(context.scratch, { recursive: true, force: true });
      failures.push({ source: label, error });
      if (source !== sources.at(-1)) onFailure({ source: label, error });
    }
  }
  throw combined(name, failures);
}

async function fetchFrom(source: Source, context: SourceContext): Promise<void> {
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

/** One source: its error. Several: the first error's code, and what each said. */
function combined(name: string, failures: readonly Failure[]): DownloadError {
  const [first] = failures;
  if (first === undefined) return new DownloadError("download_offline", `${name} has no source that works offline`);
  if (failures.length === 1) return first.error;
  const told = failures.map(({ source, error }) => `  ${source}: ${error.message}`);
  return new DownloadError(first.error.code, `no source gave ${name}:\n${told.join("\n")}`, { cause: first.error });
}
