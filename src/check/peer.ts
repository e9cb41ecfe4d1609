/**
 * The checker's side of one session: sends events under ids of its own, keeps everything that comes, and waits for what
 * should. Waiting goes forward only: what was waited for lies behind.
 */
import { bytesToBase64, floatToPcm16 } from "../audio/pcm.ts";
import type { Clock } from "../util/clock.ts";
import type { Line } from "./line.ts";
import { expect, Unmet } from "./unmet.ts";
import { textAt, typesOf, type WireEvent } from "./wire.ts";

export interface PeerSettings {
  readonly clock: Clock;
  /** How long nothing may come while something should. */
  readonly timeoutMs: number;
  /** How much faster than people speech is sent; 0 for as fast as it goes. */
  readonly pace: number;
}

/** Audio on its way to the server. */
export interface Speech {
  /** Mono f32 at `hz`. */
  readonly pcm: Float32Array;
  readonly hz: number;
  readonly encode: (pcm: Float32Array) => Uint8Array;
}

export const pcm16Speech = (pcm: Float32Array): Speech => ({ pcm, hz: 24_000, encode: floatToPcm16 });

const CHUNK_MS = 100;
/** How many of the last events a report names. */
const NAMED_EVENTS = 12;

export class Peer {
  readonly events: WireEvent[] = [];
  readonly #line: Line;
  readonly #settings: PeerSettings;
  #type = "realtime";
  #sentCount = 0;
  #seen = 0;
  #ended = false;
  #fault: Unmet | null = null;
  #wake: () => void = () => {};
  #sentMs = 0;

  constructor(line: Line, settings: PeerSettings) {
    this.#line = line;
    this.#settings = settings;
    void this.#read();
  }
  get subprotocol(): string {
    return this.#line.subprotocol;
  }
  /** Milliseconds of audio that were sent. */
  get sentMs(): number {
    return this.#sentMs;
  }
  /** Where the log stands: what comes later has a greater index. */
  get mark(): number {
    return this.events.length;
  }
  since(mark: number): readonly WireEvent[] {
    return this.events.slice(mark);
  }
  /** Of what has come since `mark`, the events of these types. */
  of(mark: number, ...types: readonly string[]): readonly WireEvent[] {
    return this.since(mark).filter((event) => types.includes(event.type));
  }

  /** @returns the id under which the event went. */
  send(event: { readonly type: string } & Readonly<Record<string, unknown>>): string {
    const event_id = `check_${++this.#sentCount}`;
    this.raw(JSON.stringify({ event_id, ...event }));
    return event_id;
  }
  raw(text: string): void {
    this.#line.send(text);
  }
  append(speech: Speech): void {
    const { pcm, hz, encode } = speech;
    this.#sentMs += (pcm.length * 1000) / hz;
    this.send({ type: "input_audio_buffer.append", audio: bytesToBase64(encode(pcm)) });
  }
  /** Says it in chunks, with silence before and after. */
  async say(speech: Speech, silence: { readonly beforeMs?: number; readonly afterMs?: number } = {}): Promise<void> {
    const { hz, encode } = speech;
    const { beforeMs = 0, afterMs = 0 } = silence;
    const before = Math.round((beforeMs * hz) / 1000);
    const whole = new Float32Array(before + speech.pcm.length + Math.round((afterMs * hz) / 1000));
    whole.set(speech.pcm, before);
    const chunkSamples = (CHUNK_MS * hz) / 1000;
    const startMs = this.#settings.clock.nowMs();
    for (let from = 0; from < whole.length; from += chunkSamples) {
      this.append({ pcm: whole.subarray(from, from + chunkSamples), hz, encode });
      if (this.#settings.pace > 0)
        await this.#until(startMs + ((from / chunkSamples + 1) * CHUNK_MS) / this.#settings.pace);
    }
  }

  /** The next event of this type that `where` takes. An error that nobody asked for ends the wait. @throws {Unmet} */
  next(type: string, where: (event: WireEvent) => boolean = () => true): Promise<WireEvent> {
    return this.#next(type, (event) => {
      if (event.type === type && where(event)) return true;
      if (event.type === "error")
        throw new Unmet(type, `error ${textAt(event, "error.code")}: ${textAt(event, "error.message")}`);
      return false;
    });
  }
  /** The next event of this type, errors or not. @throws {Unmet} */
  nextOf(types: readonly string[]): Promise<WireEvent> {
    return this.#next(types.join(" or "), (event) => types.includes(event.type));
  }
  /** The refusal of what was sent as `eventId`; of a frame without an id where that is null. @throws {Unmet} */
  async refusal(eventId: string | null): Promise<WireEvent> {
    const error = await this.#next(`an error event`, (event) => event.type === "error");
    const id = textAt(error, "error.event_id");
    expect(
      eventId === null || id === eventId,
      `an error whose event_id is that of the client's event (${eventId})`,
      id === "" ? "an error without event_id" : `event_id ${id}`,
    );
    const kind = textAt(error, "error.type");
    expect(kind === "invalid_request_error", "an error of type invalid_request_error", `type ${kind || "nothing"}`);
    expect(textAt(error, "error.message") !== "", "an error with a message", "an empty message");
    return error;
  }
  /** All that the server had to say so far has come: it answers in order. Shows too that the session is still open. */
  async fence(): Promise<WireEvent> {
    return await this.update({});
  }
  async update(session: object): Promise<WireEvent> {
    const { type = this.#type } = session as { readonly type?: string };
    this.#type = type;
    this.send({ type: "session.update", session: { ...session, type } });
    return await this.next("session.updated");
  }
  async close(): Promise<void> {
    await this.#line.close();
  }

  async #next(what: string, take: (event: WireEvent) => boolean): Promise<WireEvent> {
    const from = this.#seen;
    for (;;) {
      while (this.#seen < this.events.length) {
        const event = this.events[this.#seen++] as WireEvent;
        if (take(event)) return event;
      }
      if (this.#fault !== null) throw this.#fault;
      const passed = (): string => typesOf(this.events.slice(from).slice(-NAMED_EVENTS));
      if (this.#ended) throw new Unmet(what, `the end of the connection, after ${passed()}`);
      if (!(await this.#arrival())) {
        throw new Unmet(what, `nothing for ${this.#settings.timeoutMs} ms, after ${passed()}`);
      }
    }
  }
  /** True when something has come or the connection has ended, false when neither happened for as long as it may take. */
  #arrival(): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#settings.clock.schedule(this.#settings.timeoutMs, () => resolve(false));
      this.#wake = () => {
        cancel();
        resolve(true);
      };
    });
  }
  async #read(): Promise<void> {
    for await (const text of this.#line.texts) {
      const event = parse(text);
      if (event === null) this.#fault ??= new Unmet("events that are JSON objects with a type", "something else");
      else this.#take(event);
      this.#wake();
    }
    this.#ended = true;
    this.#wake();
  }
  #take(event: WireEvent): void {
    if (event.type === "session.created") this.#type = textAt(event, "session.type") || this.#type;
    this.events.push(event);
  }
  #until(atMs: number): Promise<void> {
    const { clock } = this.#settings;
    const waitMs = atMs - clock.nowMs();
    return waitMs <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.schedule(waitMs, resolve));
  }
}

function parse(text: string): WireEvent | null {
  try {
    const value = JSON.parse(text) as { readonly type?: unknown } | null;
    return typeof value?.type === "string" ? (value as WireEvent) : null;
  } catch {
    return null;
  }
}
