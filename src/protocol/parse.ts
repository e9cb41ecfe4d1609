/** From the text of a frame to a checked value. What cannot be read is a refusal: a value, never an exception. */
import type { z } from "zod";
import { ClientError } from "../errors.ts";
import { nearest } from "../util/nearest.ts";

export type Parsed<T> =
  | { readonly ok: true; readonly event: T }
  /** `eventId` is the peer's own id for the message, where one could be read. */
  | { readonly ok: false; readonly refusal: ClientError; readonly eventId: string | null };

export type EventSchemas = Readonly<Record<string, z.ZodType>>;

export interface ParseOptions {
  /** By `type`. */
  readonly schemas: EventSchemas;
  /** Where fields of an older dialect have gone: last name -> path, for the hint in a refusal. */
  readonly movedFields?: Readonly<Record<string, string>>;
}

/** Reads one event: JSON, an object, a known `type`, and then its schema. */
export function parseEvent<T>(text: string, options: ParseOptions): Parsed<T> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse("invalid_json", `The message is not valid JSON (${text.length} characters).`, null, null);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const got = Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
    return refuse("invalid_event", `The message must be a JSON object with a "type", got ${got}.`, null, null);
  }
  const { type, event_id: rawId } = value as { readonly type?: unknown; readonly event_id?: unknown };
  const eventId = typeof rawId === "string" ? rawId.slice(0, ID_CHARACTERS_MAX) : null;
  const known = Object.keys(options.schemas);
  if (type === undefined) {
    return refuse("missing_required_parameter", `"type" is missing; expected ${oneOf(known)}.`, "type", eventId);
  }
  const schema = typeof type === "string" && Object.hasOwn(options.schemas, type) ? options.schemas[type] : undefined;
  if (schema === undefined) {
    const name = typeof type === "string" ? `${quote(type)}${hint(type, known)}` : shown(type);
    const message = `Unknown event type ${name}; expected ${oneOf(known)}.`;
    return refuse("unknown_or_invalid_event", message, "type", eventId);
  }
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return { ok: true, event: result.data as T };
  return { ok: false, refusal: refusalOf(result.error.issues, schema, value, options), eventId };
}

/** The same checks for a value that came by another way than a frame, such as the session of an HTTP request. */
export function parseValue<T>(value: unknown, schema: z.ZodType, options: Omit<ParseOptions, "schemas">): Parsed<T> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return { ok: true, event: result.data as T };
  return { ok: false, refusal: refusalOf(result.error.issues, schema, value, options), eventId: null };
}

const ID_CHARACTERS_MAX = 512;

type Issue = z.core.$ZodIssue;

function refusalOf(
  issues: readonly Issue[],
  schema: z.ZodType,
  value: unknown,
  options: Pick<ParseOptions, "movedFields">,
): ClientError {
  const issue = deepest(issues);
  const param = pathText(issue.path) || null;
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] as string;
    const accepted = acceptedKeys(schema, issue.path, value);
    const where = pathText([...issue.path, key]);
    const { movedFields = {} } = options;
    const moved = Object.hasOwn(movedFields, key) ? movedFields[key] : undefined;
    const near = moved === undefined ? hint(key, accepted) : `, which is ${quote(moved)} in this version of the API`;
    const message = `Unknown field ${quote(where)}${near}; expected ${oneOf(accepted)}.`;
    return new ClientError("unknown_parameter", message, where);
  }
  if (issue.code === "invalid_type" && issue.input === undefined) {
    return new ClientError(
      "missing_required_parameter",
      `${quote(param ?? "")} is missing (${issue.expected}).`,
      param,
    );
  }
  if (issue.message.startsWith(NOT_SUPPORTED)) {
    return new ClientError("unsupported_parameter", `${quote(param ?? "the event")}: ${issue.message}.`, param);
  }
  return new ClientError("invalid_value", `${quote(param ?? "the event")}: ${issueText(issue)}`, param);
}

/** Schemas mark what is known but not honoured by a message that begins so. */
const NOT_SUPPORTED = "not supported";

