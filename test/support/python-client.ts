/** The clients of other people's stacks in a Python environment of its own, made once: OpenAI's, and aiortc. */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withLock } from "../../src/models/lock.ts";
import { systemClock } from "../../src/util/clock.ts";

const PACKAGES = ["openai[realtime]==3.57.0", "aiortc==1.16.0"];
const DIRECTORY = fileURLToPath(new URL("../../.cache/python-client", import.meta.url));
const PROBE = "import openai, websockets, aiortc";
const run = promisify(execFile);

/** Tests that need it are skipped where there is no Python 3 to make it with. */
export const hasPython: boolean = spawnSync("python3", ["-m", "venv", "--help"]).status === 0;

/** Making it takes a minute: call `pythonClient` in `beforeAll` with this. */
export const PYTHON_CLIENT_MS = 300_000;

/** The interpreter of the environment; one process makes it, others wait. */
export async function pythonClient(): Promise<string> {
  const interpreter = join(DIRECTORY, "bin", "python");
  mkdirSync(join(DIRECTORY, ".."), { recursive: true });
  await withLock(`${DIRECTORY}.lock`, { clock: systemClock }, async () => {
    if (existsSync(interpreter) && spawnSync(interpreter, ["-c", PROBE]).status === 0) return;
    await run("python3", ["-m", "venv", "--clear", DIRECTORY]);
    await run(interpreter, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES]);
  });
  return interpreter;
}
