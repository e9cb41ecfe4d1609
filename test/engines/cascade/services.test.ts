import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { writeWav } from "../../../src/audio/wav.ts";
import { ChatCompletions } from "../../../src/engines/cascade/llm/chat-completions.ts";
import { loadLlm } from "../../../src/engines/cascade/llm/choice.ts";
import type { LlmPart, LlmRequest } from "../../../src/engines/cascade/llm/llm.ts";
import { ResponsesApi } from "../../../src/engines/cascade/llm/responses-api.ts";
import { guardedParts } from "../../../src/engines/cascade/llm/tool-guard.ts";
import type { CascadeStageOptions } from "../../../src/engines/cascade/stage-options.ts";
import { OpenAiStt } from "../../../src/engines/cascade/stt/openai-stt.ts";
import { OpenAiTts } from "../../../src/engines/cascade/tts/openai-tts.ts";
import { silentLog } from "../../../src/util/log.ts";

interface Seen {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: Buffer;
}

/** A service on loopback that answers as the test says. */
class Service {
  readonly seen: Seen[] = [];
  readonly #server: Server;
  constructor(answer: (request: IncomingMessage, response: ServerResponse) => void) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { url = "", headers } = request;
        this.seen.push({ path: url, authorization: headers.authorization, body: Buffer.concat(chunks) });
        answer(request, response);
      });
    });
  }
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }
  json(index = 0): Record<string, unknown> {
    return JSON.parse(this.seen[index]?.body.toString() ?? "{}") as Record<string, unknown>;
  }
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

let service: Service | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  service = new Service(answer);
  return service.start();
}

const events =
  (...list: (object | string)[]) =>
  (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of list) response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
    response.end();
  };

const REQUEST: LlmRequest = {
  sessionKey: "s",
  messages: [
    { role: "system", text: "Be brief." },
    { role: "user", text: "What is here?", images: [{ url: "data:image/png;base64,AA==", detail: "low" }] },
    { role: "assistant", text: "A moment.", toolCalls: [{ callId: "c0", name: "look", argumentsJson: "{}" }] },
    { role: "tool", callId: "c0", name: "look", output: "a cat" },
  ],
  tools: [{ name: "look", description: "Looks", parameters: { type: "object" } }],
  toolChoice: { name: "look" },
  parallelToolCalls: false,
  temperature: 0.7,
  outputTokensMax: 50,
  truncation: "auto",
  signal: new AbortController().signal,
};

async function collect(parts: AsyncIterable<LlmPart>): Promise<LlmPart[]> {
  const list: LlmPart[] = [];
  for await (const part of parts) list.push(part);
  return list;
}

const chat = (baseUrl: string, apiKey: string | null = null): ChatCompletions =>
  new ChatCompletions({
    baseUrl,
    apiKey,
    model: "m",
    images: true,
    tools: "native",
    contextTokens: 10_000,
    timeoutMs: 2_000,
  });

