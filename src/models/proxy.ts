/** `fetch` through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name, as npm and pip do. Node's own looks at none. */
import type { EnvHttpProxyAgent } from "undici";

export function createProxyFetch(): typeof globalThis.fetch {
  let agent: EnvHttpProxyAgent | null = null;
  return async (input, init) => {
    const undici = await import("undici");
    agent ??= new undici.EnvHttpProxyAgent();
    // The two declare the same interfaces under their own names.
    const response = await undici.fetch(input as string, { ...(init as object), dispatcher: agent });
    return response as unknown as Response;
  };
}
