/** What the page asks the server besides its sessions, and where it finds it: beside the page, whatever the prefix. */
import { readRefusal, unreachable } from "./connection.ts";

export interface ServerFacts {
  /** `voicechat`: a full-duplex model on one timeline, over a WebSocket alone, without text. */
  readonly dialect: "openai" | "voicechat";
  /** Empty where there is just one. */
  readonly voices: readonly string[];
  /** The rates of the model's own dialect; `openai` has the wire's. */
  readonly inputHz: number;
  readonly outputHz: number;
}

export const apiUrl = (path: string): URL => new URL(path, document.baseURI);
export const authorization = (key: string): Record<string, string> =>
  key === "" ? {} : { Authorization: `Bearer ${key}` };

const ASK_MS_MAX = 10_000;

/** @throws {TalkFailure} with what the server refused it for, or that it does not answer. */
export async function askServer(key: string): Promise<ServerFacts> {
  const response = await fetch(apiUrl("v1/capabilities"), {
    headers: authorization(key),
    signal: AbortSignal.timeout(ASK_MS_MAX),
  }).catch((error) => {
    throw unreachable(error);
  });
  if (!response.ok) throw await readRefusal(response);
  const { dialect, voices, input_hz, output_hz } = (await response.json()) as Answer;
  return { dialect, voices, inputHz: input_hz, outputHz: output_hz };
}

interface Answer {
  readonly dialect: ServerFacts["dialect"];
  readonly voices: readonly string[];
  readonly input_hz: number;
  readonly output_hz: number;
}

export function realtimeSocket(key: string): WebSocket {
  const url = apiUrl("v1/realtime");
  url.protocol = url.protocol.replace("http", "ws");
  // Browsers send no Authorization with a WebSocket.
  return new WebSocket(url, ["realtime", ...(key === "" ? [] : [`openai-insecure-api-key.${key}`])]);
}
