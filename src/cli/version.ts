import { readFileSync } from "node:fs";

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** Of the package, from `src/cli` and from `dist/cli` alike. */
function manifest(): Manifest {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as Manifest;
}

export const version = (): string => manifest().version;

/** The oldest Node.js that antiphon runs on: `20.18.1`. */
export const nodeVersionMin = (): string => manifest().engines.node.replace(">=", "");
