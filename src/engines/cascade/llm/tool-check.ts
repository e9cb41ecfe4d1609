/** Is a tool call one that the client's function can take? Says what is wrong in words that a model can act on. */
import type { ToolDefinition } from "../../engine.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Null if the call is fine, otherwise the problem. */
export function toolProblem(name: string, argumentsJson: string, tools: readonly ToolDefinition[]): string | null {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) return `there is no function ${name}; there are ${tools.map((t) => t.name).join(", ")}`;
  let value: unknown;
  try {
    value = JSON.parse(argumentsJson);
  } catch {
    return `the arguments of ${name} are not valid JSON`;
  }
  return schemaProblem(value, tool.parameters, name);
}

/** Type, required, properties, items and enum: what models get wrong. Other keywords are the client's own to check. */
function schemaProblem(value: unknown, schema: Schema, path: string): string | null {
  const { type, enum: choices } = schema as { type?: unknown; enum?: unknown };
  const types = (Array.isArray(type) ? type : [type]).filter((name): name is string => typeof name === "string");
  if (types.length > 0 && !types.some((name) => isOfType(value, name)))
    return `${path} must be of type ${types.join(" or ")}`;
  if (Array.isArray(choices) && !choices.some((choice) => JSON.stringify(choice) === JSON.stringify(value))) {
    return `${path} must be one of ${choices.map((choice) => JSON.stringify(choice)).join(", ")}`;
  }
  if (Array.isArray(value))
    return firstProblem(value.map((item, i) => schemaProblem(item, inner(schema, "items"), `${path}[${i}]`)));
  return isRecord(value) ? recordProblem(value, schema, path) : null;
}

function recordProblem(value: Schema, schema: Schema, path: string): string | null {
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  const missing = required.find((key) => !(key in value));
  if (missing !== undefined) return `${path} lacks the argument ${missing}`;
  const properties = inner(schema, "properties");
  const unknown = Object.keys(value).find((key) => !(key in properties));
  if (unknown !== undefined && schema["additionalProperties"] === false) return `${path} has no argument ${unknown}`;
  return firstProblem(
    Object.entries(value).map(([key, item]) => schemaProblem(item, inner(properties, key), `${path}.${key}`)),
  );
}

const firstProblem = (problems: readonly (string | null)[]): string | null => problems.find((p) => p !== null) ?? null;

function inner(schema: Schema, key: string): Schema {
  const value = schema[key];
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "object") return isRecord(value);
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "null") return value === null;
  return typeof value === type;
}
