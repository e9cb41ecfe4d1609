/** How long each stage of a turn's answer took, in milliseconds from the end of the user's speech. */
import type { SessionEvent } from "../conversation/events.ts";
import type { Clock } from "../util/clock.ts";

export type TurnStage = "transcript" | "first_token" | "first_audio" | "done";
export type TurnLatency = Readonly<Partial<Record<TurnStage, number>>>;

export interface FinishedTurn {
  readonly responseId: string;
  readonly status: string;
  readonly latencyMs: TurnLatency;
}

export class LatencyWatch {
  readonly #clock: Clock;
  #stoppedMs: number | null = null;
  #responseId: string | null = null;
  #marks: Partial<Record<TurnStage, number>> = {};
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  /** Call with every event as it leaves. Returns a turn when its answer is done. */
  see(event: SessionEvent): FinishedTurn | null {
    switch (event.type) {
      // At the end of the speech that a detector found, or at the client's commit.
      case "input.committed":
        this.#stoppedMs = this.#clock.nowMs();
        this.#responseId = null;
        this.#marks = {};
        return null;
      case "transcript.completed":
        this.#mark("transcript");
        return null;
      case "response.created":
        if (this.#stoppedMs !== null) this.#responseId ??= event.response.id;
        return null;
      case "text.delta":
      case "speech.audio":
        if (event.responseId !== this.#responseId) return null;
        this.#mark("first_token");
        if (event.type === "speech.audio") this.#mark("first_audio");
        return null;
      case "response.done":
        return event.response.id === this.#responseId ? this.#finish(event.response.id, event.response.status) : null;
      default:
        return null;
    }
  }
  firstToken(responseId: string): void {
    if (responseId === this.#responseId) this.#mark("first_token");
  }
  #mark(stage: TurnStage): void {
    if (this.#stoppedMs !== null) this.#marks[stage] ??= Math.round(this.#clock.nowMs() - this.#stoppedMs);
  }
  #finish(responseId: string, status: string): FinishedTurn {
    this.#mark("done");
    const latencyMs = this.#marks;
    this.#stoppedMs = null;
    this.#responseId = null;
    this.#marks = {};
    return { responseId, status, latencyMs };
  }
}
