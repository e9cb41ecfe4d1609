/** Language-model servers that people run on their own machine, at the ports where they listen. */

export interface LocalServer {
  readonly name: string;
  readonly baseUrl: string;
  readonly model: string;
}

const SERVERS = [
  ["Ollama", 11434],
  ["LM Studio", 1234],
  ["llama.cpp", 8080],
  ["vLLM", 8000],
] as const;
/** A server on this machine answers at once, or is not one. */
const PROBE_MS = 800;
const NOT_CHAT = /embed|rerank|whisper|tts|bge-|clip|guard/i;

/** The first that answers and has a chat model, or null. */
export async function findLocalServer(get: typeof globalThis.fetch): Promise<LocalServer | null> {
  const found = await Promise.all(
    SERVERS.map(async ([name, port]): Promise<LocalServer | null> => {
      const baseUrl = `http://127.0.0.1:${port}/v1`;
      const model = await firstChatModel(get, baseUrl, null);
      return model === null ? null : { name, baseUrl, model };
    }),
  );
  return found.find((server) => server !== null) ?? null;
}

/** The first model of `GET /models` that can chat, or null if nobody answers or it has none. */
export async function firstChatModel(
  get: typeof globalThis.fetch,
  baseUrl: string,
  apiKey: string | null,
): Promise<string | null> {
  try {
    const response = await get(`${baseUrl.replace(/\/+$/, "")}/models`, {
      headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.timeout(PROBE_MS),
    });
    if (!response.ok) return null;
    const { data } = (await response.json()) as { data?: unknown };
    const ids = (Array.isArray(data) ? data : []).map((model: unknown) => (model as { id?: unknown } | null)?.id);
    return ids.find((id): id is string => typeof id === "string" && !NOT_CHAT.test(id)) ?? null;
  } catch {
    return null;
  }
}
