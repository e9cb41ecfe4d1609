/** What every source is given, and what it leaves: its files in `directory`, checked. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";
import { checkFile, treeSha256 } from "../checksum.ts";
import type { DownloadContext } from "../download.ts";
import { checksumFailure } from "../failure.ts";
import type { SourceFile } from "../model.ts";

export interface HubAccess {
  readonly endpoint: string;
  readonly token: string | null;
}

export interface SourceContext extends DownloadContext {
  readonly hub: HubAccess;
  /** Where the files go. */
  readonly directory: string;
  /** Keeps interrupted downloads between pulls. */
  readonly partial: string;
  /** Emptied after the pull; on the same disk. */
  readonly scratch: string;
}

/** @throws {DownloadError} download_checksum, download_not_found */
export async function checkFiles(
  files: readonly SourceFile[],
  label: string,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  for (const file of files) {
    const path = join(directory, file.to);
    if ((await stat(path).catch(() => null)) === null) {
      throw new DownloadError("download_not_found", `${label} has no ${file.from}`);
    }
    if (file.sha256 === undefined) continue;
    const what = `${file.from} of ${label}`;
    if (!file.to.endsWith("/")) await checkFile(path, what, { kind: "sha256", hex: file.sha256 }, signal);
    else {
      const found = await treeSha256(path);
      if (found !== file.sha256) throw checksumFailure(what, "sha256 of all files", file.sha256, found);
    }
  }
}
