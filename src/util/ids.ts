import { randomBytes } from "node:crypto";

/** Makes ids such as `item_3f…`: a prefix and hex digits. Injected, so that tests can count instead. */
export type IdSource = (prefix: string) => string;

/** 16 hex digits, as OpenAI-style ids have at least. */
export const randomId: IdSource = (prefix) => `${prefix}_${randomBytes(8).toString("hex")}`;

/** `item_1`, `item_2`, `resp_1`…: one counter per prefix. */
export function countingIds(): IdSource {
  const counts = new Map<string, number>();
  return (prefix) => {
    const count = (counts.get(prefix) ?? 0) + 1;
    counts.set(prefix, count);
    return `${prefix}_${count}`;
  };
}
