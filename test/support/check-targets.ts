/** Servers for the checker: a good one over the memory transport, and any one with a fault put into it. */
import type { Door, Line, Posted, Target, Turned } from "../../src/check/line.ts";
import { isTurned } from "../../src/check/line.ts";
import type { WireEvent } from "../../src/check/wire.ts";
import { Connection } from "../../src/server/connection.ts";
import { MemoryTransport } from "../../src/server/memory.ts";
import { type Clock, ManualClock } from "../../src/util/clock.ts";
import { countingIds } from "../../src/util/ids.ts";
import { silentLog } from "../../src/util/log.ts";
import { Queue } from "../../src/util/queue.ts";
import { conversingEngine } from "./conversing-engine.ts";

/** Nothing has happened in so many turns of the event loop: nothing will, until time passes. */
const QUIET_TURNS = 50;

/**
 * Time for a process that has everything inside. It stands still while anything happens; when nothing does and the
 * checker waits, it goes on to the next alarm, the checker's or the server's.
 */
class QuietClock implements Clock {
  readonly #clock = new ManualClock();
  #alarmsMs: number[] = [];
  /** Grows while something is going on. */
  traffic = 0;
  nowMs(): number {
    return this.#clock.nowMs();
  }
  unixSeconds(): number {
    return this.#clock.unixSeconds();
  }
  schedule(delayMs: number, run: () => void): () => void {
    this.#alarmsMs.push(this.nowMs() + delayMs);
    return this.#clock.schedule(delayMs, run);
  }
  /** As `schedule`, and lets time pass until then. */
  wait(delayMs: number, run: () => void): () => void {
    let over = false;
    const cancel = this.schedule(delayMs, () => {
      over = true;
      run();
    });
    let seen = this.traffic;
    let quietTurns = 0;
    const look = (): void => {
      if (over) return;
      quietTurns = this.traffic === seen ? quietTurns + 1 : 0;
      seen = this.traffic;
      if (quietTurns >= QUIET_TURNS) {
        quietTurns = 0;
        this.#goOn();
      }
      setImmediate(look);
    };
    setImmediate(look);
    return () => {
      over = true;
      cancel();
    };
  }
  /** To the next moment at which an alarm was set; it may have been cancelled since. */
  #goOn(): void {
    const nextMs = Math.min(...this.#alarmsMs.filter((atMs) => atMs > this.nowMs()));
    this.#alarmsMs = this.#alarmsMs.filter((atMs) => atMs > nextMs);
    this.#clock.advance(nextMs - this.nowMs());
  }
}

class MemoryLine implements Line {
  readonly subprotocol = "";
  readonly #transport: MemoryTransport;
  readonly #clock: QuietClock;
  constructor(transport: MemoryTransport, clock: QuietClock) {
    this.#transport = transport;
    this.#clock = clock;
  }
  send(text: string): void {
    this.#clock.traffic += 1;
    this.#transport.client.send(text);
  }
  get texts(): AsyncIterable<string> {
    return this.#read();
  }
  async *#read(): AsyncGenerator<string> {
    const { client } = this.#transport;
    for (let index = 0; ; index++) {
      await client.until((texts) => texts.length > index);
      const text = client.texts[index];
      if (text === undefined) return;
      this.#clock.traffic += 1;
      yield text;
    }
  }
  async close(): Promise<void> {
    await this.#transport.close(1000, "");
  }
}

/** A session of ours per line, around an engine without models. It has no doors but `intent`. */
export function memoryServer(): { readonly target: Target; readonly clock: Clock } {
  const clock = new QuietClock();
  const connect = ({ query = {} }: Door = {}): Promise<Line> => {
    const transport = new MemoryTransport({ audioPath: "events", clock });
    const connection = new Connection({
      transport,
      engine: conversingEngine(),
      session: {
        type: query["intent"] === "transcription" ? "transcription" : "realtime",
        model: query["model"] ?? null,
      },
      clock,
      ids: countingIds(),
      log: silentLog,
    });
    void connection.run();
    return Promise.resolve(new MemoryLine(transport, clock));
  };
  const checkerClock: Clock = {
    nowMs: () => clock.nowMs(),
    unixSeconds: () => clock.unixSeconds(),
    schedule: (delayMs, run) => clock.wait(delayMs, run),
  };
  return { target: { hasKey: false, post: null, connect }, clock: checkerClock };
}

/** What a fault may do to one line. It is made anew for each, so it may remember. */
export interface Fault {
  /** What comes in place of an event of the server's. */
  readonly incoming?: (event: WireEvent) => readonly WireEvent[];
  /** What goes in place of an event of the checker's. `reply` answers in the server's place. */
  readonly outgoing?: (event: WireEvent, reply: (event: WireEvent) => void) => readonly WireEvent[];
  /** The server hangs up after this. */
  readonly endsAfter?: string;
  readonly subprotocol?: string;
}

export interface Mutation {
  readonly line?: () => Fault;
  readonly door?: (door: Door) => Door | Turned;
  readonly post?: (answer: Posted) => Posted;
}

/** `target` with a fault. */
export const faulty = (target: Target, mutation: Mutation): Target => {
  const { post } = target;
  return {
    hasKey: target.hasKey,
    post: post === null ? null : async (path, body) => (mutation.post ?? ((answer) => answer))(await post(path, body)),
    connect: async (door = {}) => {
      const entered = mutation.door === undefined ? door : mutation.door(door);
      if (isTurned(entered)) return entered;
      const line = await target.connect(entered);
      return isTurned(line) ? line : new FaultyLine(line, mutation.line?.() ?? {});
    },
  };
};

class FaultyLine implements Line {
  readonly texts: Queue<string> = new Queue(1_000_000);
  readonly #line: Line;
  readonly #fault: Fault;
  constructor(line: Line, fault: Fault) {
    this.#line = line;
    this.#fault = fault;
    void this.#read();
  }
  get subprotocol(): string {
    return this.#fault.subprotocol ?? this.#line.subprotocol;
  }
  send(text: string): void {
    const event = parse(text);
    const { outgoing } = this.#fault;
    if (event === null || outgoing === undefined) this.#line.send(text);
    else for (const other of outgoing(event, (reply) => this.#push(reply))) this.#line.send(JSON.stringify(other));
  }
  close(): Promise<void> {
    return this.#line.close();
  }
  async #read(): Promise<void> {
    for await (const text of this.#line.texts) {
      const event = JSON.parse(text) as WireEvent;
      for (const other of this.#fault.incoming?.(event) ?? [event]) this.#push(other);
      if (event.type === this.#fault.endsAfter) break;
    }
    this.texts.close();
  }
  #push(event: WireEvent): void {
    this.texts.push(JSON.stringify(event));
  }
}

function parse(text: string): WireEvent | null {
  try {
    const value = JSON.parse(text) as WireEvent;
    return typeof value.type === "string" ? value : null;
  } catch {
    return null;
  }
}
