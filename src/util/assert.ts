/** A broken assertion is a fault of ours: the session closes with 1011, the process goes on. */
class AssertionFault extends Error {
  override readonly name = "AssertionFault";
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFault(message);
}
