/** Which web pages may use the server. Programs send no `Origin` and are not concerned. */
import { AuthError } from "../errors.ts";

export class OriginPolicy {
  readonly #allowed: ReadonlySet<string>;
  constructor(allowed: readonly string[]) {
    this.#allowed = new Set(allowed.map((origin) => origin.replace(/\/$/, "").toLowerCase()));
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
