/** What the engine is told of one response: a snapshot, which nobody changes later. */

import type { ConversationItem, EngineCapabilities, ResponseRequest } from "../engines/engine.ts";
import { ClientError } from "../errors.ts";
import type { ResponseOptions } from "./commands.ts";
import { type Item, type Items, toEngineItem } from "./items.ts";
import { refuseTools, responseWishes, type SessionSettings } from "./settings.ts";

const CONTINUE = "Your last answer was cut off by a noise, not by the user. Continue it from where it stopped.";

export function requestOf(
  responseId: string,
  items: readonly ConversationItem[],
  settings: SessionSettings,
  continues: boolean,
): ResponseRequest {
  const wishes = responseWishes(settings);
  const instructions = continues ? `${wishes.instructions}\n\n${CONTINUE}`.trim() : wishes.instructions;
  return { ...wishes, responseId, items, instructions };
}

/** The conversation, or the response's own input with its references looked up. */
export function inputOf(options: ResponseOptions, items: Items): ConversationItem[] {
  if (options.input === null) return items.snapshot();
  return options.input.flatMap((entry) => {
    const item = entry.type === "item" ? entry.item : items.get(entry.id);
    return item === undefined ? [] : (toEngineItem(item) ?? []);
  });
}

/** Null where the session can make such a response. `settings` are its own, overrides included. */
export function refuseResponse(
  options: ResponseOptions,
  settings: SessionSettings,
  { capabilities, items }: { readonly capabilities: EngineCapabilities; readonly items: Items },
): ClientError | null {
  if (settings.type === "transcription") {
    const message = "A transcription session makes no responses; open a realtime session.";
    return new ClientError("invalid_session_type", message);
  }
  if (capabilities.turnTaking === "model") {
    return new ClientError("capability_missing", "The model behind this server decides itself when it speaks.");
  }
  return refuseInput(options, items, capabilities) ?? refuseTools(settings, capabilities, "response");
}

/** Null where every reference names an item, and the model sees what there is to see. */
function refuseInput(
  options: ResponseOptions,
  items: Items,
  { acceptsImages }: EngineCapabilities,
): ClientError | null {
  for (const [index, entry] of (options.input ?? []).entries()) {
    if (entry.type === "item") {
      if (!acceptsImages && hasImage(entry.item)) return sightless(`response.input[${index}].content`);
      continue;
    }
    if (items.get(entry.id) !== undefined) continue;
    const message = `No conversation item has the id '${entry.id}'.`;
    return new ClientError("item_not_found", message, `response.input[${index}].id`);
  }
  return null;
}

export const hasImage = (item: Item): boolean =>
  item.type === "message" && item.content.some((part) => part.type === "image");

export const sightless = (param: string): ClientError =>
  new ClientError("capability_missing", "The language model behind this server sees no images.", param);
