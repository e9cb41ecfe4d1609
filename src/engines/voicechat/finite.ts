import { allFinite } from "../../audio/pcm.ts";
import { EngineError } from "../../errors.ts";

/**
 * The numbers that a network gave, where they are numbers. Others come from damaged weights or a faulty provider, and
 * would become tokens and sound like any: the choices behind them always choose something.
 * @throws {EngineError}
 */
export function requireFinite(network: string, numbers: Float32Array): Float32Array {
  if (allFinite(numbers)) return numbers;
  throw new EngineError(
    "engine",
    `the ${network} gave numbers that are not finite; the checkpoint may be damaged (fetch it again), or the provider faulty (--provider cpu)`,
  );
}
