/**
 * How long people wait: recorded questions, in real time, to a running server; median and p95 per stage as JSON. Each
 * answer is heard to its end before the next question, as people do.
 *
 *     npx tsx bench/turn-latency.ts [--url ws://127.0.0.1:8765/v1/realtime] [--rounds 3] [--api-key KEY] [--tls-ca FILE]
 *
 * `speech_end` is when the last sample of the question was sent; the others count from `speech_stopped` as it arrives.
 */
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { floatToPcm16 } from "../src/audio/pcm.ts";
import { readWav } from "../src/audio/wav.ts";
import { RealtimeClient } from "../src/cli/realtime-client.ts";
import type { ServerEvent } from "../src/protocol/openai/server-events.ts";
import { systemClock } from "../src/util/clock.ts";

const CHUNK_MS = 20;
const HZ = 16_000;
const ANSWER_HZ = 24_000;
/** Between the end of an answer and the next question. */
const BREATH_MS = 300;
const CHUNK_SAMPLES = (HZ * CHUNK_MS) / 1000;
const STAGES = ["speech_end_to_stopped", "transcript", "response", "first_text", "first_audio", "done"] as const;
type Stage = (typeof STAGES)[number];

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "ws://127.0.0.1:8765/v1/realtime" },
    rounds: { type: "string", default: "3" },
    "api-key": { type: "string" },
    "tls-ca": { type: "string" },
  },
});

const directory = new URL("../test/fixtures/questions/", import.meta.url);
const questions = readdirSync(directory)
  .filter((name) => name.endsWith(".wav"))
  .map((name) => ({ name, pcm: readWav(readFileSync(new URL(name, directory))).samples }));

await using client = await RealtimeClient.connect({
  url: values.url,
  apiKey: values["api-key"] ?? null,
  model: null,
  ca: values["tls-ca"] === undefined ? null : readFileSync(values["tls-ca"], "utf8"),
});
const events = client.events[Symbol.asyncIterator]();
await until("session.created");
client.send({
  type: "session.update",
  session: {
    type: "realtime",
    instructions: "Answer in one short sentence.",
    max_output_tokens: 60,
    audio: { input: { format: { type: "audio/pcm", rate: HZ } } },
  },
});
await until("session.updated");

const times = new Map<Stage, number[]>(STAGES.map((stage) => [stage, []]));
let firstTurn: Partial<Record<Stage, number>> | null = null;
for (let round = 0; round < Number(values.rounds); round++) {
  for (const { pcm } of questions) {
    const turn = await ask(pcm);
    firstTurn ??= turn;
    for (const [stage, ms] of Object.entries(turn)) times.get(stage as Stage)?.push(ms);
  }
}

const summary = Object.fromEntries(
  [...times].map(([stage, all]) => [stage, { median: quantile(all, 0.5), p95: quantile(all, 0.95) }]),
);
const machine = { cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, node: process.version };
process.stdout.write(
  `${JSON.stringify({ machine, turns: times.get("done")?.length, unit: "ms", stages: summary, firstTurn }, null, 2)}\n`,
);

/** One question as a microphone would bring it; silence goes on until the answer is complete. */
async function ask(question: Float32Array): Promise<Record<Stage, number>> {
  const marks = new Map<string, number>();
  let speechEndMs = 0;
  let playedUntilMs = 0;
  let answered = false;
  const speaking = (async () => {
    const startMs = systemClock.nowMs();
    for (let chunk = 0; !answered; chunk++) {
      const at = chunk * CHUNK_SAMPLES;
      const pcm = at < question.length ? question.subarray(at, at + CHUNK_SAMPLES) : new Float32Array(CHUNK_SAMPLES);
      client.send({ type: "input_audio_buffer.append", audio: Buffer.from(floatToPcm16(pcm)).toString("base64") });
      if (at < question.length) speechEndMs = systemClock.nowMs();
      const waitMs = startMs + (chunk + 1) * CHUNK_MS - systemClock.nowMs();
      await new Promise<void>((resolve) => void systemClock.schedule(Math.max(0, waitMs), resolve));
    }
  })();
  await until("response.done", (event) => {
    const nowMs = systemClock.nowMs();
    if (!marks.has(event.type)) marks.set(event.type, nowMs);
    if (event.type !== "response.output_audio.delta") return;
    const samples = Buffer.byteLength(event.delta, "base64") / 2;
    playedUntilMs = Math.max(playedUntilMs, nowMs) + (1000 * samples) / ANSWER_HZ;
  });
  const listenMs = Math.max(0, playedUntilMs - systemClock.nowMs()) + BREATH_MS;
  await new Promise<void>((resolve) => void systemClock.schedule(listenMs, resolve));
  answered = true;
  await speaking;
  const stoppedMs = marks.get("input_audio_buffer.speech_stopped") ?? Number.NaN;
  const since = (type: string): number => Math.round((marks.get(type) ?? Number.NaN) - stoppedMs);
  return {
    speech_end_to_stopped: Math.round(stoppedMs - speechEndMs),
    transcript: since("conversation.item.input_audio_transcription.completed"),
    response: since("response.created"),
    first_text: since("response.output_audio_transcript.delta"),
    first_audio: since("response.output_audio.delta"),
    done: since("response.done"),
  };
}

async function until(type: string, see: (event: ServerEvent) => void = () => {}): Promise<void> {
  for (;;) {
    const next = await events.next();
    if (next.done === true) throw new Error(`the connection ended before ${type}`);
    if (next.value.type === "error") throw new Error(next.value.error.message);
    see(next.value);
    if (next.value.type === type) return;
  }
}

/** By the nearest rank. */
function quantile(all: readonly number[], share: number): number | null {
  const sorted = all.filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}
