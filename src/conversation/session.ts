/**
 * One peer's conversation. The single writer: commands and engine events come in one at a time, each is finished before
 * the next, and nothing here awaits. Knows no socket, no wire name and no model.
 */

import type { EngineCapabilities, EngineEvent, EngineStream } from "../engines/engine.ts";
import { type AppError, ClientError } from "../errors.ts";
import type { Clock } from "../util/clock.ts";
import type { IdSource } from "../util/ids.ts";
import type { SessionCommand } from "./commands.ts";
import type { Emit } from "./events.ts";
import { type Item, Items } from "./items.ts";
import type { Line } from "./playback.ts";
import { hasImage, sightless } from "./request.ts";
import { Responder } from "./responder.ts";
import { engineSettings, mergeSettings, refuseChange, type SessionSettings } from "./settings.ts";
import { Turn } from "./turn.ts";

export interface SessionOptions {
  readonly capabilities: EngineCapabilities;
  readonly engine: Pick<EngineStream, "push" | "send" | "backlogSamples" | "transcribe">;
  readonly settings: SessionSettings;
  readonly line: Line;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly emit: Emit;
}

/** A client may not fill the memory with items; people cannot speak that many. */
const ITEMS_MAX = 10_000;

export class Session {
  readonly conversationId: string;
  readonly #options: SessionOptions;
  readonly #items: Items;
  readonly #turn: Turn;
  readonly #responder: Responder;
  #settings: SessionSettings;
  #hasAnswered = false;
  #stopIdleWatch: () => void = () => {};

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#items = new Items(options.ids);
    this.conversationId = options.ids("conv");
    const { capabilities, engine, line, clock, ids, emit } = options;
    const settings = () => this.#settings;
    this.#responder = new Responder({
      capabilities,
      engine,
      line,
      clock,
      ids,
      items: this.#items,
      conversationId: this.conversationId,
      settings,
      emit,
      userBusy: () => this.#turn.speaking || this.#turn.awaitsTranscript,
      awaitsTranscript: () => this.#turn.awaitsTranscript,
      onIdle: () => this.#watchIdle(),
      onBusy: () => this.#stopIdleWatch(),
    });
    const { inputHz } = capabilities;
    const listener = this.#responder;
    this.#turn = new Turn({ inputHz, engine, clock, ids, items: this.#items, settings, emit, listener });
  }
  get settings(): SessionSettings {
    return this.#settings;
  }
  /** The user speaks, an answer is owed or running, or can still be heard. */
  get busy(): boolean {
    return this.#responder.busy || this.#turn.speaking || this.#turn.awaitsTranscript;
  }
  item(id: string): Item | undefined {
    return this.#items.get(id);
  }
  start(): void {
    this.#options.emit({ type: "session.created", settings: this.#settings });
  }

  /** Does what is asked and returns null, or changes nothing and says why. */
  dispatch(command: SessionCommand): ClientError | null {
    switch (command.type) {
      case "session.update":
        return this.#update(command);
      case "input.append":
        this.#turn.append(command.pcm, command.ms);
        return null;
      case "input.commit":
        return this.#turn.commit();
      case "input.clear":
        return this.#turn.clear();
      case "output.clear":
        return this.#responder.clearOutput();
      case "item.create":
        return this.#createItem(command);
      case "item.retrieve":
        return this.#withItem(command.itemId, (item) => {
          this.#options.emit({ type: "item.retrieved", item });
          return null;
        });
      case "item.truncate":
        return this.#truncate(command);
      case "item.delete":
        return this.#deleteItem(command.itemId);
      case "response.create":
        this.#hasAnswered = true;
        return this.#responder.create(command.options);
      case "response.cancel":
        return this.#responder.cancel(command.responseId);
    }
  }
  /** The frames of a duplex model's own time line are not for this session. */
  handle(event: EngineEvent): void {
    if ("segmentId" in event) {
      this.#turn.handle(event);
    } else if ("responseId" in event) {
      this.#hasAnswered = true;
      this.#responder.handle(event);
    } else if (event.type === "failed") {
      this.fail(event.error);
    }
  }
  /** The engine is gone: running responses fail. */
  fail(error: AppError): void {
    this.#responder.failAll(error);
  }
  close(): void {
    this.#stopIdleWatch();
    this.#turn.close();
    this.#responder.close();
  }

  #update({ patch }: Extract<SessionCommand, { type: "session.update" }>): ClientError | null {
    const { capabilities, engine, emit } = this.#options;
    const next = mergeSettings(this.#settings, patch);
    const context = { capabilities, hasSpoken: this.#responder.hasSpoken, hasItems: this.#items.count > 0 };
    const refusal = refuseChange(this.#settings, next, context);
    if (refusal !== null) return refusal;
    try {
      engine.send({ type: "settings.set", settings: engineSettings(next) });
    } catch (error) {
      if (error instanceof ClientError) return error;
      throw error;
    }
    this.#settings = next;
    emit({ type: "session.updated", settings: next });
    if (!this.busy) this.#watchIdle();
    return null;
  }
  #createItem(command: Extract<SessionCommand, { type: "item.create" }>): ClientError | null {
    const { item, afterId, recording } = command;
    const { capabilities, emit, engine } = this.#options;
    if (this.#items.isTaken(item.id)) {
      return new ClientError("item_already_exists", `An item with the id '${item.id}' exists already.`, "item.id");
    }
    if (afterId !== null && afterId !== "root" && this.#items.get(afterId) === undefined) {
      const message = `No conversation item has the id '${afterId}'; the new item was not added.`;
      return new ClientError("item_not_found", message, "previous_item_id");
    }
    if (item.type === "result" && !this.#items.hasCall(item.callId)) {
      const message = `No function call in the conversation has the call_id '${item.callId}'.`;
      return new ClientError("item_not_found", message, "item.call_id");
    }
    if (!capabilities.acceptsImages && hasImage(item)) return sightless("item.content");
    if (recording !== null && engine.transcribe === undefined) {
      const message = "The engine behind this server reads no recordings; add 'transcript' to the audio.";
      return new ClientError("capability_missing", message, "item.content");
    }
    if (this.#items.count >= ITEMS_MAX) {
      return new ClientError("invalid_value", `The conversation has ${ITEMS_MAX} items; delete some first.`, "item");
    }
    this.#items.add(item, afterId === "root" ? null : (afterId ?? this.#items.lastId));
    const previousId = this.#items.previousId(item.id);
    emit({ type: "item.added", item, previousId, ofResponse: false });
    emit({ type: "item.done", item, previousId, ofResponse: false });
    if (recording !== null) this.#turn.read(item.id, recording);
    return null;
  }
  #deleteItem(itemId: string): ClientError | null {
    return this.#withItem(itemId, (item) => {
      if (item.status === "in_progress") {
        const message = `Item '${itemId}' is being written by a response; cancel that first.`;
        return new ClientError("invalid_value", message, "item_id");
      }
      this.#items.remove(itemId);
      this.#responder.forget(itemId);
      this.#options.emit({ type: "item.deleted", itemId });
      return null;
    });
  }
  /** Keeps what the client says was heard, up to what was sent; an earlier cut may be widened again. */
  #truncate(command: Extract<SessionCommand, { type: "item.truncate" }>): ClientError | null {
    const { itemId, contentIndex, audioEndMs } = command;
    return this.#withItem(itemId, (item) => {
      const spoken = this.#responder.spokenOf(itemId);
      const sentMs = Math.ceil(spoken?.ms ?? 0);
      const isSpeech = item.type === "message" && item.role === "assistant" && item.content[0]?.type === "speech";
      if (!isSpeech) {
        return new ClientError("invalid_truncation", `Item '${itemId}' has no speech of the assistant.`, "item_id");
      }
      if (contentIndex !== 0) {
        const message = `Item '${itemId}' has one content part, at index 0; got ${contentIndex}.`;
        return new ClientError("invalid_truncation", message, "content_index");
      }
      if (audioEndMs > sentMs) {
        const message = `Audio content of ${sentMs} ms is already shorter than ${audioEndMs} ms; nothing was changed.`;
        return new ClientError("invalid_truncation", message, "audio_end_ms");
      }
      this.#responder.truncate(item, audioEndMs);
      return null;
    });
  }
  #withItem(itemId: string, act: (item: Item) => ClientError | null): ClientError | null {
    const item = this.#items.get(itemId);
    if (item === undefined) {
      return new ClientError("item_not_found", `No conversation item has the id '${itemId}'.`, "item_id");
    }
    return act(item);
  }
  /** After an answer was heard and nobody says anything for `idle_timeout_ms`, the model speaks again. */
  #watchIdle(): void {
    this.#stopIdleWatch();
    const turn = this.#settings.turnDetection;
    if (turn.type !== "server_vad" || turn.idleTimeoutMs === null || !this.#hasAnswered) return;
    if (this.#settings.type !== "realtime") return;
    const startMs = this.#turn.peerMs;
    this.#stopIdleWatch = this.#options.clock.schedule(turn.idleTimeoutMs, () => {
      this.#turn.commitSilence(startMs);
      this.#responder.respondToSilence();
    });
  }
}
