import { constants, cp, stat } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";
import type { FileSource } from "../model.ts";
import { checkFiles, type SourceContext } from "./source.ts";

/** Copies files of this disk, sharing their blocks where the file system can. */
export async function fetchFile(source: FileSource, context: SourceContext): Promise<void> {
  for (const { from, to } of source.files) {
    const found = await stat(from).catch(() => null);
    if (found === null || found.isDirectory() !== from.endsWith("/")) {
      const kind = from.endsWith("/") ? "folder" : "file";
      throw new DownloadError("download_not_found", `there is no ${kind} ${from} on this disk`);
    }
    await cp(from, join(context.directory, to), { recursive: true, mode: constants.COPYFILE_FICLONE });
  }
  await checkFiles(source.files, "the local file", context.directory, context.signal);
}
