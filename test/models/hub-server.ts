/**
 * A server on loopback that behaves like the hub: metadata API, `resolve` addresses, large files on another host behind
 * a redirect, ETags and ranges. Faults are given per path and used up one per request.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";
/** Larger files are in LFS, as on the hub. */
const LFS_BYTES_MIN = 1000;

export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly retryAfter?: string }
  /** Ends the connection after this many bytes of the body. */
  | { readonly kind: "cut"; readonly afterBytes: number }
  /** Sends this many bytes and then nothing more. */
  | { readonly kind: "hang"; readonly afterBytes: number }
  | { readonly kind: "corrupt" }
  | { readonly kind: "ignore-range" };

export interface SeenRequest {
  readonly path: string;
  readonly host: "hub" | "lfs";
  readonly range: string | null;
  readonly ifRange: string | null;
  readonly authorization: string | null;
}

export class HubServer implements AsyncDisposable {
  readonly repository: string;
  readonly files: Map<string, Buffer> = new Map();
  readonly seen: SeenRequest[] = [];
  /** Path of a file, or `api` for metadata -> faults to come. */
  readonly faults: Map<string, Fault[]> = new Map();
  /** When set, requests without this token are refused. */
  token: string | null = null;
  /** Answers everything with a page, as a hotel's network does. */
  loginPage: boolean = false;
  commit: string = COMMIT;
  /** Bytes of file bodies that were sent. */
  sentBytes: number = 0;
  readonly #hub: Server;
  readonly #lfs: Server;