describe("chat-completions", () => {
  it("sends the whole request in the service's words", async () => {
    const baseUrl = await serve(events("[DONE]"));
    await collect(chat(baseUrl, "key").generate(REQUEST));
    expect(service?.seen[0]).toMatchObject({ path: "/v1/chat/completions", authorization: "Bearer key" });
    expect(service?.json()).toMatchObject({
      model: "m",
      stream: true,
      temperature: 0.7,
      max_tokens: 50,
      parallel_tool_calls: false,
      tool_choice: { type: "function", function: { name: "look" } },
      tools: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is here?" },
            // Strict services refuse a field more.
            { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: "A moment.",
          tool_calls: [{ id: "c0", function: { name: "look", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c0", content: "a cat" },
      ],
    });
  });

  it("puts text, calls and usage together from their pieces", async () => {
    const delta = (content: object, finish_reason: string | null = null): object => ({
      choices: [{ delta: content, finish_reason }],
    });
    const baseUrl = await serve(
      events(
        delta({ role: "assistant", content: "" }),
        delta({ content: "Let me " }),
        delta({ content: "see." }),
        delta({ tool_calls: [{ index: 0, id: "c1", function: { name: "look", arguments: "" } }] }),
        delta({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
        delta({ tool_calls: [{ index: 1, id: "c2", function: { name: "look", arguments: "{}" } }] }),
        delta({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
        delta({}, "tool_calls"),
        { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } } },
        "[DONE]",
      ),
    );
    expect(await collect(chat(baseUrl).generate(REQUEST))).toEqual([
      { type: "text", delta: "Let me " },
      { type: "text", delta: "see." },
      { type: "tool.started", callId: "c1", name: "look" },
      { type: "tool.delta", callId: "c1", delta: '{"a"' },
      { type: "tool.started", callId: "c2", name: "look" },
      { type: "tool.delta", callId: "c2", delta: "{}" },
      { type: "tool.delta", callId: "c1", delta: ":1}" },
      { type: "tool.completed", callId: "c1", name: "look", argumentsJson: '{"a":1}' },
      { type: "tool.completed", callId: "c2", name: "look", argumentsJson: "{}" },
      { type: "end", reason: "stop", usage: { inputTokens: 9, cachedInputTokens: 3, outputTokens: 4 } },
    ]);
  });

  it("says when the limit was reached, and forgets a call that it cut off", async () => {
    const baseUrl = await serve(
      events(
        {
          choices: [{ delta: { tool_calls: [{ index: 0, id: "c1", function: { name: "look", arguments: '{"a' } }] } }],
        },
        { choices: [{ delta: {}, finish_reason: "length" }] },
      ),
    );
    const list = await collect(chat(baseUrl).generate(REQUEST));
    expect(list.map(({ type }) => type)).toEqual(["tool.started", "tool.delta", "end"]);
    expect(list.at(-1)).toMatchObject({ reason: "max_output_tokens" });
  });

  it.each([
    [401, { error: { code: "invalid_api_key", message: "secret prompt" } }, "upstream_failed", "Check the key"],
    [404, {}, "upstream_failed", "Check the address and the model"],
    [500, { error: { type: "overloaded" } }, "upstream_failed", "500 (overloaded)"],
  ])("answers status %i with a clear error", async (status, body, code, text) => {
    const baseUrl = await serve((_, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
    const error = await collect(chat(baseUrl).generate(REQUEST)).catch((e: unknown) => e);
    expect(error).toMatchObject({ code, message: expect.stringContaining(text) });
    // The service's message may quote the conversation.
    expect((error as Error).message).not.toContain("secret");
  });

  it("tells a service that is not there from one that breaks off", async () => {
    const gone = await serve(events());
    await service?.stop();
    service = null;
    await expect(collect(chat(gone).generate(REQUEST))).rejects.toMatchObject({ code: "upstream_unreachable" });
    const broken = await serve((_, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write('data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n', () => response.destroy());
    });
    await expect(collect(chat(broken).generate(REQUEST))).rejects.toMatchObject({ code: "upstream_failed" });
  });

  /**
   * A long conversation with truncation disabled failed at a size that was only assumed of the service. It gets the whole,
   * and its refusal is the answer.
   */
  it("gets the whole conversation where nothing may be dropped, and else what fits", async () => {
    const long = { role: "user", text: "word ".repeat(20_000), images: [] } as const;
    const last = { role: "user", text: "Well?", images: [] } as const;
    const shown = async (truncation: LlmRequest["truncation"]): Promise<unknown[]> => {
      const baseUrl = await serve((_, response) => {
        response.writeHead(400).end('{"error":{"code":"context_length_exceeded"}}');
      });
      const messages = [REQUEST.messages[0]!, long, last];
      const answer = collect(chat(baseUrl).generate({ ...REQUEST, messages, truncation }));
      await expect(answer).rejects.toThrow("(context_length_exceeded)");
      const { messages: sent } = (service as Service).json() as { messages: unknown[] };
      await service?.stop();
      return sent;
    };
    expect(await shown("disabled")).toHaveLength(3);
    expect(await shown("auto")).toHaveLength(2);
  });

  // A service that hung in mid-answer left the response open for five minutes: the assistant was "speaking", and silent.
  it("does not wait for ever for one that falls silent (livekit #3418)", async () => {
    const baseUrl = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n');
    });
    const rest = { apiKey: null, model: "m", images: true, tools: "native", contextTokens: 10_000 } as const;
    const heard: LlmPart[] = [];
    const answer = async (): Promise<void> => {
      const llm = new ChatCompletions({ baseUrl, ...rest, stallMs: 50 });
      for await (const part of llm.generate(REQUEST)) heard.push(part);
    };
    await expect(answer()).rejects.toMatchObject({ code: "upstream_timeout" });
    expect(heard).toEqual([{ type: "text", delta: "Hel" }]);
  });

  it("lets go at once when it is cancelled", async () => {
    const baseUrl = await serve(() => {});
    const abort = new AbortController();
    const parts = collect(chat(baseUrl).generate({ ...REQUEST, signal: abort.signal }));
    abort.abort(new Error("cancelled"));
    await expect(parts).rejects.toThrow("cancelled");
  });
});

describe("responses-api", () => {
  it("speaks the other dialect both ways", async () => {
    const baseUrl = await serve(
      events(
        { type: "response.created", response: {} },
        { type: "response.output_text.delta", delta: "Hello." },
        { type: "response.output_item.added", item: { id: "f1", type: "function_call", call_id: "c1", name: "look" } },
        { type: "response.function_call_arguments.delta", item_id: "f1", delta: "{}" },
        {
          type: "response.output_item.done",
          item: { id: "f1", type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
        },
        {
          type: "response.completed",
          response: { usage: { input_tokens: 7, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } } },
        },
      ),
    );
    const llm = new ResponsesApi({
      baseUrl,
      apiKey: null,
      model: "m",
      images: true,
      tools: "native",
      contextTokens: 10_000,
    });
    expect(await collect(llm.generate(REQUEST))).toEqual([
      { type: "text", delta: "Hello." },
      { type: "tool.started", callId: "c1", name: "look" },
      { type: "tool.delta", callId: "c1", delta: "{}" },
      { type: "tool.completed", callId: "c1", name: "look", argumentsJson: "{}" },
      { type: "end", reason: "stop", usage: { inputTokens: 7, cachedInputTokens: 1, outputTokens: 2 } },
    ]);
    expect(service?.json()).toMatchObject({
      instructions: "Be brief.",
      max_output_tokens: 50,
      tool_choice: { type: "function", name: "look" },
      input: [
        { role: "user", content: [{ type: "input_text" }, { type: "input_image", detail: "low" }] },
        { role: "assistant", content: "A moment." },
        { type: "function_call", call_id: "c0", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c0", output: "a cat" },
      ],
    });
  });

  it.each([
    [
      { type: "response.incomplete", response: { incomplete_details: { reason: "max_output_tokens" } } },
      "max_output_tokens",
    ],
    [{ type: "response.incomplete", response: { incomplete_details: { reason: "content_filter" } } }, "content_filter"],
  ])("says why an answer is incomplete", async (event, reason) => {
    const baseUrl = await serve(events(event));
    const llm = new ResponsesApi({
      baseUrl,
      apiKey: null,
      model: "m",
      images: true,
      tools: "native",
      contextTokens: 10_000,
    });
    expect((await collect(llm.generate(REQUEST))).at(-1)).toMatchObject({ type: "end", reason });
  });

  it.each([[{ type: "response.failed" }], [{ type: "error" }], [{ type: "response.created" }]])(
    "fails clearly: %j",
    async (event) => {
      const baseUrl = await serve(events(event));
      const llm = new ResponsesApi({
        baseUrl,
        apiKey: null,
        model: "m",
        images: true,
        tools: "native",
        contextTokens: 10_000,
      });
      await expect(collect(llm.generate(REQUEST))).rejects.toMatchObject({ code: "upstream_failed" });
    },
  );
});

describe("a transcription service", () => {
  it("gets a WAV file with its hints", async () => {
    const baseUrl = await serve((_, response) => response.end(JSON.stringify({ text: " Hello there. " })));
    const stt = new OpenAiStt({ baseUrl, apiKey: "key", model: "whisper-1" });
    const pcm = new Float32Array(1_600).fill(0.25);
    const text = await stt.transcribe({ pcm, language: "en", prompt: "names", urgency: "final" });
    expect(text).toBe("Hello there.");
    expect(service?.seen[0]).toMatchObject({ path: "/v1/audio/transcriptions", authorization: "Bearer key" });
    const body = service?.seen[0]?.body ?? Buffer.alloc(0);
    expect(body.includes(Buffer.from(writeWav(pcm, 16_000)))).toBe(true);
    for (const part of ['name="model"\r\n\r\nwhisper-1', 'name="language"\r\n\r\nen', 'name="prompt"\r\n\r\nnames']) {
      expect(body.includes(part)).toBe(true);
    }
  });
  it("that answers nonsense fails clearly", async () => {
    const baseUrl = await serve((_, response) => response.end("<html>"));
    const stt = new OpenAiStt({ baseUrl, apiKey: null, model: null });
    const request = { pcm: new Float32Array(16), language: null, prompt: null, urgency: "final" } as const;
    await expect(stt.transcribe(request)).rejects.toMatchObject({ code: "upstream_failed" });
  });
});

describe("a speech service", () => {
  it("is heard while it still speaks, sample by sample the same however it cuts", async () => {
    const samples = Int16Array.from({ length: 5_001 }, (_, i) => i - 2_500);
    const bytes = Buffer.from(samples.buffer);
    const baseUrl = await serve((_, response) => {
      response.write(bytes.subarray(0, 3_901), () => response.end(bytes.subarray(3_901)));
    });
    const tts = new OpenAiTts({ baseUrl, apiKey: null, model: null });
    const heard: number[] = [];
    const signal = new AbortController().signal;
    for await (const { pcm, hz } of tts.speak({ text: "Hi.", voice: "coral", speed: 1.2, urgency: "first", signal })) {
      expect(hz).toBe(24_000);
      heard.push(...pcm);
    }
    expect(heard.map((sample) => Math.round(sample * 32_768))).toEqual([...samples]);
    expect(service?.json()).toMatchObject({ input: "Hi.", voice: "coral", speed: 1.2, response_format: "pcm" });
  });
});

describe("the choice of a language model", () => {
  const options = (over: Partial<CascadeStageOptions>): CascadeStageOptions => ({
    vad: "energy",
    stt: "openai",
    sttModel: null,
    sttBaseUrl: null,
    sttApiKey: null,
    llm: "auto",
    llmModel: null,
    llmBaseUrl: null,
    llmApiKey: null,
    llmTools: "auto",
    tts: "openai",
    ttsModel: null,
    ttsBaseUrl: null,
    ttsApiKey: null,
    threads: 1,
    store: {
      ensure: () => Promise.reject(new Error("the local model was chosen")),
      model: () => {
        throw new Error("unknown");
      },
    },
    log: silentLog,
    fetch: () => Promise.reject(new Error("nobody there")),
    ...over,
  });
  const models =
    (port: string, ...ids: string[]): typeof fetch =>
    async (url) => {
      if (!String(url).includes(port)) throw new Error("nobody there");
      return Response.json({ data: ids.map((id) => ({ id })) });
    };

  it.each([
    [
      "an address and its first chat model",
      { llmBaseUrl: "http://x:5/v1", fetch: models(":5/", "bge-embed", "llama") },
      "llama",
    ],
    ["a key", { llmApiKey: "k" }, "gpt-4o-mini"],
    ["a key and a name", { llmApiKey: "k", llmModel: "big" }, "big"],
    ["a server on this machine", { fetch: models(":11434/", "nomic-embed-text", "qwen3:4b") }, "qwen3:4b"],
    ["a service by name", { llm: "responses-api", llmApiKey: "k", llmModel: "o" } as const, "o"],
  ])("takes %s", async (_, over, name) => {
    const reasons: string[] = [];
    const llm = await loadLlm(options({ ...over, onChoice: ({ reason }) => reasons.push(reason) }));
    expect(llm.name).toBe(name);
    expect(reasons).toHaveLength(1);
  });

  it("takes the small local model when there is nothing else, and says that it is weak", async () => {
    const reasons: string[] = [];
    const choice = loadLlm(options({ onChoice: ({ reason }) => reasons.push(reason) }));
    await expect(choice).rejects.toThrow("the local model was chosen");
    expect(reasons[0]).toContain("weak");
  });

  it.each([
    ["auto", "native"],
    ["native", "native"],
    ["prompted", "prompted"],
  ] as const)("calls tools as it is told: %s", async (llmTools, tools) => {
    for (const llm of ["chat-completions", "responses-api"] as const) {
      expect((await loadLlm(options({ llm, llmModel: "m", llmBaseUrl: "http://x:5/v1", llmTools }))).tools).toBe(tools);
    }
  });

  // A local server whose model takes no tools answered 400 to every session that had some.
  it("shows tools in the prompt from then on, where a service refuses them natively", async () => {
    const llmBaseUrl = await serve((request, response) => {
      const body = service?.json(service.seen.length - 1) ?? {};
      if ("tools" in body) response.writeHead(400).end('{"error":{"type":"api_error"}}');
      else events({ choices: [{ delta: { content: "<code>look()</code>" } }] }, "[DONE]")(request, response);
    });
    const llm = await loadLlm(options({ llmModel: "m", llmBaseUrl, fetch }));
    const request = { ...REQUEST, toolChoice: "auto", signal: new AbortController().signal } as const;
    const called = async (): Promise<unknown[]> => {
      const parts: LlmPart[] = [];
      for await (const part of guardedParts(llm, request, silentLog)) parts.push(part);
      return parts.flatMap((part) => (part.type === "tool.completed" ? [part.name] : []));
    };
    expect(await called()).toEqual(["look"]);
    expect(llm.tools).toBe("prompted");
    expect(await called()).toEqual(["look"]);
    expect(service?.seen.map((_, index) => "tools" in (service?.json(index) ?? {}))).toEqual([true, false, false]);
    expect(JSON.stringify(service?.json(2))).toContain("def look()");
  });

  it("asks for a name where the address gives none", async () => {
    await expect(loadLlm(options({ llmBaseUrl: "http://x:5/v1" }))).rejects.toThrow("set --llm-model");
    await expect(loadLlm(options({ llmModel: "/no/such.gguf" }))).rejects.toThrow("no file /no/such.gguf");
  });
});
