/** Short-lived tokens that open sessions of a given configuration: a web page gets one instead of the API key. */
import { randomBytes } from "node:crypto";
import { CapacityError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";

export const SECRET_PREFIX = "ek_";

/** OpenAI's bounds and default of `expires_after.seconds`. */
export const SECRET_SECONDS = { min: 10, max: 7200, default: 600 } as const;

const SECRETS_MAX = 10_000;

/** What a token opens. `session` is what its maker put into the session, as on the wire. */
export interface SessionGrant {
  readonly kind: "secret";
  readonly session: Readonly<Record<string, unknown>>;
}

export interface ClientSecret {
  readonly value: string;
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

export class ClientSecrets {
  readonly #clock: Clock;
  readonly #grants = new Map<string, { readonly grant: SessionGrant; readonly expiresAtMs: number }>();
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  /** @throws {CapacityError} when too many are alive. */
  create(session: Readonly<Record<string, unknown>>, seconds: number): ClientSecret {
    this.#forgetExpired();
    if (this.#grants.size >= SECRETS_MAX) {
      throw new CapacityError(
        "session_limit_reached",
        `${SECRETS_MAX} client secrets are alive; let some expire first.`,
      );
    }
    const value = `${SECRET_PREFIX}${randomBytes(24).toString("base64url")}`;
    this.#grants.set(value, { grant: { kind: "secret", session }, expiresAtMs: this.#clock.nowMs() + seconds * 1000 });
    return { value, expiresAt: this.#clock.unixSeconds() + seconds };
  }
  /** Null if unknown or expired. A token may open several sessions while it lives. */
  find(value: string): SessionGrant | null {
    this.#forgetExpired();
    return this.#grants.get(value)?.grant ?? null;
  }
  #forgetExpired(): void {
    const nowMs = this.#clock.nowMs();
    for (const [value, { expiresAtMs }] of this.#grants) if (expiresAtMs <= nowMs) this.#grants.delete(value);
  }
}