/** The most telling issue: inside a union, that of the branch which got furthest. */
function deepest(issues: readonly Issue[]): Issue {
  const flat = issues.map((issue) => {
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return issue;
    const branches = issue.errors.map((branch) => deepest(branch));
    const best = branches.reduce((a, b) => (b.path.length > a.path.length ? b : a));
    return best.path.length === 0 ? issue : { ...best, path: [...issue.path, ...best.path] };
  });
  return flat.reduce((a, b) => (b.path.length > a.path.length ? b : a));
}

function issueText(issue: Issue): string {
  switch (issue.code) {
    case "invalid_value":
      return `expected ${oneOf(issue.values.map(String))}, got ${shown(issue.input)}.`;
    case "invalid_type":
      return `expected ${issue.expected}, got ${shown(issue.input)}.`;
    case "invalid_union": {
      const expected = (issue as { readonly options?: readonly unknown[] }).options;
      const tag = childOf(issue.input, issue.path.at(-1) ?? "");
      if (expected !== undefined) return `expected ${oneOf(expected.map(String))}, got ${shown(tag)}.`;
      return `has a value that is not accepted, got ${shown(issue.input)}.`;
    }
    case "too_big":
      if (!issue.message.startsWith("Too big")) return `${issue.message}.`;
      return `must be at most ${issue.maximum}, got ${shown(issue.input)}.`;
    case "too_small":
      if (!issue.message.startsWith("Too small")) return `${issue.message}.`;
      return `must be at least ${issue.minimum}, got ${shown(issue.input)}.`;
    default:
      return `${issue.message}.`;
  }
}

/** A value as it may stand in a message: kinds of text, not the text itself, which could be a prompt. */
function shown(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (typeof value === "string") return value.length <= 40 && /^[\w./+-]*$/.test(value) ? quote(value) : "a text";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return value === undefined ? "nothing" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/** The keys of the object schema that `path` leads to, following the branch of each union that `value` names. */
function acceptedKeys(schema: z.ZodType, path: readonly PropertyKey[], value: unknown): string[] {
  const [key, ...rest] = path;
  const keys = objectsOf(schema, value).flatMap((object) => {
    if (key === undefined) return Object.keys(object.shape);
    const child = object.shape[String(key)];
    return child === undefined ? [] : acceptedKeys(child, rest, childOf(value, key));
  });
  const element = unwrap(schema);
  if (key !== undefined && element.def.type === "array") {
    return acceptedKeys((element as z.ZodArray<z.ZodType>).element, rest, childOf(value, key));
  }
  return [...new Set(keys)];
}

function childOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
}

function unwrap(schema: z.ZodType): z.ZodType {
  const inner = (schema.def as { readonly innerType?: z.ZodType }).innerType;
  return inner === undefined ? schema : unwrap(inner);
}

function objectsOf(schema: z.ZodType, value: unknown): z.ZodObject<Record<string, z.ZodType>>[] {
  const plain = unwrap(schema);
  if (plain.def.type === "object") return [plain as z.ZodObject<Record<string, z.ZodType>>];
  if (plain.def.type !== "union") return [];
  const options = (plain as z.ZodUnion<z.ZodType[]>).options;
  const all = options.flatMap((option) => objectsOf(option, value));
  const named = all.filter((object) =>
    Object.entries(object.shape).every(([key, field]) => {
      const isTag = unwrap(field).def.type === "literal";
      return !isTag || childOf(value, key) === undefined || field.safeParse(childOf(value, key)).success;
    }),
  );
  return named.length > 0 ? named : all;
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) => (typeof key === "number" ? `[${key}]` : `${index > 0 ? "." : ""}${String(key)}`))
    .join("");
}

const quote = (name: string): string => `'${name.length > 80 ? `${name.slice(0, 80)}…` : name}'`;
const oneOf = (names: readonly string[]): string =>
  names.length === 1 ? quote(names[0] as string) : `one of ${names.map(quote).join(", ")}`;

function hint(name: string, candidates: readonly string[]): string {
  const near = name.length > 64 ? null : nearest(name, candidates);
  return near === null ? "" : `, did you mean ${quote(near)}`;
}

function refuse(
  code: ConstructorParameters<typeof ClientError>[0],
  message: string,
  param: string | null,
  eventId: string | null,
): Parsed<never> {
  return { ok: false, refusal: new ClientError(code, message, param), eventId };
}
