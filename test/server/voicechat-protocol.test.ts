/** docs/voicechat-protocol.md and the code say the same: every type, field, code and limit, and no others. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { DUPLEX_LIMITS, type DuplexEvent } from "../../src/conversation/duplex-session.ts";
import { VoiceChatDialect } from "../../src/dialects/voicechat.ts";
import { PROMPT_TOKENS_MAX } from "../../src/engines/voicechat/limits.ts";
import { AppError, ClientError, ERROR_TABLE } from "../../src/errors.ts";
import { CLIENT_MESSAGE_TYPES } from "../../src/protocol/voicechat/client-messages.ts";
import type { VoiceChatErrorCode, VoiceChatEventBody } from "../../src/protocol/voicechat/server-events.ts";
import { FAREWELLS } from "../../src/server/duplex-connection.ts";
import { Metrics } from "../../src/server/metrics.ts";
import { VOICECHAT_MESSAGE_BYTES_MAX } from "../../src/server/voicechat-sessions.ts";
import { READ_AHEAD_CHARACTERS, READ_AHEAD_MESSAGES } from "../../src/server/websocket.ts";
import { randomId } from "../../src/util/ids.ts";
import { CAPABILITIES } from "../support/scripted-engine.ts";

const DOCUMENT = readFileSync(new URL("../../docs/voicechat-protocol.md", import.meta.url), "utf8");

/** The table under a heading: first column -> second. */
function rows(heading: string): Map<string, string> {
  const section = DOCUMENT.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const lines = [...section.matchAll(/^\| ([^|]+) \|([^|]*)\|/gm)].slice(2);
  return new Map(lines.map(([, first = "", second = ""]) => [first.replaceAll("`", ""), second.trim()]));
}
const fields = (cell: string | undefined): string[] =>
  [...(cell ?? "").matchAll(/`([\w.]+)`/g)].map((match) => match[1]!);

const dialect = new VoiceChatDialect({ capabilities: CAPABILITIES, sessionId: "sess_0", ids: randomId });
const text = { frameIndex: 0, tokenId: 1, delta: "a", text: "a" };
const error = new ClientError("invalid_request", "x");

/** One of each that a session may tell. The compiler holds the list complete. */
const EVENTS: { readonly [Type in DuplexEvent["type"]]: DuplexEvent & { readonly type: Type } } = {
  opened: { type: "opened" },
  "open.failed": { type: "open.failed", error: new AppError("internal_error") },
  refused: { type: "refused", error },
  "input.failed": { type: "input.failed", error },
  finishing: { type: "finishing" },
  ponged: { type: "ponged" },
  expired: { type: "expired", error },
  closed: { type: "closed", reason: "ended" },
  "frame.text": { type: "frame.text", ...text },
  "frame.function": { type: "frame.function", ...text },
  "frame.transcript": { type: "frame.transcript", frameIndex: 0, delta: "a", text: "a" },
  "frame.audio": { type: "frame.audio", frameIndex: 0, pcm: new Float32Array(1764), hz: 22_050, audioCodes: [1] },
  "frame.done": { type: "frame.done", frameIndex: 1 },
  "frame.cancelled": { type: "frame.cancelled", frameIndex: 1 },
  "frame.timing": { type: "frame.timing", frameIndex: 0, totalMs: 1, stageMs: {} },
};
const sent = [dialect.greeting(), ...Object.values(EVENTS).map((event) => dialect.encode(event))].flatMap((json) =>
  json === null ? [] : [JSON.parse(json) as { readonly type: string; readonly error?: { readonly code: string } }],
);

test("every message that is read is documented, and no other", () => {
  expect([...rows("What a client sends").keys()]).toEqual(CLIENT_MESSAGE_TYPES);
});
test("every event is documented with its fields, and no other", () => {
  const types: Record<VoiceChatEventBody["type"], true> = {
    "session.created": true,
    "session.updated": true,
    "conversation.item.input_audio_transcription.delta": true,
    "response.text.delta": true,
    "response.function.delta": true,
    "response.audio.delta": true,
    "input_audio_buffer.committed": true,
    "response.done": true,
    "response.cancelled": true,
    "session.pong": true,
    error: true,
  };
  const documented = rows("What the server sends");
  expect([...documented.keys()]).toEqual(Object.keys(types));
  expect(new Set(sent.map(({ type }) => type))).toEqual(new Set(documented.keys()));
  for (const { type, event_id, ...rest } of sent as ({ type: string; event_id: string } & object)[]) {
    expect(event_id).toMatch(/^event_/);
    expect({ type, fields: fields(documented.get(type)) }).toEqual({ type, fields: Object.keys(rest) });
  }
});
test("the fields of a session are documented", () => {
  for (const field of ["system_prompt", "seed", "max_streaming_seconds", "model"]) {
    expect(DOCUMENT).toContain(`- \`session.${field}\`: `);
    const text = JSON.stringify({ type: "session.update", session: { [field]: null } });
    expect(dialect.decode(text, false)).toHaveProperty("command");
  }
  const other = JSON.stringify({ type: "session.update", session: { voice: null } });
  expect(dialect.decode(other, false)).toHaveProperty("refusal");
});
test("every error code is documented, and no other", () => {
  const codes: Record<VoiceChatErrorCode, true> = {
    invalid_request: true,
    server_busy: true,
    session_initialization_failed: true,
    inference_error: true,
  };
  expect([...rows("Errors").keys()]).toEqual(Object.keys(codes));
  for (const code of Object.keys(codes)) expect(ERROR_TABLE).toHaveProperty(code);
});
test("the limits are those of the code", () => {
  const { configureMs, quietMs, streamingSecondsMax } = DUPLEX_LIMITS;
  expect(Object.fromEntries(rows("Limits"))).toEqual({
    sessions: "1",
    "system prompt": `${PROMPT_TOKENS_MAX} tokens`,
    message: `${VOICECHAT_MESSAGE_BYTES_MAX / 2 ** 20} MiB`,
    "until session.update": `${configureMs / 1000} s`,
    "between messages": `${quietMs / 1000} s`,
    "audio of a session": `${streamingSecondsMax} s`,
    "unread output": "16 MiB",
  });
  expect(DOCUMENT).toContain(
    `${READ_AHEAD_CHARACTERS / 2 ** 20} MiB or ${READ_AHEAD_MESSAGES.toLocaleString("en")} messages`,
  );
});
test("the close codes are those of the code", () => {
  const table = (["message_too_large", "server_draining", "server_busy"] as const).map(
    (code) => ERROR_TABLE[code].wsClose,
  );
  const used = new Set([...Object.values(FAREWELLS).map(({ code }) => code), ...table]);
  expect([...rows("Close codes").keys()].map(Number)).toEqual([...used].sort((a, b) => Number(a) - Number(b)));
});
test("the metrics that it names exist", async () => {
  const metrics = await new Metrics().text();
  const names = [...DOCUMENT.matchAll(/`(antiphon_\w+)`/g)].map((match) => match[1]);
  expect(names.length).toBeGreaterThan(4);
  for (const name of names) expect(metrics).toContain(`# TYPE ${name} `);
});
