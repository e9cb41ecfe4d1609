import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ClientError } from "../../src/errors.ts";
import { CLIENT_EVENTS, MOVED_FIELDS } from "../../src/protocol/openai/client-events.ts";
import { parseEvent } from "../../src/protocol/parse.ts";

const parse = (text: string) => parseEvent(text, { schemas: CLIENT_EVENTS, movedFields: MOVED_FIELDS });

function refusal(event: unknown): ClientError & { eventId: string | null } {
  const parsed = parse(typeof event === "string" ? event : JSON.stringify(event));
  if (parsed.ok) throw new Error("was accepted");
  return Object.assign(parsed.refusal, { eventId: parsed.eventId });
}

const update = (session: object): object => ({ type: "session.update", session: { type: "realtime", ...session } });

describe("a frame", () => {
  it.each([
    ["hello", "invalid_json", null, "not valid JSON"],
    ["", "invalid_json", null, "not valid JSON"],
    ["[]", "invalid_event", null, "got an array"],
    ["null", "invalid_event", null, "got null"],
    ["7", "invalid_event", null, "got a number"],
    ["{}", "missing_required_parameter", "type", "'session.update'"],
    ['{"type":"respons.create"}', "unknown_or_invalid_event", "type", "did you mean 'response.create'"],
    ['{"type":7}', "unknown_or_invalid_event", "type", "Unknown event type 7"],
    ['{"type":{"toString":0}}', "unknown_or_invalid_event", "type", "an object"],
    ['{"type":"constructor"}', "unknown_or_invalid_event", "type", "'constructor'"],
  ])("%s is refused with %s", (text, code, param, message) => {
    expect(refusal(text)).toMatchObject({ code, param, message: expect.stringContaining(message) });
  });

  it("keeps the client's event id for the answer", () => {
    expect(refusal({ type: "nonsense", event_id: "evt_7" }).eventId).toBe("evt_7");
    expect(refusal({ type: "response.cancel", event_id: "evt_8", x: 1 }).eventId).toBe("evt_8");
  });

  it("never makes an exception, whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.jsonValue().map((value) => JSON.stringify({ type: "session.update", session: value })),
        ),
        (text) => {
          parse(text);
        },
      ),
      { numRuns: 2000, seed: 7 },
    );
  });
});

describe("a field", () => {
  it("that is unknown is refused with what would be accepted, and the nearest of it", () => {
    expect(refusal(update({ instruction: "x" }))).toMatchObject({
      code: "unknown_parameter",
      param: "session.instruction",
      message: expect.stringMatching(/did you mean 'instructions'; expected one of 'type', 'model', 'instructions'/),
    });
    const turn_detection = { type: "server_vad", silence_ms: 200 };
    expect(refusal(update({ audio: { input: { turn_detection } } }))).toMatchObject({
      param: "session.audio.input.turn_detection.silence_ms",
      message: expect.stringContaining("'silence_duration_ms'"),
    });
    // Of a union, only the branch that the value names is offered.
    expect(refusal(update({ audio: { input: { turn_detection } } })).message).not.toContain("eagerness");
  });

  // "…, which is '[object Object]' in this version of the API": what every object has was taken for a moved field.
  it("is unknown by whatever name", () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      const session = JSON.parse(`{"type":"realtime","${name}":1}`);
      expect(refusal({ type: "session.update", session }).message).not.toContain("in this version");
    }
  });

  it("of the beta is refused with its new place", () => {
    expect(refusal(update({ modalities: ["text"] })).message).toContain("'output_modalities' in this version");
    expect(refusal(update({ turn_detection: null })).message).toContain("'audio.input.turn_detection'");
  });

  it("of a wrong value names its path, what was expected and what came", () => {
    const cases: [object, string, string][] = [
      [update({ audio: { output: { speed: 3 } } }), "session.audio.output.speed", "at most 1.5, got 3"],
      [
        update({ audio: { input: { format: { type: "audio/pcm", rate: 44100 } } } }),
        "session.audio.input.format.rate",
        "44100",
      ],
      [update({ max_output_tokens: 0 }), "session.max_output_tokens", "0"],
      [update({ output_modalities: ["audio", "text"] }), "session.output_modalities", "exactly one"],
      [
        { type: "conversation.item.truncate", item_id: "a", content_index: 0, audio_end_ms: "1" },
        "audio_end_ms",
        "expected number",
      ],
      [
        {
          type: "conversation.item.create",
          item: { type: "message", role: "user", content: [{ type: "text", text: "a" }] },
        },
        "item.content[0].type",
        "'input_text'",
      ],
    ];
    for (const [event, param, message] of cases) {
      expect(refusal(event)).toMatchObject({ code: "invalid_value", param, message: expect.stringContaining(message) });
    }
  });

  it("that is missing is named", () => {
    expect(refusal({ type: "conversation.item.delete" })).toMatchObject({
      code: "missing_required_parameter",
      param: "item_id",
    });
  });

  it("that is known and not honoured is refused as such", () => {
    for (const session of [
      { audio: { input: { noise_reduction: { type: "far_field" } } } },
      { prompt: { id: "p" } },
      { reasoning: { effort: "low" } },
      { include: ["item.input_audio_transcription.logprobs"] },
      { tools: [{ type: "mcp", server_label: "x" }] },
    ]) {
      expect(refusal(update(session)).code).toBe("unsupported_parameter");
    }
  });

  it("never brings a prompt into the message", () => {
    const secret = "the secret words of a prompt";
    expect(refusal(update({ instructions: { secret } })).message).not.toContain("secret");
    expect(refusal(update({ tool_choice: secret })).message).not.toContain("secret");
  });
});
