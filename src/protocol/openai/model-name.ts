/** OpenAI dates its models, and clients write the dates out: `gpt-realtime-2025-08-28` is served where `gpt-realtime` is. */
export const isServed = (name: string, served: readonly string[]): boolean =>
  served.includes(name) || served.includes(name.replace(/-20\d\d-\d\d-\d\d$/, ""));
