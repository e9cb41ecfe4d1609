/**
 * Asks a recorded question with OpenAI's own JavaScript client, and keeps the spoken answer.
 *
 *     npx antiphon serve --tls self-signed        prints where its certificate is; the client insists on wss:
 *     export NODE_EXTRA_CA_CERTS=CERT.pem OPENAI_BASE_URL=https://127.0.0.1:8765/v1 OPENAI_API_KEY=any
 *     node examples/ask.mjs question.wav answer.pcm
 *
 * The question: 16-bit mono WAV at 16,000 or 24,000 Hz. The answer: raw 16-bit mono at 24,000 Hz.
 */
import { readFileSync, writeFileSync } from "node:fs";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const [questionFile, answerFile] = process.argv.slice(2);
const question = readFileSync(questionFile);
const rate = question.readUInt32LE(24);

// Reads OPENAI_BASE_URL and OPENAI_API_KEY; without --api-key the server takes any key.
const client = new OpenAI();
const realtime = new OpenAIRealtimeWS({ model: "gpt-realtime" }, client);
const answer = [];

realtime.on("session.created", () => {
  realtime.send({
    type: "session.update",
    session: {
      type: "realtime",
      instructions: "Answer in one short sentence.",
      audio: { input: { format: { type: "audio/pcm", rate } } },
    },
  });
});
realtime.on("session.updated", () => {
  // The recording, and the silence after it that ends the turn.
  const audio = Buffer.concat([question.subarray(44), Buffer.alloc(2 * rate)]);
  for (let at = 0; at < audio.length; at += rate / 5) {
    realtime.send({ type: "input_audio_buffer.append", audio: audio.subarray(at, at + rate / 5).toString("base64") });
  }
});
realtime.on("conversation.item.input_audio_transcription.completed", ({ transcript }) =>
  console.log("You:", transcript),
);
realtime.on("response.output_audio.delta", ({ delta }) => answer.push(Buffer.from(delta, "base64")));
realtime.on("response.output_audio_transcript.done", ({ transcript }) => console.log("Answer:", transcript));
realtime.on("response.done", () => {
  writeFileSync(answerFile, Buffer.concat(answer));
  realtime.close();
});
realtime.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
