/** Starts a module of ours as a child process, from source and from `dist` alike. */
import { type ChildProcess, fork, type StdioOptions } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const fromSource: boolean = import.meta.url.endsWith(".ts");

/** Modules are named as in the source; in `dist` they are JavaScript. */
export function runnable(module: URL): string {
  return fromSource ? module.href : module.href.replace(/\.ts$/, ".js");
}

/** `module` is named by `new URL("./x.ts", import.meta.url)`. From source the child needs the TypeScript loader. */
export function forkModule(module: URL, args: readonly string[], stdio: StdioOptions): ChildProcess {
  const loader = fromSource ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : [];
  return fork(fileURLToPath(runnable(module)), args, { execArgv: loader, serialization: "advanced", stdio });
}
