/** What was said against what was understood. */
import { speakable } from "../../src/text/speakable.ts";
import { words } from "../../src/text/words.ts";

export interface WordErrors {
  readonly substitutions: number;
  readonly deletions: number;
  readonly insertions: number;
  /** Words of the reference. */
  readonly words: number;
  readonly errors: number;
  /** All errors per word of the reference; above 1 where more was added than there was. 0 if both are empty. */
  readonly rate: number;
}

/** Compares as spoken: "25 km" and "twenty-five kilometers" are the same. */
export function wordErrors(reference: string, hypothesis: string): WordErrors {
  const wanted = words(speakable(reference));
  const got = words(speakable(hypothesis));
  let row: Alignment[] = got.map((_, i) => ({ substitutions: 0, deletions: 0, insertions: i + 1 }));
  row.unshift({ substitutions: 0, deletions: 0, insertions: 0 });
  for (const word of wanted) {
    const next: Alignment[] = [{ ...row[0]!, deletions: row[0]!.deletions + 1 }];
    for (const [i, other] of got.entries()) {
      const diagonal = row[i]!;
      const matched = word === other ? diagonal : { ...diagonal, substitutions: diagonal.substitutions + 1 };
      const deleted = { ...row[i + 1]!, deletions: row[i + 1]!.deletions + 1 };
      const inserted = { ...next[i]!, insertions: next[i]!.insertions + 1 };
      next.push([matched, deleted, inserted].reduce((best, one) => (errorsOf(one) < errorsOf(best) ? one : best)));
    }
    row = next;
  }
  const best = row.at(-1)!;
  const errors = errorsOf(best);
  return {
    ...best,
    errors,
    words: wanted.length,
    rate: wanted.length === 0 ? (errors > 0 ? 1 : 0) : errors / wanted.length,
  };
}

interface Alignment {
  readonly substitutions: number;
  readonly deletions: number;
  readonly insertions: number;
}

function errorsOf(alignment: Alignment): number {
  return alignment.substitutions + alignment.deletions + alignment.insertions;
}
