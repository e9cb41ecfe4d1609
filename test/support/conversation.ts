/** A session with a scripted engine on a manual clock, spoken to in OpenAI's words and without a connection. */
import { EstimatedLine, type Line } from "../../src/conversation/playback.ts";
import { Session } from "../../src/conversation/session.ts";
import { defaultSettings, engineSettings, type SessionSettings } from "../../src/conversation/settings.ts";
import { OpenAIDialect } from "../../src/dialects/openai.ts";
import type { EngineCapabilities } from "../../src/engines/engine.ts";
import type { ServerEvent, ServerEventType } from "../../src/protocol/openai/server-events.ts";
import { ManualClock } from "../../src/util/clock.ts";
import { countingIds } from "../../src/util/ids.ts";
import { CAPABILITIES, ScriptedStream } from "./scripted-engine.ts";

export interface ConversationOptions {
  readonly audioPath?: "events" | "track";
  readonly capabilities?: Partial<EngineCapabilities>;
  readonly type?: "realtime" | "transcription";
}

/** A track that plays in the clock's time. */
class TrackLine implements Line {
  readonly canPause = true;
  readonly #estimated: EstimatedLine;
  clearCount = 0;
  constructor(clock: ManualClock) {
    this.#estimated = new EstimatedLine(clock);
  }
  get unplayedMs(): number {
    return this.#estimated.unplayedMs;
  }
  sent(ms: number): void {
    this.#estimated.sent(ms);
  }
  clear(): void {
    this.clearCount += 1;
    this.#estimated.clear();
  }
}

/** The members of the union that may have the type `T`. */
type Having<E, T> = E extends { readonly type: infer U } ? (T extends U ? E & { readonly type: T } : never) : never;
export type EventOf<T extends ServerEventType> = Having<ServerEvent, T>;

export class Conversation {
  readonly clock: ManualClock = new ManualClock();
  readonly engine: ScriptedStream;
  readonly events: ServerEvent[] = [];
  /** Milliseconds of audio that went onto the track. */
  trackMs = 0;
  readonly #session: Session;
  readonly #dialect: OpenAIDialect;

  constructor(options: ConversationOptions = {}) {
    const { audioPath = "events", type = "realtime" } = options;
    const capabilities = { ...CAPABILITIES, ...options.capabilities };
    const settings = defaultSettings(type, capabilities);
    const ids = countingIds();
    this.engine = new ScriptedStream(engineSettings(settings));
    const line = audioPath === "track" ? new TrackLine(this.clock) : new EstimatedLine(this.clock);
    this.#session = new Session({
      capabilities,
      engine: this.engine,
      settings,
      line,
      clock: this.clock,
      ids,
      emit: (event) => {
        for (const output of this.#dialect.encode(event)) {
          if (output.type === "audio") this.trackMs += (output.pcm.length * 1000) / output.hz;
          else this.events.push(JSON.parse(output.text) as ServerEvent);
        }
      },
    });
    this.#dialect = new OpenAIDialect({
      capabilities,
      audioPath,
      ids,
      settings: () => this.#session.settings,
      sessionId: "sess_1",
      conversationId: () => this.#session.conversationId,
      expiresAtSeconds: null,
    });
    this.engine.deliver = (event) => this.#session.handle(event);
    this.#session.start();
  }
  get settings(): SessionSettings {
    return this.#session.settings;
  }
  get pendingAlarms(): number {
    return this.clock.pendingCount;
  }
  /** Sends a client event and returns what came of it. */
  send(event: object | string): ServerEvent[] {
    const before = this.events.length;
    const decoded = this.#dialect.decode(typeof event === "string" ? event : JSON.stringify(event), "peer");
    const refusal = "refusal" in decoded ? decoded.refusal : this.#session.dispatch(decoded.command);
    if (refusal !== null)
      this.events.push(JSON.parse(this.#dialect.encodeError(refusal, decoded.eventId)) as ServerEvent);
    return this.events.slice(before);
  }
  /** `ms` of silence from the microphone, in the session's format, while the clock stands still. */
  append(ms: number): ServerEvent[] {
    const { hz, encoding } = this.settings.inputFormat;
    const bytes = Math.round((ms * hz) / 1000) * (encoding === "pcm16" ? 2 : 1);
    return this.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(bytes).toString("base64") });
  }
  /** `ms` of silence on the media track. */
  appendTrack(ms: number): void {
    this.#session.dispatch(this.#dialect.decodeAudio(new Float32Array(ms * 48), 48_000));
  }
  /** Sends `ms` of silence in real time. */
  listen(ms: number): void {
    for (let sentMs = 0; sentMs < ms; sentMs += 20) {
      this.append(20);
      this.clock.advance(20);
    }
  }
  /** Runs `act` and returns the types of the events that it caused. */
  during(act: () => void): ServerEventType[] {
    const before = this.events.length;
    act();
    return this.events.slice(before).map((event) => event.type);
  }
  of<T extends ServerEventType>(type: T): EventOf<T>[] {
    return this.events.filter((event) => event.type === type) as EventOf<T>[];
  }
  last<T extends ServerEventType>(type: T): EventOf<T> {
    return this.of(type).at(-1) as EventOf<T>;
  }
  get types(): ServerEventType[] {
    return this.events.map((event) => event.type);
  }
  get lastError(): EventOf<"error">["error"] {
    return this.last("error").error;
  }
  close(): void {
    this.#session.close();
  }
}
