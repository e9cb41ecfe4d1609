/**
 * Tools for models without a way of their own to call them: the prompt shows the functions, and the model writes
 * `<code>name(argument=value)</code>`. Models trained on `<tool_call>{"name", "arguments"}</tool_call>` are understood too.
 */
import type { ToolChoice, ToolDefinition } from "../../engine.ts";
import { parseCalls } from "./call-syntax.ts";
import type { ChatMessage, ChatToolCall, LlmRequest } from "./llm.ts";

/** The same request without tools, for the model to read. */
export function promptedRequest(request: LlmRequest): LlmRequest {
  const [system, ...rest] = request.messages;
  const prompt = toolPrompt(request.tools, request.toolChoice, request.parallelToolCalls);
  const text = [system?.role === "system" ? system.text : "", prompt].filter((part) => part !== "").join("\n\n");
  const others = system?.role === "system" ? rest : request.messages;
  return { ...request, tools: [], toolChoice: "none", messages: [{ role: "system", text }, ...others.map(asText)] };
}

function toolPrompt(tools: readonly ToolDefinition[], choice: ToolChoice, parallel: boolean): string {
  if (tools.length === 0 || choice === "none") return "";
  const rule =
    choice === "auto"
      ? "Call one only if it is needed; otherwise answer in words."
      : choice === "required"
        ? "You must call one now."
        : `You must call ${choice.name} now.`;
  return [
    "You can call these functions:",
    ...tools.map(signature),
    "To call one, write exactly this, with literal values:",
    "<code>\nfunction_name(argument=value, other='text')\n</code>",
    `${parallel ? "Several calls go on lines of their own." : "Call at most one function."} ${rule}`,
    "Its result comes back to you as a message. Never speak of functions or code.",
  ].join("\n");
}

/** `def name(a: string, b: number = None): """description"""`, with what the schema says of each argument. */
function signature(tool: ToolDefinition): string {
  const { properties, required } = tool.parameters as { properties?: Record<string, unknown>; required?: unknown };
  const needed = new Set(Array.isArray(required) ? required : []);
  const entries = Object.entries(properties ?? {}).map(([name, value]) => ({
    name,
    schema: (value ?? {}) as { type?: unknown; description?: unknown; enum?: unknown },
  }));
  const list = entries.map(({ name, schema }) => {
    const type = Array.isArray(schema.enum) ? JSON.stringify(schema.enum) : String(schema.type ?? "any");
    return `${name}: ${type}${needed.has(name) ? "" : " = None"}`;
  });
  const notes = entries.flatMap(({ name, schema }) =>
    typeof schema.description === "string" ? [`  ${name}: ${schema.description}`] : [],
  );
  return [`def ${tool.name}(${list.join(", ")}): """${tool.description}"""`, ...notes].join("\n");
}

function asText(message: ChatMessage): ChatMessage {
  if (message.role === "tool") {
    return { role: "user", text: `Result of ${message.name}: ${message.output}`, images: [] };
  }
  if (message.role !== "assistant" || message.toolCalls.length === 0) return message;
  const calls = message.toolCalls.map(callText).join("\n");
  const text = `${message.text}\n<code>\n${calls}\n</code>`.trim();
  return { role: "assistant", text, toolCalls: [] };
}

function callText({ name, argumentsJson }: ChatToolCall): string {
  try {
    const values = Object.entries(JSON.parse(argumentsJson) as Record<string, unknown>);
    return `${name}(${values.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`;
  } catch {
    return `${name}()`;
  }
}

/** The calls in a block that `MarkupReader` found. @throws {SyntaxError} with what is wrong. */
export function callsIn(tag: string, body: string): { name: string; argumentsJson: string }[] {
  const plain = body
    .trim()
    .replace(/^```\w*\n?|```$/g, "")
    .trim();
  if (tag === "code" && !plain.startsWith("{") && !plain.startsWith("[")) return parseCalls(plain);
  const value: unknown = JSON.parse(plain);
  return (Array.isArray(value) ? value : [value]).map((call: unknown) => {
    const { name, arguments: args, parameters } = (call ?? {}) as Record<string, unknown>;
    if (typeof name !== "string") throw new SyntaxError("the call names no function");
    const given = args ?? parameters ?? {};
    return { name, argumentsJson: typeof given === "string" ? given : JSON.stringify(given) };
  });
}
