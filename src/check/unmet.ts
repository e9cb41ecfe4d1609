/** How a run of a requirement ends otherwise than well. */

/** The server did something else. Both are sentences for people. */
export class Unmet extends Error {
  override readonly name = "Unmet";
  readonly expected: string;
  readonly came: string;
  constructor(expected: string, came: string) {
    super(`expected ${expected}; came ${came}`);
    this.expected = expected;
    this.came = came;
  }
}

/** It cannot be told on this server, or by this way. */
export class Skipped extends Error {
  override readonly name = "Skipped";
}

/** @throws {Unmet} unless `holds`. */
export function expect(holds: boolean, expected: string, came: string): asserts holds {
  if (!holds) throw new Unmet(expected, came);
}
