/** Tiny packages made on the spot: an npm registry on loopback, and a folder of wheels that pip takes for its index. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { create } from "tar";

export class NpmRegistry implements AsyncDisposable {
  /** Answers with this status to everything, when set. */
  status: number | null = null;
  readonly requests: string[] = [];
  readonly #packages: Map<string, Buffer> = new Map();
  readonly #server: Server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://npm").pathname.slice(1));
    this.requests.push(path);
    if (this.status !== null) return response.writeHead(this.status).end("{}");
    const tarball = this.#packages.get(path.replace(/\.tgz$/, ""));
    if (tarball === undefined) return response.writeHead(404).end("{}");
    if (path.endsWith(".tgz")) return response.end(tarball);
    return response.end(JSON.stringify(this.#packument(path, tarball)));
  });

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }
  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
  /** Publishes version 1.0.0 of `name` with these files; `folder` is scratch space. */
  async publish(name: string, files: Record<string, string | Buffer>, folder: string): Promise<void> {
    writeFiles(join(folder, "package"), { ...files, "package.json": JSON.stringify({ name, version: "1.0.0" }) });
    const archive = join(folder, "package.tgz");
    await create({ gzip: true, file: archive, cwd: folder, portable: true }, ["package"]);
    this.#packages.set(name, readFileSync(archive));
  }
  #packument(name: string, tarball: Buffer): object {
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const dist = { tarball: `${this.address}${encodeURIComponent(name)}.tgz`, integrity };
    return { name, "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": { name, version: "1.0.0", dist } } };
  }
}

/** Writes `NAME-1.0.0-py3-none-TAG.whl` into `folder`. */
export function writeWheel(folder: string, name: string, files: Record<string, string | Buffer>, tag = "any"): void {
  const root = join(folder, `${name}-content`);
  const info = `${name}-1.0.0.dist-info`;
  writeFiles(root, {
    ...files,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0.0\nRequires-Python: >=3.12\n`,
    [`${info}/WHEEL`]: `Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-${tag}\n`,
    [`${info}/RECORD`]: "",
  });
  const zip =
    "import os, sys, zipfile\n" +
    "with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:\n" +
    "  for at, _, names in os.walk(sys.argv[2]):\n" +
    "    for n in names: p = os.path.join(at, n); z.write(p, os.path.relpath(p, sys.argv[2]))\n";
  execFileSync("python3", ["-c", zip, join(folder, `${name}-1.0.0-py3-none-${tag}.whl`), root]);
}

function writeFiles(root: string, files: Record<string, string | Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}
