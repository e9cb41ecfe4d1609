/**
 * One file over HTTP onto the disk: resumed where an earlier try ended, tried again on passing faults, checked, and
 * given its name only when whole. The partial file lies beside a note of the validator that makes resuming safe, and
 * stays until the whole model is published: a pull that fails later does not fetch this file again.
 */
import { link, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { DownloadError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import { checkFile, type Digest } from "./checksum.ts";
import { checksumFailure, diskFull, httpFailure, isDiskFull, toDownloadError, truncated } from "./failure.ts";
import { pause } from "./lock.ts";
import type { SourceProgress } from "./progress.ts";

const ATTEMPTS_MAX = 5;
const BACKOFF_MS = 500;
/** A server that asks for more is not waited for: the error says when to come back. */
const RETRY_AFTER_MAX_MS = 60_000;
/** A connection that gives nothing for this long is taken for dead. */
const IDLE_MS = 30_000;

export interface DownloadRequest {
  readonly url: string;
  /** How the file is named to people. */
  readonly item: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: string;
  readonly partial: string;
  readonly bytes: number | null;
  readonly digest: Digest | null;
  /** Whether `headers` carry a token; null where the source takes none. */
  readonly tokenSent: boolean | null;
}

export interface DownloadContext {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  report(progress: SourceProgress): void;
}

/** @throws {DownloadError} */
export async function download(request: DownloadRequest, context: DownloadContext): Promise<void> {
  await mkdir(dirname(request.partial), { recursive: true });
  await mkdir(dirname(request.target), { recursive: true });
  // A preparation that was interrupted may have added to a file that came whole.
  if (request.bytes !== null && (await sizeOf(request.partial)) > request.bytes) await discard(request.partial);
  const startBytes = await sizeOf(request.partial);
  context.report({ kind: "started", item: request.item, doneBytes: startBytes, totalBytes: request.bytes });
  let fresh = startBytes === 0;
  for (;;) {
    await fetchWhole(request, context);
    try {
      await check(request, context.signal);
      break;
    } catch (error) {
      await discard(request.partial);
      // What an earlier try left may have been of another file; one clean try decides.
      if (fresh) throw error;
      fresh = true;
    }
  }
  const doneBytes = await sizeOf(request.partial);
  // A second name for the same bytes; a file system without them gives up the first one.
  await link(request.partial, request.target).catch(() => rename(request.partial, request.target));
  context.report({ kind: "finished", item: request.item, doneBytes });
}

async function check(request: DownloadRequest, signal: AbortSignal): Promise<void> {
  const doneBytes = await sizeOf(request.partial);
  if (request.bytes !== null && doneBytes !== request.bytes) {
    throw checksumFailure(request.item, "a size of", `${request.bytes} bytes`, `at least ${doneBytes}`);
  }
  if (request.digest !== null) await checkFile(request.partial, request.item, request.digest, signal);
}

/** Fills the partial file; each try that brought bytes renews the number of tries that are left. */
async function fetchWhole(request: DownloadRequest, context: DownloadContext): Promise<void> {
  let attempt = 0;
  for (;;) {
    context.signal.throwIfAborted();
    const beforeBytes = await sizeOf(request.partial);
    try {
      await fetchRest(request, context);
      return;
    } catch (thrown) {
      context.signal.throwIfAborted();
      const error = toDownloadError(thrown, request.item, dirname(request.target));
      if (isDiskFull(thrown)) await discard(request.partial);
      attempt = (await sizeOf(request.partial)) > beforeBytes ? 1 : attempt + 1;
      const delayMs = retryDelayMs(error, attempt);
      if (delayMs === null) throw error;
      context.report({ kind: "retrying", item: request.item, reason: error.message, delayMs });
      await pause(delayMs, context);
    }
  }
}

/** Null when the fault is not a passing one, or the tries are used up. */
function retryDelayMs(error: DownloadError, attempt: number): number | null {
  if (!error.retryable || attempt >= ATTEMPTS_MAX) return null;
  const askedMs = error.details["retryAfterMs"];
  if (typeof askedMs === "number") return askedMs > RETRY_AFTER_MAX_MS ? null : askedMs;
  return BACKOFF_MS * 2 ** (attempt - 1) * (1 + Math.random() / 4);
}

async function fetchRest(request: DownloadRequest, context: DownloadContext): Promise<void> {
  const doneBytes = await sizeOf(request.partial);
  if (request.bytes !== null && doneBytes === request.bytes) {
    // An empty file is whole before anything is asked for.
    if (doneBytes === 0) await writeFile(request.partial, "");
    return;
  }
  const validator = doneBytes > 0 ? await readValidator(request.partial) : null;
  const headers: Record<string, string> = { ...request.headers, "accept-encoding": "identity" };
  if (validator !== null) Object.assign(headers, { range: `bytes=${doneBytes}-`, "if-range": validator });

  const idle = new IdleTimer(context.clock);
  const signal = AbortSignal.any([context.signal, idle.signal]);
  try {
    const response = await context.fetch(request.url, { headers, signal, redirect: "follow" });
    idle.touch();
    if (response.status === 416) {
      await response.body?.cancel();
      await discard(request.partial);
      throw truncated(request.item, 0, request.bytes);
    }
    if (!response.ok) throw await refusal(response, request);
    const resumed = response.status === 206 && rangeStart(response) === doneBytes;
    if (response.status === 206 && !resumed) {
      await response.body?.cancel();
      await discard(request.partial);
      throw truncated(request.item, 0, request.bytes);
    }
    await writeBody(response, resumed ? doneBytes : 0, request, context, idle);
  } finally {
    idle.stop();
  }
}

async function refusal(response: Response, request: DownloadRequest): Promise<DownloadError> {
  await response.body?.cancel();
  return httpFailure(response.status, {
    what: request.item,
    host: new URL(request.url).host,
    tokenSent: request.tokenSent,
    retryAfterMs: retryAfterMs(response.headers.get("retry-after")),
  });
}

async function writeBody(
  response: Response,
  startBytes: number,
  request: DownloadRequest,
  context: DownloadContext,
  idle: IdleTimer,
): Promise<void> {
  // A server that compresses all the same counts other bytes than those that arrive here.
  const compressed = (response.headers.get("content-encoding") ?? "identity") !== "identity";
  const length = compressed ? null : response.headers.get("content-length");
  const expectedBytes = request.bytes ?? (length === null ? null : startBytes + Number(length));
  await writeValidator(request.partial, compressed ? null : response.headers.get("etag"));
  const file = await open(request.partial, startBytes > 0 ? "a" : "w");
  let doneBytes = startBytes;
  try {
    for await (const chunk of response.body ?? []) {
      idle.touch();
      await writeAll(file, chunk);
      doneBytes += chunk.byteLength;
      // Another file than the one that was promised; the check tells.
      if (expectedBytes !== null && doneBytes > expectedBytes) break;
      context.report({ kind: "bytes", item: request.item, doneBytes, totalBytes: expectedBytes });
    }
  } finally {
    await file.close();
  }
  if (expectedBytes !== null && doneBytes < expectedBytes) throw truncated(request.item, doneBytes, expectedBytes);
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.byteLength; ) {
    const { bytesWritten } = await file.write(chunk, at);
    if (bytesWritten === 0) throw diskFull("the cache", null);
    at += bytesWritten;
  }
}

/** Aborts its signal when `touch` is not called for `IDLE_MS`. */
class IdleTimer {
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  #cancel: () => void = () => {};
  constructor(clock: Clock) {
    this.#clock = clock;
    this.touch();
  }
  get signal(): AbortSignal {
    return this.#abort.signal;
  }
  touch(): void {
    this.#cancel();
    this.#cancel = this.#clock.schedule(IDLE_MS, () => {
      this.#abort.abort(Object.assign(new Error(`nothing came for ${IDLE_MS / 1000} s`), { code: "ETIMEDOUT" }));
    });
  }
  stop(): void {
    this.#cancel();
  }
}

function rangeStart(response: Response): number | null {
  const match = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "");
  return match === null ? null : Number(match[1]);
}

/** Seconds or a date, as RFC 9110 section 10.2.3 has it. */
function retryAfterMs(value: string | null): number | null {
  if (value === null) return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}

const validatorPath = (partial: string): string => `${partial}.etag`;

/** A weak validator does not promise equal bytes, so it cannot guard a resumption. */
async function writeValidator(partial: string, etag: string | null): Promise<void> {
  if (etag === null || etag.startsWith("W/")) await rm(validatorPath(partial), { force: true });
  else await writeFile(validatorPath(partial), etag);
}

async function readValidator(partial: string): Promise<string | null> {
  return await readFile(validatorPath(partial), "utf8").catch(() => null);
}

async function discard(partial: string): Promise<void> {
  await rm(partial, { force: true });
  await rm(validatorPath(partial), { force: true });
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    (found) => found.size,
    () => 0,
  );
}
