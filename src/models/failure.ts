/** What goes wrong between a source and the disk, as one `DownloadError` each. */
import { DownloadError, type ErrorCode } from "../errors.ts";

const DISK_FULL = new Set(["ENOSPC", "EDQUOT"]);
const CUT_OFF = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_BODY_TIMEOUT"]);
const NETWORK =
  /^(EAI_|ECONN|EHOST|ENET|ENOTFOUND|EPROTO|ETIMEDOUT|UND_ERR_|CERT_|ERR_SSL|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;
const FILE_SYSTEM = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "EISDIR",
  "ENOTDIR",
  "EMFILE",
  "ENFILE",
  "EIO",
  "ENAMETOOLONG",
  "EEXIST",
]);

/** The system's code of an error or of what caused it (`fetch failed` hides it one or two levels down). */
export function systemCode(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === "string") return code;
  }
  return null;
}

export function isDiskFull(error: unknown): boolean {
  return DISK_FULL.has(systemCode(error) ?? "");
}

/** `room` says how much is there and how much is needed, where that is known. */
export function diskFull(directory: string, room: string | null, cause?: unknown): DownloadError {
  const known = room === null ? "" : ` (${room})`;
  return new DownloadError(
    "download_disk_full",
    `the disk of ${directory} is full${known}; free some space, or set ANTIPHON_CACHE to a directory on another disk`,
    { cause },
  );
}

export function truncated(
  what: string,
  doneBytes: number,
  expectedBytes: number | null,
  cause?: unknown,
): DownloadError {
  const of = expectedBytes === null ? "" : ` of ${expectedBytes}`;
  return new DownloadError(
    "download_truncated",
    `${what} ended after ${doneBytes}${of} bytes; run the same command again and it goes on from there`,
    { retryable: true, cause, details: { doneBytes, expectedBytes } },
  );
}

export function checksumFailure(what: string, kind: string, expected: string, found: string): DownloadError {
  return new DownloadError(
    "download_checksum",
    `${what} has ${kind} ${found}, expected ${expected}; it was thrown away. ` +
      "A proxy or mirror may have changed it; pull again, or use another source",
    { details: { expected, found } },
  );
}

/** A thrown value of `fetch`, a body or the file system, told as what it means for a download of `what`. */
export function toDownloadError(error: unknown, what: string, directory: string): DownloadError {
  if (error instanceof DownloadError) return error;
  if (isDiskFull(error)) return diskFull(directory, null, error);
  const code = systemCode(error);
  if (code !== null && FILE_SYSTEM.has(code)) {
    return new DownloadError(
      "download_failed",
      `cannot write ${what} under ${directory} (${code}); check its owner and rights`,
      {
        cause: error,
      },
    );
  }
  if (code !== null && CUT_OFF.has(code)) {
    return new DownloadError("download_truncated", `the connection broke while reading ${what} (${code})`, {
      retryable: true,
      cause: error,
    });
  }
  const message = error instanceof Error ? error.message : String(error);
  if (message === "fetch failed" || (code !== null && NETWORK.test(code))) {
    return new DownloadError(
      "download_unreachable",
      `no connection for ${what} (${code ?? message}); check the network`,
      {
        retryable: true,
        cause: error,
      },
    );
  }
  if (error instanceof SyntaxError) {
    return new DownloadError(
      "download_failed",
      `the answer for ${what} is not what its interface promises; a proxy or login page may stand between`,
      { cause: error },
    );
  }
  return new DownloadError("download_failed", `cannot get ${what}: ${message}`, { cause: error });
}

export interface RefusalContext {
  readonly what: string;
  readonly host: string;
  /** Whether a token was sent; null where the source takes none. */
  readonly tokenSent: boolean | null;
  readonly retryAfterMs?: number | null;
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: "download_refused",
  403: "download_refused",
  404: "download_not_found",
  410: "download_not_found",
  429: "download_rate_limited",
};

/** An HTTP answer that is not the file. */
export function httpFailure(status: number, context: RefusalContext): DownloadError {
  const { what, host, tokenSent } = context;
  const code = CODES[status] ?? "download_failed";
  const retryable = status === 429 || status === 408 || status >= 500;
  const waitS = Math.ceil((context.retryAfterMs ?? 0) / 1000);
  const advice: Partial<Record<ErrorCode, string>> = {
    download_refused:
      tokenSent === null
        ? "it wants credentials"
        : tokenSent
          ? "the token in HF_TOKEN has no access to it: accept the model's terms on its page, or use another token"
          : "set HF_TOKEN to a token that has access, and accept the model's terms on its page if it has any",
    download_not_found: "the name or revision is wrong, or it was removed",
    download_rate_limited:
      `too many requests${waitS > 0 ? `, come back in ${waitS} s` : ""}` +
      (tokenSent === false ? "; a token in HF_TOKEN raises the limit" : ""),
    download_failed: retryable ? "the server has a fault; try again later" : "this answer was not expected",
  };
  return new DownloadError(code, `${host} answered ${status} for ${what}: ${advice[code]}`, {
    retryable,
    details: { status, retryAfterMs: context.retryAfterMs ?? null },
  });
}
