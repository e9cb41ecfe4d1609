/** What a peer may ask of a session. Each is done at once or refused; nothing waits. */
import type { Item } from "./items.ts";
import type { ResponseOverrides, SettingsPatch } from "./settings.ts";

export type InputEntry =
  | { readonly type: "item"; readonly item: Item }
  | { readonly type: "reference"; readonly id: string };

export interface ResponseOptions {
  /** `none` writes nothing to the conversation, and may run beside another response. */
  readonly conversation: "default" | "none";
  /** What the model sees instead of the conversation; null for the conversation. */
  readonly input: readonly InputEntry[] | null;
  readonly overrides: ResponseOverrides;
  readonly metadata: Readonly<Record<string, string>> | null;
}

/** A response as the session itself starts one after a turn. */
export const PLAIN_RESPONSE: ResponseOptions = { conversation: "default", input: null, overrides: {}, metadata: null };

export type SessionCommand =
  | { readonly type: "session.update"; readonly patch: SettingsPatch }
  /** Mono f32 at the engine's input rate. `ms` is its length as the peer sent it, before any resampling. */
  | { readonly type: "input.append"; readonly pcm: Float32Array; readonly ms: number }
  | { readonly type: "input.commit" }
  | { readonly type: "input.clear" }
  | { readonly type: "output.clear" }
  /**
   * `afterId` null: at the end. `root`: first. `recording` is the user's speech in the item, mono f32 at the engine's
   * input rate, where the peer did not say what it says.
   */
  | {
      readonly type: "item.create";
      readonly item: Item;
      readonly afterId: string | null;
      readonly recording: Float32Array | null;
    }
  | { readonly type: "item.retrieve"; readonly itemId: string }
  | {
      readonly type: "item.truncate";
      readonly itemId: string;
      readonly contentIndex: number;
      readonly audioEndMs: number;
    }
  | { readonly type: "item.delete"; readonly itemId: string }
  | { readonly type: "response.create"; readonly options: ResponseOptions }
  | { readonly type: "response.cancel"; readonly responseId: string | null };
