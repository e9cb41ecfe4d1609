/** Which web pages may use the server. Programs send no `Origin` and are not concerned. */
import { AuthError, ConfigError } from "../errors.ts";

/** As browsers send it: `null` for pages of files. */
const ORIGIN = /^(\*|null|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i;

export class OriginPolicy {
  readonly #allowed: ReadonlySet<string>;
  /** @throws {ConfigError} for what no page can have as its origin. */
  constructor(allowed: readonly string[]) {
    const origins = allowed.map((origin) => origin.replace(/\/$/, "").toLowerCase());
    const wrong = origins.find((origin) => !ORIGIN.test(origin));
    if (wrong !== undefined) {
      throw new ConfigError(
        "config_invalid",
        `--cors-origins: "${wrong}" is no origin of a page; expected one such as https://example.com, or *`,
      );
    }
    this.#allowed = new Set(origins);
  }
  /** `host` is the request's `Host`: a page that this server gave out is always welcome. */
  allows(origin: string | undefined, host: string | undefined): boolean {
    if (origin === undefined || this.#allowed.has("*")) return true;
    if (this.#allowed.has(origin.toLowerCase())) return true;
    return host !== undefined && origin.toLowerCase().replace(/^https?:\/\//, "") === host.toLowerCase();
  }
  /** @throws {AuthError} origin_not_allowed. */
  check(origin: string | undefined, host: string | undefined): void {
    if (this.allows(origin, host)) return;
    throw new AuthError(
      "origin_not_allowed",
      `Pages of ${origin} may not use this server; start it with --cors-origins ${origin} to let them.`,
    );
  }
}
