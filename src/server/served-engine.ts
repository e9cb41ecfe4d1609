/** An engine as its clients see it: under all its names, and with the server's own voice before the others. */
import type { Config } from "../config.ts";
import type { Engine, EngineCapabilities } from "../engines/engine.ts";
import { ConfigError } from "../errors.ts";

type Naming = Pick<Config, "model" | "modelAliases" | "voice">;

/** @throws {ConfigError} for a voice that the engine does not have. */
export function servedEngine(engine: Engine, config: Naming): Engine {
  // A checkpoint has the names of `--alias`; OpenAI's would promise another dialect.
  if (config.model !== null) return engine;
  const { models } = engine.capabilities;
  const capabilities: EngineCapabilities = {
    ...engine.capabilities,
    models: [...new Set([...models, ...config.modelAliases])],
    voices: voicesOf(engine.capabilities, config.voice),
  };
  return {
    capabilities,
    open: (settings, signal) => engine.open(settings, signal),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

function voicesOf({ voices }: EngineCapabilities, own: string | null): readonly string[] {
  if (own === null) return voices;
  if (voices.includes(own)) return [own, ...voices.filter((voice) => voice !== own)];
  const known = voices.join(", ") || "none that has a name";
  throw new ConfigError("config_invalid", `--voice: no voice is named '${own}'; the voices are: ${known}.`);
}