  private constructor(repository: string) {
    this.repository = repository;
    this.#hub = createServer((request, response) => this.#onHub(request, response));
    this.#lfs = createServer((request, response) => this.#onLfs(request, response));
  }
  static async start(repository: string, files: Record<string, Buffer>): Promise<HubServer> {
    const server = new HubServer(repository);
    for (const [path, content] of Object.entries(files)) server.files.set(path, content);
    for (const one of [server.#hub, server.#lfs]) {
      await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
    }
    return server;
  }
  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }
  get #lfsEndpoint(): string {
    return `http://127.0.0.1:${(this.#lfs.address() as AddressInfo).port}`;
  }
  fail(path: string, ...faults: Fault[]): void {
    this.faults.set(path, [...(this.faults.get(path) ?? []), ...faults]);
  }
  /** Breaks every connection that a large file is being sent on. */
  dropBodies(): void {
    this.#lfs.closeAllConnections();
  }
  /** Requests for the body of `path`. */
  bodies(path: string): SeenRequest[] {
    const content = this.files.get(path)!;
    const host = content.length >= LFS_BYTES_MIN ? "lfs" : "hub";
    return this.seen.filter((request) => request.host === host && request.path === path);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [this.#hub, this.#lfs]) {
      one.closeAllConnections();
      await new Promise((resolve) => one.close(resolve));
    }
  }

  #onHub(request: IncomingMessage, response: ServerResponse): unknown {
    const { pathname } = new URL(request.url ?? "/", "http://hub");
    const path = decodeURIComponent(pathname);
    const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    this.#note(request, resolve?.[3] ?? path, "hub");
    if (this.loginPage) return response.end("<html>Welcome, please log in</html>");
    if (this.token !== null && request.headers.authorization !== `Bearer ${this.token}`) {
      return reply(response, 401, { error: "Invalid credentials" });
    }
    if (resolve !== null) return this.#onResolve(request, response, resolve[1]!, resolve[2]!, resolve[3]!);
    if (this.#refused("api", response)) return;
    const api = /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree|paths-info)\/([^/]+)(?:\/(.+))?$/.exec(path);
    if (api === null || api[1] !== this.repository) return reply(response, 404, { error: "Repository not found" });
    if (![this.commit, "main"].includes(api[3]!)) return reply(response, 404, { error: "Invalid rev id" });
    if (api[2] === "revision") {
      return reply(response, 200, { _id: "1", id: this.repository, sha: this.commit, lastModified: new Date(0) });
    }
    const all = [...this.files].map(([name, content]) => description(name, content));
    if (api[2] === "tree") {
      const folder = api[4];
      return reply(
        response,
        200,
        all.filter(({ path: name }) => !folder || name.startsWith(`${folder}/`)),
      );
    }
    return readJson(request, (asked) =>
      reply(
        response,
        200,
        all.filter(({ path: name }) => asked.paths.includes(name)),
      ),
    );
  }

  #onResolve(
    request: IncomingMessage,
    response: ServerResponse,
    repository: string,
    commit: string,
    path: string,
  ): unknown {
    const content = this.files.get(path);
    if (repository !== this.repository || commit !== this.commit || content === undefined) {
      response.setHeader("x-error-code", "EntryNotFound");
      return reply(response, 404, { error: "Entry not found" });
    }
    response.setHeader("x-repo-commit", this.commit);
    if (content.length < LFS_BYTES_MIN) return this.#send(request, response, path, content);
    response.setHeader("x-linked-etag", `"${sha256(content)}"`);
    response.setHeader("x-linked-size", content.length);
    return response.writeHead(302, { location: `${this.#lfsEndpoint}/${encodeURIComponent(path)}` }).end();
  }

  #onLfs(request: IncomingMessage, response: ServerResponse): unknown {
    const path = decodeURIComponent((request.url ?? "/").slice(1));
    this.#note(request, path, "lfs");
    const content = this.files.get(path);
    if (content === undefined) return reply(response, 404, {});
    return this.#send(request, response, path, content);
  }

  #send(request: IncomingMessage, response: ServerResponse, path: string, whole: Buffer): unknown {
    if (this.#refused(path, response)) return;
    const fault = this.faults.get(path)?.shift();
    const content = fault?.kind === "corrupt" ? Buffer.from(whole.map((byte) => byte ^ 1)) : whole;
    const etag = `"${sha256(whole).slice(0, 32)}"`;
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
    const honoured =
      range !== null &&
      fault?.kind !== "ignore-range" &&
      [undefined, etag].includes(request.headers["if-range"] as string);
    const start = honoured ? Number(range[1]) : 0;
    if (start >= content.length && honoured) return reply(response, 416, {});
    response.setHeader("etag", etag);
    response.setHeader("content-length", content.length - start);
    if (honoured) response.setHeader("content-range", `bytes ${start}-${content.length - 1}/${content.length}`);
    response.writeHead(honoured ? 206 : 200);
    const stop = fault?.kind === "cut" || fault?.kind === "hang" ? fault.afterBytes : content.length;
    const body = content.subarray(start, start + stop);
    this.sentBytes += body.length;
    if (fault?.kind === "cut") return response.write(body, () => response.destroy());
    return fault?.kind === "hang" ? response.write(body) : response.end(body);
  }

  #refused(path: string, response: ServerResponse): boolean {
    const [fault] = this.faults.get(path) ?? [];
    if (fault?.kind !== "status") return false;
    this.faults.get(path)!.shift();
    if (fault.retryAfter !== undefined) response.setHeader("retry-after", fault.retryAfter);
    reply(response, fault.status, { error: "no" });
    return true;
  }

  #note(request: IncomingMessage, path: string, host: SeenRequest["host"]): void {
    const { range, authorization, "if-range": ifRange } = request.headers;
    this.seen.push({
      path,
      host,
      range: range ?? null,
      ifRange: (ifRange as string | undefined) ?? null,
      authorization: authorization ?? null,
    });
  }
}

function description(
  path: string,
  content: Buffer,
): { type: string; path: string; size: number; oid: string; lfs?: object } {
  const oid = createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
  const base = { type: "file", path, size: content.length, oid };
  if (content.length < LFS_BYTES_MIN) return base;
  return { ...base, lfs: { oid: sha256(content), size: content.length, pointerSize: 130 } };
}

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Bytes that look like nothing in particular and are the same every time. */
export function bytesOf(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0, x = seed; i < length; i++) {
    x = (x * 1_103_515_245 + 12_345) & 0x7fffffff;
    bytes[i] = x >> 16;
  }
  return bytes;
}

function reply(response: ServerResponse, status: number, json: unknown): ServerResponse {
  return response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
}

function readJson(request: IncomingMessage, then: (value: { paths: string[] }) => unknown): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => then(JSON.parse(Buffer.concat(chunks).toString("utf8"))));
}
