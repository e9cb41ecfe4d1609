/** Events of an unknown server: any JSON object with a type, read by path. */

export type WireEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** The value at `path` such as `response.output.0.id`; undefined where something on the way is missing. */
export function at(value: unknown, path: string): unknown {
  let inner = value;
  for (const key of path.split(".")) {
    if (typeof inner !== "object" || inner === null) return undefined;
    inner = (inner as Readonly<Record<string, unknown>>)[key];
  }
  return inner;
}

/** The text at `path`; empty where there is none. */
export function textAt(value: unknown, path: string): string {
  const found = at(value, path);
  return typeof found === "string" ? found : "";
}

/** A value as a report may show it: its kind and size, or its short JSON. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const json = JSON.stringify(value);
  return json.length <= 120 ? json : `${json.slice(0, 117)}...`;
}

/** Types one after another, runs of the same one written once: `a, b (3), c`. */
export function typesOf(events: readonly WireEvent[]): string {
  const runs: { readonly type: string; count: number }[] = [];
  for (const { type } of events) {
    const last = runs.at(-1);
    if (last?.type === type) last.count += 1;
    else runs.push({ type, count: 1 });
  }
  return runs.map(({ type, count }) => (count === 1 ? type : `${type} (${count})`)).join(", ") || "nothing";
}
