/** A broken assertion is a fault of ours: the session closes with 1011, the process goes on. */
export class AssertionFault extends Error {
  override readonly name = "AssertionFault";
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFault(message);
}

/** Closes a switch over a union: a new member fails to compile here. */
export function unreachable(value: never): never {
  throw new AssertionFault(`unreachable value ${JSON.stringify(value)}`);
}
