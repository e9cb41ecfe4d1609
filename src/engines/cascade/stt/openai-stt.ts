/** Any service with OpenAI's `/v1/audio/transcriptions`. */

import { writeWav } from "../../../audio/wav.ts";
import { UpstreamError } from "../../../errors.ts";
import { Remote, type RemoteOptions } from "../remote.ts";
import { STT_HZ, type Stt, type SttRequest } from "./stt.ts";

export interface OpenAiSttOptions extends RemoteOptions {
  readonly model: string | null;
}

const MODEL = "gpt-4o-mini-transcribe";

export class OpenAiStt implements Stt {
  readonly name: string;
  /** One request takes 25 MB; this is far less, and an answer comes in time. */
  readonly segmentSecondsMax = 120;
  readonly partials = false;
  readonly #remote: Remote;

  constructor({ model, ...options }: OpenAiSttOptions) {
    this.name = model ?? MODEL;
    this.#remote = new Remote(options);
  }
  async transcribe({ pcm, language, prompt, signal }: SttRequest): Promise<string> {
    const body = new FormData();
    body.set("file", new Blob([writeWav(pcm, STT_HZ)], { type: "audio/wav" }), "speech.wav");
    body.set("model", this.name);
    body.set("response_format", "json");
    if (language !== null) body.set("language", language);
    if (prompt !== null) body.set("prompt", prompt);
    const response = await this.#remote.post({ path: "/audio/transcriptions", body, signal });
    const { text } = (await response.json().catch(() => ({}))) as { text?: unknown };
    if (typeof text === "string") return text.trim();
    throw new UpstreamError("upstream_failed", `${this.#remote.host} answered without a text.`);
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}
