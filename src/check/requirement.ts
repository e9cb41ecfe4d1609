/** What a server has to do, as data; how a run of it ends is an exception or a sentence. */

import type { Door, Target, Turned } from "./line.ts";
import type { Peer } from "./peer.ts";
import type { Question } from "./question.ts";

/** `SHOULD`: clients get along without, at a price. */
export type Level = "MUST" | "SHOULD";

export interface Requirement {
  /** `area.what`, stable: people name it in `--only`. */
  readonly id: string;
  /** What is expected, as a sentence about the server. */
  readonly title: string;
  readonly level: Level;
  /** Where the protocol asks for it: an event, a guide's chapter. */
  readonly source: string;
  /** @returns what came, in a few words. @throws {Unmet} or {Skipped}. */
  readonly run: (check: Check) => Promise<string>;
}

/** What a run may use. Peers are closed after it. */
export interface Check {
  readonly target: Target;
  readonly question: Question;
  /** A session that has begun, and was configured with `session` where that is given. */
  open(session?: object, door?: Door): Promise<Peer>;
  /** Whatever answers at `door`; nothing has been waited for. */
  knock(door: Door): Promise<Peer | Turned>;
}
