import { expect, it } from "vitest";
import { Conversation } from "../support/conversation.ts";

it("answers a spoken question with the whole lifecycle, in order", () => {
  const talk = new Conversation();
  talk.listen(1000);
  const types = talk.during(() => {
    talk.engine.startSpeech("s1", 8000);
    talk.engine.hear("s1", "What is");
    talk.engine.stopSpeech("s1");
    talk.engine.understand("s1", "What is the capital of France?");
    const { responseId } = talk.engine.lastRequest;
    talk.engine.say(responseId, "It is Paris.", 900);
    talk.engine.end(responseId);
  });
  expect(types.filter((type) => type !== "response.output_audio.delta")).toEqual([
    "input_audio_buffer.speech_started",
    "conversation.item.input_audio_transcription.delta",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.created",
    "conversation.item.done",
    "conversation.item.input_audio_transcription.completed",
    "response.created",
    "rate_limits.updated",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
  ]);
  const bytes = talk.of("response.output_audio.delta").map((event) => Buffer.from(event.delta, "base64").length);
  expect(bytes.reduce((sum, count) => sum + count, 0)).toBe(900 * 48);
  expect(Math.max(...bytes)).toBeLessThanOrEqual(200 * 48);
  expect(talk.last("response.done").response).toMatchObject({
    status: "completed",
    status_details: { type: "completed" },
    usage: {
      input_tokens: 20,
      output_tokens: 25,
      total_tokens: 45,
      output_token_details: { text_tokens: 7, audio_tokens: 18 },
    },
    output: [{ status: "completed", content: [{ type: "output_audio", transcript: "It is Paris." }] }],
  });
  expect(talk.last("input_audio_buffer.speech_started").audio_start_ms).toBe(500);
});
