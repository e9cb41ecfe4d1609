/** Runs the requirements against a server, one after another, and says how each went. */
import { AppError } from "../errors.ts";
import { isVoiceChatSession } from "../protocol/voicechat/server-events.ts";
import type { Clock } from "../util/clock.ts";
import { type Door, isTurned, type Target, type Turned } from "./line.ts";
import { Peer } from "./peer.ts";
import type { Question } from "./question.ts";
import type { Check, Level, Requirement } from "./requirement.ts";
import { DOOR_REQUIREMENTS } from "./requirements/doors.ts";
import { ERROR_REQUIREMENTS } from "./requirements/errors.ts";
import { EVENT_REQUIREMENTS } from "./requirements/events.ts";
import { FORMAT_REQUIREMENTS } from "./requirements/formats.ts";
import { INPUT_REQUIREMENTS } from "./requirements/input.ts";
import { ITEM_REQUIREMENTS } from "./requirements/items.ts";
import { RESPONSE_REQUIREMENTS } from "./requirements/responses.ts";
import { SESSION_REQUIREMENTS } from "./requirements/session.ts";
import { TALK_REQUIREMENTS } from "./requirements/talk.ts";
import { TOOL_REQUIREMENTS } from "./requirements/tools.ts";
import { Skipped, Unmet } from "./unmet.ts";

export const SUITE: readonly Requirement[] = [
  ...SESSION_REQUIREMENTS,
  ...ERROR_REQUIREMENTS,
  ...ITEM_REQUIREMENTS,
  ...RESPONSE_REQUIREMENTS,
  ...TALK_REQUIREMENTS,
  ...INPUT_REQUIREMENTS,
  ...TOOL_REQUIREMENTS,
  ...FORMAT_REQUIREMENTS,
  ...EVENT_REQUIREMENTS,
  ...DOOR_REQUIREMENTS,
];

export interface Verdict {
  readonly id: string;
  readonly title: string;
  readonly level: Level;
  readonly source: string;
  readonly status: "passed" | "failed" | "skipped";
  /** What should have come: of a failure the very thing that did not, else the title. */
  readonly expected: string;
  /** What came; of a skipped requirement, why it was skipped. */
  readonly came: string;
  readonly ms: number;
}

export interface RunOptions {
  readonly target: Target;
  readonly question: Question;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly pace: number;
  readonly signal?: AbortSignal;
}

/** Waits for a session to begin. @throws {Unmet} with what the server did instead. */
export async function greet({ target, clock, timeoutMs, pace }: Omit<RunOptions, "question">): Promise<void> {
  const line = await target.connect();
  if (isTurned(line)) throw new Unmet("a connection", `HTTP ${line.httpStatus}`);
  const peer = new Peer(line, { clock, timeoutMs, pace });
  try {
    const created = await peer.next("session.created");
    if (isVoiceChatSession(created["session"])) {
      throw new Unmet(
        "a session of the OpenAI Realtime API",
        "one of a VoiceChat model, which has a dialect of its own",
      );
    }
  } finally {
    await peer.close();
  }
}

/** One verdict a requirement, in their order, as they are reached. */
export async function* runSuite(
  requirements: readonly Requirement[],
  options: RunOptions,
): AsyncGenerator<Verdict, void, undefined> {
  const isInterrupted = (): boolean => options.signal?.aborted === true;
  for (const requirement of requirements) {
    if (isInterrupted()) return;
    const verdict = await judge(requirement, options);
    // What an interruption broke off says nothing about the server.
    if (isInterrupted()) return;
    yield verdict;
  }
}

async function judge(requirement: Requirement, options: RunOptions): Promise<Verdict> {
  const { id, title, level, source } = requirement;
  const { clock } = options;
  const visit = new Visit(options);
  const leave = (): void => void visit.end();
  options.signal?.addEventListener("abort", leave);
  const startMs = clock.nowMs();
  const verdict = (status: Verdict["status"], expected: string, came: string): Verdict => {
    return { id, title, level, source, status, expected, came, ms: Math.round(clock.nowMs() - startMs) };
  };
  try {
    return verdict("passed", title, await requirement.run(visit));
  } catch (error) {
    if (error instanceof Unmet) return verdict("failed", error.expected, error.came);
    if (error instanceof Skipped) return verdict("skipped", title, error.message);
    if (error instanceof AppError) return verdict("failed", "a connection", error.message);
    throw error;
  } finally {
    options.signal?.removeEventListener("abort", leave);
    await visit.end();
  }
}

/** The peers of one requirement. */
class Visit implements Check {
  readonly target: Target;
  readonly question: Question;
  readonly #options: RunOptions;
  readonly #peers: Peer[] = [];
  constructor(options: RunOptions) {
    this.target = options.target;
    this.question = options.question;
    this.#options = options;
  }
  readonly open = async (session?: object, door?: Door): Promise<Peer> => {
    const peer = await this.knock(door);
    if (isTurned(peer)) throw new Unmet("a connection", `HTTP ${peer.httpStatus}`);
    await peer.next("session.created");
    if (session !== undefined) await peer.update(session);
    return peer;
  };
  readonly knock = async (door?: Door): Promise<Peer | Turned> => {
    const line = await this.target.connect(door);
    if (isTurned(line)) return line;
    const peer = new Peer(line, this.#options);
    this.#peers.push(peer);
    return peer;
  };
  async end(): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer.close()));
  }
}
