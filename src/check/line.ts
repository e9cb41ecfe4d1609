/** How the checker reaches a server: lines that carry text frames, and plain HTTP beside them. */

/** One connection to the server under test. */
export interface Line {
  send(text: string): void;
  /** Every text frame in order; ends when the connection does. */
  readonly texts: AsyncIterable<string>;
  /** The subprotocol that the server chose; empty where there is none. */
  readonly subprotocol: string;
  close(): Promise<void>;
}

/** What differs between the ways in. */
export interface Door {
  /** Added to the address: `model`, `intent`. */
  readonly query?: Readonly<Record<string, string>>;
  /** In place of the key that the checker was given. */
  readonly key?: string;
  /** How the key travels; `header` by default, `subprotocol` as browsers have to. */
  readonly keyIn?: "header" | "subprotocol";
}

/** The connection was answered with an HTTP status instead of a socket. */
export interface Turned {
  readonly httpStatus: number;
}

export interface Posted {
  readonly httpStatus: number;
  /** Parsed JSON; null where the answer is none. */
  readonly body: unknown;
}

/** The server under test. */
export interface Target {
  connect(door?: Door): Promise<Line | Turned>;
  /** `path` is relative to the address of sessions: `client_secrets`. Null where the server is reached without HTTP. */
  readonly post: ((path: string, body: unknown) => Promise<Posted>) | null;
  /** Whether the checker was given a key, and so can tell a right one from a wrong one. */
  readonly hasKey: boolean;
}

export const isTurned = <T extends object>(answer: T | Turned): answer is Turned => "httpStatus" in answer;
