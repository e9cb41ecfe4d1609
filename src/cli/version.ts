import { readFileSync } from "node:fs";

/** Of the package, from `src/cli` and from `dist/cli` alike. */
export function version(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
