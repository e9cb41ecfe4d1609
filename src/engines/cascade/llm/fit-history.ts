/** Keeps a conversation within the model's context: the oldest turns go first, the instructions and the last turn stay. */
import { EngineError } from "../../../errors.ts";
import type { Truncation } from "../../engine.ts";
import type { ChatMessage } from "./llm.ts";

export interface HistoryLimits {
  readonly tokensMax: number;
  readonly truncation: Truncation;
  readonly count: (messages: readonly ChatMessage[]) => number;
}

/** When something must go, this share is kept, so that the model's memory of the rest stays valid for some turns. */
const RETENTION_RATIO = 0.8;

/** @throws {EngineError} llm_failed when nothing may be dropped, or the last turn alone is too long */
export function fitHistory(messages: readonly ChatMessage[], limits: HistoryLimits): readonly ChatMessage[] {
  const { truncation, count } = limits;
  const chosen = typeof truncation === "object" ? truncation : null;
  const tokens = count(messages);
  if (tokens <= limits.tokensMax && chosen?.tokensMax == null) return messages;
  if (truncation === "disabled") throw tooLong(tokens, limits.tokensMax, "allow truncation");
  const lead = messages.slice(
    0,
    Math.max(
      0,
      messages.findIndex(({ role }) => role !== "system"),
    ),
  );
  // The session's own limit, and the ratio, are of what comes after the instructions.
  const leadTokens = count(lead);
  const tokensMax = Math.min(limits.tokensMax, leadTokens + (chosen?.tokensMax ?? Number.POSITIVE_INFINITY));
  if (tokens <= tokensMax) return messages;
  const goal = leadTokens + Math.max(0, tokensMax - leadTokens) * (chosen?.retentionRatio ?? RETENTION_RATIO);
  let kept = messages.slice(lead.length);
  for (;;) {
    const next = kept.findIndex(({ role }, i) => i > 0 && role === "user");
    const rest = next < 0 ? kept : kept.slice(next);
    const fitted = [...lead, ...rest];
    const size = count(fitted);
    if (size <= goal || (next < 0 && size <= tokensMax)) return fitted;
    if (next < 0) throw tooLong(size, tokensMax, "shorten the instructions or the last message");
    kept = rest;
  }
}

function tooLong(tokens: number, tokensMax: number, remedy: string): EngineError {
  const message = `The conversation has ${tokens} tokens and the model takes ${tokensMax}; ${remedy}.`;
  return new EngineError("llm", message, { details: { tokens, tokensMax } });
}
