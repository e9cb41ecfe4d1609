/** OpenAI's Python client in an environment of its own, made once. */
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const PACKAGES = ["openai[realtime]==3.57.0"];
const DIRECTORY = new URL("../../.cache/python-client", import.meta.url).pathname;
const run = promisify(execFile);

/** Null where there is no Python 3 to make it with. */
export const python3: string | null = spawnSync("python3", ["-m", "venv", "--help"]).status === 0 ? "python3" : null;

/** The interpreter of the environment. Making it takes a minute. */
export async function pythonClient(): Promise<string> {
  const interpreter = join(DIRECTORY, "bin", "python");
  const probe = (): boolean => spawnSync(interpreter, ["-c", "import openai, websockets"]).status === 0;
  if (existsSync(interpreter) && probe()) return interpreter;
  await run(python3 ?? "python3", ["-m", "venv", "--clear", DIRECTORY]);
  await run(interpreter, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES]);
  return interpreter;
}
