/** The candidate that `word` was probably meant to be, or null if none is close enough to be worth suggesting. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  let best: { readonly candidate: string; readonly edits: number } | null = null;
  for (const candidate of candidates) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (best === null || edits < best.edits) best = { candidate, edits };
  }
  if (best === null) return null;
  const editsMax = Math.max(2, Math.floor(best.candidate.length / 2));
  return best.edits <= editsMax ? best.candidate : null;
}

/** ` Did you mean X?`, or nothing. */
export function suggestion(word: string, candidates: readonly string[], prefix = ""): string {
  const best = nearest(word, candidates);
  return best === null ? "" : ` Did you mean ${prefix}${best}?`;
}

/** Levenshtein: insertions, deletions and substitutions, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
