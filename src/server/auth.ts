/** Who may come in: a Bearer key, the same key in a browser's subprotocol, or a short-lived token. */
import { createHash, timingSafeEqual } from "node:crypto";
import { AuthError } from "../errors.ts";
import { type ClientSecrets, SECRET_PREFIX, type SessionGrant } from "./client-secrets.ts";

/** Browsers cannot set headers on a WebSocket: they offer the key as a subprotocol beside this one. */
export const REALTIME_SUBPROTOCOL = "realtime";
const KEY_SUBPROTOCOL = "openai-insecure-api-key.";

export interface Credentials {
  readonly key: string | null;
  /** The peer is a browser's WebSocket: it reads events and close codes, never an HTTP status. */
  readonly bySubprotocol: boolean;
}

export function credentialsOf(headers: {
  readonly authorization: string | undefined;
  readonly subprotocols: string | undefined;
}): Credentials {
  const offered = (headers.subprotocols ?? "").split(",").map((protocol) => protocol.trim());
  const inProtocol = offered.find((protocol) => protocol.startsWith(KEY_SUBPROTOCOL));
  const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? "")?.[1]?.trim();
  return {
    key: bearer ?? inProtocol?.slice(KEY_SUBPROTOCOL.length) ?? null,
    bySubprotocol: offered.includes(REALTIME_SUBPROTOCOL),
  };
}

export type Access = { readonly kind: "open" } | { readonly kind: "key" } | SessionGrant;

export class Gate {
  readonly #keyDigest: Buffer | null;
  readonly #secrets: ClientSecrets;
  constructor(apiKey: string | null, secrets: ClientSecrets) {
    this.#keyDigest = apiKey === null ? null : digest(apiKey);
    this.#secrets = secrets;
  }
  /**
   * Without a configured key any key will do, since clients insist on having one; a short-lived token must be a live
   * one even then, because its holder counts on the session that it is bound to.
   * @throws {AuthError} invalid_api_key.
   */
  admit(credentials: Credentials): Access {
    const { key } = credentials;
    if (key?.startsWith(SECRET_PREFIX) === true) {
      const grant = this.#secrets.find(key);
      if (grant === null) {
        throw new AuthError(
          "invalid_api_key",
          "The client secret is unknown or has expired; ask the server for a new one.",
        );
      }
      return grant;
    }
    if (this.#keyDigest === null) return { kind: "open" };
    if (key === null) {
      throw new AuthError(
        "invalid_api_key",
        "This server wants an API key: send the header Authorization: Bearer KEY, or from a browser the WebSocket subprotocol openai-insecure-api-key.KEY.",
      );
    }
    if (!timingSafeEqual(digest(key), this.#keyDigest)) throw new AuthError("invalid_api_key", "The API key is wrong.");
    return { kind: "key" };
  }
}

/** Equal lengths for the comparison, whatever was sent. */
const digest = (key: string): Buffer => createHash("sha256").update(key).digest();
