/**
 * Does anything grow? Hours of audio, as fast as the server takes them, into one session: a question, then quiet, over and
 * over. Prints the memory of the server's processes along the way as JSON.
 *
 *     npx tsx bench/soak.ts --pid SERVER_PID [--minutes 120] [--url ws://127.0.0.1:8765/v1/realtime]
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { floatToPcm16 } from "../src/audio/pcm.ts";
import { readWav } from "../src/audio/wav.ts";

const HZ = 16_000;
const QUIET_SECONDS = 18;
const CHUNK_BYTES = 2 * HZ * 0.1;
const UNSENT_BYTES_MAX = 256 * 1024;
const REPORTS = 12;

const { values } = parseArgs({
  options: {
    pid: { type: "string" },
    minutes: { type: "string", default: "120" },
    url: { type: "string", default: "ws://127.0.0.1:8765/v1/realtime" },
  },
});
const pid = values.pid ?? "";
const totalBytes = Number(values.minutes) * 60 * 2 * HZ;

const directory = new URL("../test/fixtures/questions/", import.meta.url);
const questions = readdirSync(directory)
  .filter((name) => name.endsWith(".wav"))
  .map((name) => Buffer.from(floatToPcm16(readWav(readFileSync(new URL(name, directory))).samples)));

const socket = new WebSocket(values.url, { perMessageDeflate: false });
const seen = { turns: 0, transcripts: 0, errors: 0 };
let configured: () => void = () => {};
const ready = new Promise<void>((resolve) => {
  configured = resolve;
});
socket.on("message", (data) => {
  const { type } = JSON.parse(data.toString()) as { type: string };
  if (type === "session.created") configure();
  if (type === "session.updated") configured();
  if (type === "input_audio_buffer.speech_stopped") seen.turns += 1;
  if (type === "conversation.item.input_audio_transcription.completed") seen.transcripts += 1;
  if (type === "error") seen.errors += 1;
});
await ready;

const startMs = performance.now();
const reports: object[] = [];
let sentBytes = 0;
for (let n = 0; sentBytes < totalBytes; n++) {
  const audio = Buffer.concat([questions[n % questions.length] as Buffer, Buffer.alloc(2 * HZ * QUIET_SECONDS)]);
  for (let at = 0; at < audio.length; at += CHUNK_BYTES) {
    const chunk = audio.subarray(at, at + CHUNK_BYTES);
    socket.send(JSON.stringify({ type: "input_audio_buffer.append", audio: chunk.toString("base64") }));
    sentBytes += chunk.length;
    while (socket.bufferedAmount > UNSENT_BYTES_MAX) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (sentBytes >= ((reports.length + 1) * totalBytes) / REPORTS) report();
}
// Answered when everything before it has been worked on.
const drained = new Promise<void>((resolve) => {
  socket.on("message", (data) => {
    if ((JSON.parse(data.toString()) as { type: string }).type === "input_audio_buffer.cleared") resolve();
  });
});
socket.send(JSON.stringify({ type: "input_audio_buffer.clear" }));
await drained;
report();
socket.close();
process.stdout.write(`${JSON.stringify({ minutes: Number(values.minutes), ...seen, reports }, null, 2)}\n`);

function configure(): void {
  const input = {
    format: { type: "audio/pcm", rate: HZ },
    turn_detection: { type: "server_vad", create_response: false },
  };
  socket.send(JSON.stringify({ type: "session.update", session: { type: "realtime", audio: { input } } }));
}

function report(): void {
  const audioMinutes = Math.round(sentBytes / (60 * 2 * HZ));
  const timesRealTime = Math.round(sentBytes / (2 * HZ) / ((performance.now() - startMs) / 1000));
  reports.push({ audioMinutes, timesRealTime, ...(pid === "" ? {} : { memoryMb: memoryMb() }) });
}

/** Resident memory of the server and of its model processes. */
function memoryMb(): number {
  const kilobytes = execFileSync("ps", ["-o", "rss=", "-p", pid, "--ppid", pid], { encoding: "utf8" })
    .trim()
    .split(/\s+/)
    .reduce((sum, each) => sum + Number(each), 0);
  return Math.round(kilobytes / 1024);
}
