/** A log line as people read it: on a terminal, between bars and answers, JSON is noise. */
const LEVELS: Readonly<Record<number, string>> = { 10: "trace", 20: "debug", 30: "info", 40: "warning", 50: "error" };

/** `23:40:09 info: model published (model silero-vad)`. @param json one line of `createLog`. */
export function readableLogLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const label = LEVELS[Number(level)] ?? String(level);
  const clock = new Date(String(time)).toTimeString().slice(0, 8);
  const known = Object.entries(fields).filter(([, value]) => value !== null);
  const details = known.map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${clock} ${label}: ${String(msg)}${details.length === 0 ? "" : ` (${details.join(", ")})`}`;
}
