/** OpenAI's newest JavaScript clients, which want a newer Node, in a folder of their own, made once. */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withLock } from "../../src/models/lock.ts";
import { systemClock } from "../../src/util/clock.ts";

const NODE = `node-${process.platform}-${process.arch}`;
const PACKAGES: readonly [name: string, version: string][] = [
  [NODE, "22.23.5"],
  ["openai", "7.59.0"],
  ["@openai/agents-realtime", "0.20.0"],
  ["ws", "8.23.0"],
  ["zod", "4.6.7"],
];
const DIRECTORY = fileURLToPath(new URL("../../.cache/newest-client", import.meta.url));
const EXAMPLE = fileURLToPath(new URL("../../examples/ask.mjs", import.meta.url));
const run = promisify(execFile);

/** The registry carries a Node of its own for these. */
export const hasNewestNode: boolean = process.platform === "linux" || process.platform === "darwin";

/** A Node 22 and a copy of `original`, by default of `examples/ask.mjs`, that imports the newest clients. */
export async function newestClient(
  original: string = EXAMPLE,
): Promise<{ readonly node: string; readonly script: string }> {
  const node = join(DIRECTORY, "node_modules", NODE, "bin", "node");
  const script = join(DIRECTORY, basename(original));
  mkdirSync(DIRECTORY, { recursive: true });
  await withLock(`${DIRECTORY}.lock`, { clock: systemClock }, async () => {
    if (PACKAGES.every(isInstalled)) return;
    writeFileSync(join(DIRECTORY, "package.json"), '{"private":true}\n');
    const flags = ["--ignore-scripts", "--no-fund", "--no-audit", "--no-package-lock"];
    await run("npm", ["install", ...flags, "--save-exact", ...PACKAGES.map((known) => known.join("@"))], {
      cwd: DIRECTORY,
    });
  });
  copyFileSync(original, script);
  return { node, script };
}

/** Here, and not in a folder above, where an import would find the version of this repository. */
function isInstalled([name, version]: readonly [name: string, version: string]): boolean {
  const file = join(DIRECTORY, "node_modules", name, "package.json");
  return existsSync(file) && (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version === version;
}
