/**
 * A language model that says what a test wants, behind the two HTTP dialects that real ones have: what is under test is
 * everything between a client's microphone and this service.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ServiceMessage {
  readonly role: string;
  /** The words; of a call's result, the output. */
  readonly text: string;
  readonly images: readonly string[];
}
export interface ServiceReply {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  /** Leaves the answer open after its last word: the model still thinks. */
  readonly hangs?: boolean;
}
type Body = Readonly<Record<string, unknown>>;
export type Script = (messages: readonly ServiceMessage[], body: Body) => ServiceReply;

export class LanguageService {
  readonly bodies: Body[] = [];
  /** May be replaced between questions. */
  script: Script;
  readonly #server: Server;
  #calls = 0;

  constructor(script: Script) {
    this.script = script;
    this.#server = createServer(async (request, response) => {
      if (request.method === "GET") {
        response.end(JSON.stringify({ object: "list", data: [{ id: "scripted-chat", object: "model" }] }));
        return;
      }
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Body;
      this.bodies.push(body);
      response.writeHead(200, { "content-type": "text/event-stream" });
      const isChat = request.url?.endsWith("/chat/completions") === true;
      const reply = this.script(isChat ? chatMessages(body) : responseMessages(body), body);
      if (isChat) this.#chat(reply, response);
      else this.#respond(reply, response);
      if (reply.hangs !== true) response.end();
    });
  }
  /** With its `/v1`. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }
  get lastBody(): Body {
    return this.bodies.at(-1) as Body;
  }
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #chat({ text = "", calls = [], hangs }: ServiceReply, response: ServerResponse): void {
    const send = (choice: object, rest: object = {}): void => {
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }], ...rest })}\n\n`);
    };
    for (const content of words(text)) send({ delta: { content } });
    for (const [index, call] of calls.entries()) {
      const [first, second] = halves(call.arguments);
      const id = `call_${++this.#calls}`;
      send({
        delta: { tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: first } }] },
      });
      send({ delta: { tool_calls: [{ index, function: { arguments: second } }] } });
    }
    if (hangs === true) return;
    const usage = { prompt_tokens: 20, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } };
    send({ delta: {}, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }, { usage });
    response.write("data: [DONE]\n\n");
  }
  #respond({ text = "", calls = [], hangs }: ServiceReply, response: ServerResponse): void {
    const send = (event: object): void => void response.write(`data: ${JSON.stringify(event)}\n\n`);
    for (const delta of words(text)) send({ type: "response.output_text.delta", delta });
    for (const call of calls) {
      const id = `fc_${++this.#calls}`;
      const item = { id, type: "function_call", call_id: `call_${this.#calls}`, name: call.name };
      send({ type: "response.output_item.added", item: { ...item, arguments: "" } });
      for (const delta of halves(call.arguments)) {
        send({ type: "response.function_call_arguments.delta", item_id: id, delta });
      }
      send({ type: "response.output_item.done", item: { ...item, arguments: call.arguments } });
    }
    if (hangs === true) return;
    const usage = { input_tokens: 20, output_tokens: 5, input_tokens_details: { cached_tokens: 4 } };
    send({ type: "response.completed", response: { usage } });
  }
}

const words = (text: string): string[] => text.match(/\S+\s*/g) ?? [];
const halves = (text: string): [string, string] => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];

function chatMessages(body: Body): ServiceMessage[] {
  const messages = body["messages"] as readonly { role: string; content: unknown }[];
  return messages.map(({ role, content }) => ({ role, ...contentOf(content) }));
}

function responseMessages(body: Body): ServiceMessage[] {
  const input = body["input"] as readonly { role?: string; content?: unknown; type?: string; output?: string }[];
  return input.map(({ role, content, type, output }) =>
    type === "function_call_output"
      ? { role: "tool", text: output ?? "", images: [] }
      : { role: role ?? type ?? "", ...contentOf(content) },
  );
}

function contentOf(content: unknown): { text: string; images: string[] } {
  if (!Array.isArray(content)) return { text: typeof content === "string" ? content : "", images: [] };
  const parts = content as { text?: string; image_url?: string | { url: string } }[];
  const images = parts.flatMap(({ image_url }) => (image_url === undefined ? [] : [image_url]));
  return {
    text: parts.map(({ text }) => text ?? "").join(""),
    images: images.map((image) => (typeof image === "string" ? image : image.url)),
  };
}
