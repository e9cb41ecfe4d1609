/** The tiny checkpoints of test/fixtures/voicechat, and what the reference computes from them. */
import { readFileSync } from "node:fs";
import { Checkpoint } from "../../src/checkpoint/checkpoint.ts";
import { Weights } from "../../src/checkpoint/weights.ts";
import type { VoiceChatConfig } from "../../src/engines/voicechat/config.ts";
import { readConfig } from "../../src/engines/voicechat/config-schema.ts";
import { type GoldenTensor, readGolden } from "./golden.ts";

export const CHECKPOINTS = ["tiny-f32", "tiny-bf16", "tiny-4bit", "tiny-8bit"] as const;

/**
 * With other dimensions throughout: shared key heads, a window wider than the voice prompt, fewer codebooks, one mixture
 * layer, and a seed above 32 bits. It has no `networks.safetensors`.
 */
export const OTHER_CHECKPOINT = "other-8bit";

export const FIXTURES: string = new URL("../fixtures/voicechat", import.meta.url).pathname;

export const checkpointDirectory = (name: string): string => `${FIXTURES}/${name}/checkpoint`;

export interface VoiceChatFixture {
  readonly config: VoiceChatConfig;
  readonly weights: Weights;
  /** `networks.safetensors`. */
  readonly golden: Record<string, GoldenTensor>;
  close(): void;
}

export function openFixture(name: string): VoiceChatFixture {
  const checkpoint = Checkpoint.open(checkpointDirectory(name));
  return {
    config: readConfig(checkpointDirectory(name)),
    weights: Weights.of(checkpoint),
    golden: readGolden(`${FIXTURES}/${name}/reference/networks.safetensors`),
    close: () => checkpoint.close(),
  };
}

/** The ids of all tokens, added ones too. */
export function vocabularyOf(name: string): ReadonlyMap<string, number> {
  const json = JSON.parse(readFileSync(`${checkpointDirectory(name)}/tokenizer.json`, "utf8")) as TokenizerJson;
  return new Map([
    ...Object.entries(json.model.vocab),
    ...json.added_tokens.map(({ content, id }) => [content, id] as const),
  ]);
}

interface TokenizerJson {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  readonly added_tokens: readonly { readonly content: string; readonly id: number }[];
}
