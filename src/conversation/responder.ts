/**
 * Who answers, and when. At most one response writes to the conversation at a time; out-of-band ones run beside it.
 *
 * An answer that is owed waits until nobody speaks, no transcript is pending and no response runs; then it starts. So a
 * user who goes on speaking gets one answer, a noise that broke an answer off gets that answer again, and speech during
 * an answer that may not be interrupted is answered after it.
 *
 * Speech over an audible answer: where the server plays (a media track), the line falls silent at once and what was not
 * heard is kept; words, or more than a moment's speech, break the answer off for good, and a noise or a "mm-hmm" lets
 * it go on where it was. Where the client plays, the answer is broken off at once, and after a noise it is continued by
 * a new response.
 */

import type { EngineCapabilities, EngineEvent, EngineStream } from "../engines/engine.ts";
import { AppError, ClientError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import { isBackchannel } from "./backchannel.ts";
import { PLAIN_RESPONSE, type ResponseOptions } from "./commands.ts";
import type { CancelCause, Emit } from "./events.ts";
import type { Items, MessageItem } from "./items.ts";
import { type Cut, type Line, Playback } from "./playback.ts";
import { inputOf, refuseResponse, requestOf } from "./request.ts";
import { heardItem, Response, wholeItem } from "./response.ts";
import { createsResponse, interruptsResponse, type SessionSettings } from "./settings.ts";
import type { SpokenText } from "./spoken.ts";
import type { TurnListener, TurnOutcome } from "./turn.ts";

export interface ResponderContext {
  readonly capabilities: EngineCapabilities;
  readonly engine: Pick<EngineStream, "send">;
  readonly line: Line;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly items: Items;
  readonly conversationId: string;
  readonly settings: () => SessionSettings;
  readonly emit: Emit;
  /** The user speaks, or what was said is not known yet. */
  readonly userBusy: () => boolean;
  /** A segment has ended whose words are not known yet. */
  readonly awaitsTranscript: () => boolean;
  /** Nobody speaks, nothing is owed, nothing is audible; called when that begins. */
  readonly onIdle: () => void;
  readonly onBusy: () => void;
}

interface Owed {
  readonly options: ResponseOptions;
  /** A part of the answer was heard before something that was not speech broke it off. */
  readonly continues: boolean;
  /** Owed by the user's words or silence, by a break, or because the client asked for it while a response still ran. */
  readonly by: "user" | "break" | "client";
}

const OUT_OF_BAND_MAX = 16;
/** Noises in a row, without a word between them, after which a broken-off answer is let go. */
const REPEATS_MAX = 3;
/** With less than this left to hear, a short word is an answer rather than a sign of listening. */
const BACKCHANNEL_UNHEARD_MS_MIN = 1500;
/** Less than this unheard is nothing that a listener misses. */
const UNHEARD_MS_MIN = 300;

export class Responder implements TurnListener {
  readonly #context: ResponderContext;
  readonly #playback: Playback;
  #active: Response | null = null;
  readonly #beside = new Map<string, Response>();
  readonly #spoken = new Map<string, SpokenText>();
  #owed: Owed | null = null;
  #repeats = 0;
  #hasSpoken = false;
  /** Created, and not yet given to the engine: the words that they answer are not known yet. */
  readonly #unlaunched = new Map<string, () => void>();
  /** The response that was last heard, and whether its end was told. */
  #audibleId: string | null = null;
  #isAudibleTold = false;

  constructor(context: ResponderContext) {
    this.#context = context;
    this.#playback = new Playback({
      line: context.line,
      clock: context.clock,
      send: (chunk) => {
        const { responseId, itemId, pcm, hz } = chunk;
        const place = this.#find(responseId)?.placeOf(itemId) ?? { responseId, itemId, outputIndex: 0 };
        context.emit({ type: "speech.audio", ...place, pcm, hz });
      },
      onAudible: (responseId) => this.#audible(responseId),
      onSilent: (responseId) => this.#silent(responseId),
    });
  }
  /** The assistant's voice has been sent at least once. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }
  get activeId(): string | null {
    return this.#active?.id ?? null;
  }
  /** A response runs, is owed, or can still be heard. */
  get busy(): boolean {
    return this.#active !== null || this.#beside.size > 0 || this.#owed !== null || this.#playback.audible;
  }
  spokenOf(itemId: string): SpokenText | undefined {
    return this.#active?.spokenOf(itemId) ?? this.#spoken.get(itemId);
  }
  forget(itemId: string): void {
    this.#spoken.delete(itemId);
    this.#playback.forget(itemId);
  }

  // -------------------------------------------------------------------------------------------------- from the peer

  create(options: ResponseOptions): ClientError | null {
    const isBeside = options.conversation === "none";
    if (!isBeside && this.#active !== null) {
      if (this.#owed?.by !== "client" && this.#hasResult(this.#active)) return this.#queue(options);
      const message = `Response ${this.#active.id} is still in progress in this conversation; wait for its response.done, cancel it, or set conversation to 'none'.`;
      return new ClientError("conversation_already_has_active_response", message);
    }
    if (this.#beside.size >= OUT_OF_BAND_MAX && isBeside) {
      const message = `${OUT_OF_BAND_MAX} out-of-band responses are running; wait for one to be done.`;
      return new ClientError("conversation_already_has_active_response", message);
    }
    return this.#start(options, false);
  }
  cancel(responseId: string | null): ClientError | null {
    if (responseId === null && this.#active === null) {
      return new ClientError("response_cancel_not_active", "No response is in progress in this conversation.");
    }
    const response = responseId === null ? this.#active : this.#find(responseId);
    if (response === null || response === undefined) {
      return new ClientError("response_not_found", `No running response has the id '${responseId}'.`, "response_id");
    }
    if (response === this.#active) {
      this.#breakOff("client_cancelled");
      this.#owed = null;
      this.#settle();
      return null;
    }
    this.#beside.delete(response.id);
    this.#recall(response);
    response.cancel("client_cancelled", [], () => {});
    this.#settle();
    return null;
  }
  /** Drops what has not been played, and the rest of the response that makes it. */
  clearOutput(): ClientError | null {
    const { emit } = this.#context;
    if (this.#audibleId === null) {
      return new ClientError("response_not_found", "Nothing has been played yet; there is no output audio to clear.");
    }
    const wasTold = this.#isAudibleTold;
    this.#breakOff("client_cancelled");
    this.#owed = null;
    if (!wasTold) emit({ type: "playback.cleared", responseId: this.#audibleId });
    this.#settle();
    return null;
  }
  /** Keeps of an item what its first `audioEndMs` say. At its very end nothing is lost, and it is no interruption. */
  truncate(item: MessageItem, audioEndMs: number): void {
    if (this.#active?.truncate(item.id, audioEndMs) !== true) {
      const spoken = this.#spoken.get(item.id);
      const isWhole = spoken?.isWhole(audioEndMs) === true;
      this.#context.items.set(
        isWhole ? wholeItem(item, spoken.text) : heardItem(item, spoken?.heard(audioEndMs) ?? ""),
      );
    }
    this.#context.emit({ type: "item.truncated", itemId: item.id, contentIndex: 0, audioEndMs });
  }
  /** The user has been silent for long: the model may say something of its own accord. */
  respondToSilence(): void {
    this.#owed = { options: PLAIN_RESPONSE, continues: false, by: "user" };
    this.#settle();
  }

  // -------------------------------------------------------------------------------------------------- from the user

  speechStarted(): void {
    this.#context.onBusy();
    if (!interruptsResponse(this.#context.settings()) || this.#playback.paused) return;
    if (this.#playback.audible && this.#playback.canPause) this.#playback.pause();
    else this.#breakOff("turn_detected");
  }
  speechConfirmed(text: string): void {
    if (this.#playback.paused && !this.#isBackchannel(text)) this.#breakOff("turn_detected");
  }
  speechEnded(outcome: TurnOutcome): void {
    const isTurn = outcome.type === "words" && !(this.#playback.paused && this.#isBackchannel(outcome.text));
    if (this.#playback.paused) {
      if (isTurn) this.#breakOff("turn_detected");
      else this.#playback.resume();
    }
    if (isTurn) {
      // A response that still waits for these words answers them.
      const isWaiting = this.#active !== null && this.#unlaunched.has(this.#active.id);
      const answers = createsResponse(this.#context.settings()) && !isWaiting;
      if (this.#owed?.by !== "client") {
        this.#owed = answers ? { options: PLAIN_RESPONSE, continues: false, by: "user" } : null;
      }
      this.#repeats = 0;
    }
    this.#settle();
  }
  recordingRead(): void {
    this.#settle();
  }
  #isBackchannel(text: string): boolean {
    return isBackchannel(text) && (this.#active !== null || this.#playback.unheardMs >= BACKCHANNEL_UNHEARD_MS_MIN);
  }

  // ------------------------------------------------------------------------------------------------- from the engine

  handle(event: Extract<EngineEvent, { readonly responseId: string }>): void {
    const response = this.#find(event.responseId);
    if (response === undefined) return;
    switch (event.type) {
      case "response.text":
        response.text(event.delta);
        return;
      case "response.speech":
        this.#hasSpoken ||= event.pcm.length > 0;
        response.speech(event.text, event.pcm, event.hz);
        return;
      case "tool.started":
      case "tool.delta":
      case "tool.completed":
        response.tool(event);
        return;
      case "response.ended":
        this.#keepSpoken(response);
        this.#remove(response);
        response.end(event);
        if (!this.#playback.audible) this.#tellStopped();
        this.#settle();
        return;
      case "response.mark":
        return;
    }
  }
  /** Every running response fails; what was sent of them stays. */
  failAll(error: AppError): void {
    for (const response of [this.#active, ...this.#beside.values()]) {
      if (response === null) continue;
      this.#keepSpoken(response);
      this.#remove(response);
      response.fail(error);
    }
    this.#unlaunched.clear();
    this.#owed = null;
  }
  close(): void {
    this.#playback.close();
  }

  // -------------------------------------------------------------------------------------------------------- inside

  #find(responseId: string): Response | undefined {
    return this.#active?.id === responseId ? this.#active : this.#beside.get(responseId);
  }
  #remove(response: Response): void {
    if (response === this.#active) this.#active = null;
    this.#beside.delete(response.id);
  }
  #keepSpoken(response: Response): void {
    for (const item of response.view.output) {
      const spoken = response.spokenOf(item.id);
      if (spoken !== undefined && this.#context.items.get(item.id) !== undefined) this.#spoken.set(item.id, spoken);
    }
  }
  /**
   * Many clients send a function's result, and ask for the next response, as soon as the function returns. The response
   * that called it may still be speaking what stands before the call: then the next one follows it.
   */
  #hasResult(response: Response): boolean {
    const { items } = this.#context;
    return response.view.output.some((item) => item.type === "call" && items.hasResult(item.callId));
  }
  #queue(options: ResponseOptions): ClientError | null {
    const refusal = refuseResponse(options, this.#settingsOf(options), this.#context);
    if (refusal === null) this.#owed = { options, continues: false, by: "client" };
    return refusal;
  }
  /** Starts what is owed, and what waits for a transcript, when its time has come. */
  #settle(): void {
    if (!this.#context.awaitsTranscript()) {
      const launches = [...this.#unlaunched.values()];
      this.#unlaunched.clear();
      for (const launch of launches) launch();
    }
    const owed = this.#owed;
    if (owed !== null && this.#active === null && !this.#playback.paused && !this.#context.userBusy()) {
      this.#owed = null;
      if (owed.by === "break") this.#repeats += 1;
      const refusal = this.#repeats > REPEATS_MAX ? null : this.#start(owed.options, owed.continues);
      if (refusal !== null) this.#context.emit({ type: "error", error: refusal });
    }
    if (!this.busy && !this.#context.userBusy()) this.#context.onIdle();
  }
  #settingsOf(options: ResponseOptions): SessionSettings {
    return { ...this.#context.settings(), ...options.overrides };
  }
  #start(options: ResponseOptions, continues: boolean): ClientError | null {
    const { ids, items, conversationId, emit } = this.#context;
    const settings = this.#settingsOf(options);
    const refusal = refuseResponse(options, settings, this.#context);
    if (refusal !== null) return refusal;
    const id = ids("resp");
    const isBeside = options.conversation === "none";
    const play = this.#playback.play.bind(this.#playback);
    const response = new Response({
      id,
      conversationId: isBeside ? null : conversationId,
      items,
      settings,
      options,
      emit,
      play,
    });
    if (isBeside) this.#beside.set(id, response);
    else {
      this.#active = response;
      this.#owed = null;
    }
    this.#context.onBusy();
    emit({ type: "response.created", response: response.view });
    const launch = () => this.#launch(response, settings, continues);
    if (this.#context.awaitsTranscript()) this.#unlaunched.set(id, launch);
    else launch();
    return null;
  }
  #launch(response: Response, settings: SessionSettings, continues: boolean): void {
    const input = inputOf(response.options, this.#context.items);
    try {
      this.#context.engine.send({ type: "respond", request: requestOf(response.id, input, settings, continues) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#remove(response);
      response.fail(error);
    }
  }
  /** Nothing of the response will come from the engine any more. */
  #recall(response: Response): void {
    const isUnlaunched = this.#unlaunched.delete(response.id);
    if (!isUnlaunched) this.#context.engine.send({ type: "cancel", responseId: response.id });
  }
  /** Ends what is being said: the active response, and what is still on its way to the user. */
  #breakOff(cause: CancelCause): void {
    const active = this.#active;
    if (active === null && !this.#playback.audible) return;
    const { unheardMs } = this.#playback;
    const cuts = this.#playback.cut();
    if (this.#owed?.by !== "client") {
      if (active !== null) this.#owed = { options: active.options, continues: active.hasOutput, by: "break" };
      else if (unheardMs >= UNHEARD_MS_MIN) this.#owed = { options: PLAIN_RESPONSE, continues: true, by: "break" };
    }
    if (active !== null) {
      const isOwn = (cut: Cut): boolean => cut.responseId === active.id;
      this.#active = null;
      this.#recall(active);
      active.cancel(cause, cuts.filter(isOwn), () => this.#tellCuts(cuts.filter(isOwn)));
      this.#keepSpoken(active);
      this.#applyCuts(cuts.filter((cut) => !isOwn(cut)));
    } else this.#applyCuts(cuts);
    if (!this.#isAudibleTold) return;
    this.#isAudibleTold = false;
    this.#context.engine.send({ type: "playback", audible: false });
    this.#context.emit({ type: "playback.cleared", responseId: this.#audibleId ?? "" });
  }
  #applyCuts(cuts: readonly Cut[]): void {
    const { items } = this.#context;
    for (const { itemId, heardMs } of cuts) {
      const item = items.get(itemId);
      const spoken = this.#spoken.get(itemId);
      if (item?.type === "message" && spoken !== undefined) items.set(heardItem(item, spoken.heard(heardMs)));
    }
    this.#tellCuts(cuts);
  }
  #tellCuts(cuts: readonly Cut[]): void {
    for (const { itemId, heardMs } of cuts) {
      if (this.#context.items.get(itemId) === undefined) continue;
      this.#context.emit({ type: "item.truncated", itemId, contentIndex: 0, audioEndMs: Math.round(heardMs) });
    }
  }
  #audible(responseId: string): void {
    if (this.#audibleId !== responseId) this.#tellStopped();
    this.#audibleId = responseId;
    this.#context.engine.send({ type: "playback", audible: true });
    if (this.#isAudibleTold) return;
    this.#isAudibleTold = true;
    this.#context.emit({ type: "playback.started", responseId });
  }
  /** The line has run dry. A response that still runs may only be slow. */
  #silent(responseId: string): void {
    this.#context.engine.send({ type: "playback", audible: false });
    if (this.#find(responseId) === undefined) this.#tellStopped();
    this.#settle();
  }
  #tellStopped(): void {
    if (!this.#isAudibleTold || this.#audibleId === null) return;
    this.#isAudibleTold = false;
    this.#context.emit({ type: "playback.stopped", responseId: this.#audibleId });
  }
}
