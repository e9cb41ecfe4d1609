/** A rule of `speakable`: what matches is said so. Rules run in order, and none makes digits or signs for a later one. */
export type Rewrite = readonly [pattern: RegExp, say: string | ((...groups: string[]) => string)];

export function rewrite(text: string, rules: readonly Rewrite[]): string {
  let result = text;
  for (const [pattern, say] of rules) {
    result = typeof say === "string" ? result.replace(pattern, say) : result.replace(pattern, say);
  }
  return result;
}
