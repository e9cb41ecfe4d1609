import { describe, expect, test } from "vitest";
import {
  type ClientMessage,
  type Read,
  readEnvelope,
  readMessage,
} from "../../src/protocol/voicechat/client-messages.ts";

function read(value: unknown): Read<ClientMessage> {
  const envelope = readEnvelope(typeof value === "string" ? value : JSON.stringify(value));
  return envelope.ok ? readMessage(envelope.value) : envelope;
}

describe("what is not an object with a known type is an invalid_request", () => {
  test.each([
    ["not JSON", "{"],
    ["an array", "[]"],
    ["null", "null"],
    ["a number", "3"],
    ["no type", "{}"],
    ["a type that is not a string", '{"type":3}'],
    ["an unknown type", '{"type":"response.create"}'],
  ])("%s", (_name, text) => {
    expect(read(text)).toMatchObject({ ok: false, refusal: { code: "invalid_request" } });
  });

  test("an unknown type is answered with what there is, and with the nearest name", () => {
    const answer = read({ type: "input_audio_buffer.apend" });
    expect(answer).toMatchObject({ ok: false });
    expect(answer.ok ? "" : answer.refusal.message).toMatch(/did you mean 'input_audio_buffer.append'.*session.ping/);
  });
});

test("session.update has the defaults of the spec", () => {
  const session = { systemPrompt: null, seed: 0, maxStreamingSeconds: null };
  expect(read({ type: "session.update" })).toEqual({ ok: true, value: { type: "session.update", session } });
  expect(
    read({
      type: "session.update",
      session: { system_prompt: "Hi.", seed: 7, max_streaming_seconds: 1.5, model: "x" },
    }),
  ).toEqual({
    ok: true,
    value: { type: "session.update", session: { systemPrompt: "Hi.", seed: 7, maxStreamingSeconds: 1.5 } },
  });
});

test.each([
  [{ seed: -1 }, "session.seed"],
  [{ seed: 1.5 }, "session.seed"],
  [{ seed: "1" }, "session.seed"],
  [{ max_streaming_seconds: 0 }, "session.max_streaming_seconds"],
  [{ max_streaming_seconds: "x" }, "session.max_streaming_seconds"],
  [{ system_prompt: 3 }, "session.system_prompt"],
  [{ voice: "Eve" }, "session.voice"],
  ["text", "session"],
])("session.update with %j names the field", (session, field) => {
  const answer = read({ type: "session.update", session });
  expect(answer).toMatchObject({ ok: false, refusal: { code: "session_initialization_failed" } });
  expect(answer.ok ? "" : answer.refusal.message).toContain(field);
});

test("append keeps the rate for the session to judge", () => {
  const type = "input_audio_buffer.append";
  expect(read({ type, audio: "AAA=" })).toEqual({
    ok: true,
    value: { type: "append", audio: "AAA=", sampleHz: 16_000 },
  });
  expect(read({ type, audio: "", sample_rate: 24_000 })).toMatchObject({ value: { sampleHz: 24_000 } });
});

test.each([
  ["no audio", {}, /base64/],
  ["audio that is not text", { audio: 3 }, /number/],
  ["a rate that is no integer", { audio: "", sample_rate: 16000.5 }, /integer, got 16000.5/],
  ["a rate that is text", { audio: "", sample_rate: "16000" }, /integer, got a string/],
])("append with %s is an inference_error", (_name, fields, message) => {
  const answer = read({ type: "input_audio_buffer.append", ...fields });
  expect(answer).toMatchObject({ ok: false, refusal: { code: "inference_error" } });
  expect(answer.ok ? "" : answer.refusal.message).toMatch(message);
});

test("commit pads by default; both cancels are one; ping is ping", () => {
  expect(read({ type: "input_audio_buffer.commit" })).toEqual({
    ok: true,
    value: { type: "commit", padPartial: true },
  });
  expect(read({ type: "input_audio_buffer.commit", pad_partial: false })).toMatchObject({
    value: { padPartial: false },
  });
  expect(read({ type: "input_audio_buffer.commit", pad_partial: 0 })).toMatchObject({ ok: false });
  for (const type of ["session.cancel", "response.cancel"])
    expect(read({ type })).toMatchObject({ value: { type: "cancel" } });
  expect(read({ type: "session.ping" })).toEqual({ ok: true, value: { type: "ping" } });
});
