/** Calls to services that speak OpenAI's HTTP APIs: one place for addresses, keys, time limits and what errors mean. */
import { UpstreamError } from "../../errors.ts";

export interface RemoteOptions {
  /** With its `/v1`. Null is OpenAI's own. */
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
  readonly fetch?: typeof globalThis.fetch;
  /** Until the answer begins. */
  readonly timeoutMs?: number;
  /** Silence in the middle of an answer after which it counts as broken off. */
  readonly stallMs?: number;
}

export interface RemoteRequest {
  readonly path: string;
  /** JSON, or a form. */
  readonly body: object;
  readonly signal?: AbortSignal | undefined;
}

export const OPENAI_BASE_URL: string = "https://api.openai.com/v1";
const TIMEOUT_MS = 30_000;
/** Longer than a slow machine reads a long prompt. */
const STALL_MS = 60_000;
const MESSAGE_CHARACTERS_MAX = 300;

export class Remote {
  readonly #base: string;
  readonly #options: RemoteOptions;

  constructor(options: RemoteOptions) {
    this.#base = (options.baseUrl ?? OPENAI_BASE_URL).replace(/\/+$/, "");
    this.#options = options;
  }
  /** Host and port, for messages. */
  get host(): string {
    return new URL(this.#base).host;
  }
  /**
   * The answer, once it has begun and its status is good.
   * @throws {UpstreamError} upstream_failed, upstream_unreachable, upstream_timeout; the signal's reason, if it aborts
   */
  async post({ path, body, signal }: RemoteRequest): Promise<Response> {
    const late = new AbortController();
    const timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS;
    const timer = setTimeout(() => late.abort(), timeoutMs);
    const form = body instanceof FormData;
    let response: Response;
    try {
      response = await (this.#options.fetch ?? fetch)(`${this.#base}${path}`, {
        method: "POST",
        headers: { ...this.#authorization(), ...(form ? {} : { "content-type": "application/json" }) },
        body: form ? body : JSON.stringify(body),
        signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
      });
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.#unreachable(late.signal.aborted, timeoutMs, cause);
    } finally {
      clearTimeout(timer);
    }
    if (!response.ok) throw await this.#refused(response, path);
    return response;
  }
  /** @throws {UpstreamError} for a stream that broke off or says no more; the signal's reason, if it aborts */
  async *chunks(response: Response, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
    const stallMs = this.#options.stallMs ?? STALL_MS;
    const reader = response.body?.getReader();
    let isStalled = false;
    const stall = (): void => {
      isStalled = true;
      void reader?.cancel().catch(() => {});
    };
    try {
      while (reader !== undefined) {
        const timer = setTimeout(stall, stallMs);
        const { value, done } = await reader.read().finally(() => clearTimeout(timer));
        if (isStalled) {
          const message = `${this.host} fell silent in the middle of its answer, for ${stallMs} ms.`;
          throw new UpstreamError("upstream_timeout", message, { retryable: true });
        }
        if (done) return;
        yield value;
      }
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof UpstreamError) throw cause;
      throw new UpstreamError("upstream_failed", `${this.host} broke off its answer.`, { cause, retryable: true });
    } finally {
      void reader?.cancel().catch(() => {});
    }
  }

  #authorization(): Record<string, string> {
    const { apiKey } = this.#options;
    return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  }
  #unreachable(late: boolean, timeoutMs: number, cause: unknown): UpstreamError {
    return late
      ? new UpstreamError("upstream_timeout", `${this.host} did not answer within ${timeoutMs} ms.`, {
          retryable: true,
        })
      : new UpstreamError("upstream_unreachable", `${this.host} cannot be reached; is it running?`, {
          cause,
          retryable: true,
        });
  }
  async #refused(response: Response, path: string): Promise<UpstreamError> {
    const text = await response.text().catch(() => "");
    const reason = messageIn(text);
    const { status } = response;
    const hint =
      status === 401 || status === 403 ? " Check the key." : status === 404 ? " Check the address and the model." : "";
    return new UpstreamError("upstream_failed", `${this.host}${path} answered ${status}${reason}.${hint}`, {
      details: { status },
      retryable: status === 429 || status >= 500,
    });
  }
}

/** The service's own short code or type; its message may quote the conversation, and stays out. */
function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; type?: unknown } };
    const code = error?.code ?? error?.type;
    return typeof code === "string" ? ` (${code.slice(0, MESSAGE_CHARACTERS_MAX)})` : "";
  } catch {
    return "";
  }
}
