/**
 * Does a VoiceChat server grow, tire or remember? A thousand sessions that end in every way, and one of ten minutes, on a
 * tiny checkpoint. Prints JSON: memory along the way, whether every later answer equals the first byte for byte, and the
 * time of a frame in the first and in the last minute.
 *
 *     node --expose-gc --import tsx bench/voicechat-sessions.ts [--sessions 1000] [--minutes 10] [--kills 10]
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readWav } from "../src/audio/wav.ts";
import type { Server } from "../src/server/server.ts";
import { FIXTURES } from "../test/support/voicechat.ts";
import { answerDigest, ENDINGS, endSession, modelProcesses } from "../test/support/voicechat-endings.ts";
import { append, Peer, voiceChatServer } from "../test/support/voicechat-server.ts";

const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "1000" },
    minutes: { type: "string", default: "10" },
    kills: { type: "string", default: "10" },
  },
});
const sessions = Number(values.sessions);
const killEvery = Math.ceil(sessions / Math.max(1, Number(values.kills)));
const REPORTS = 10;
const FRAMES_PER_MINUTE = 750;
const AHEAD_FRAMES = 50;

const question = readWav(readFileSync(`${FIXTURES}/audio/question.wav`)).samples;

/** Megabytes: of this process, server and clients together, what of it is in use, and of the model's. */
function memory(): { readonly serverMb: number; readonly usedMb: number; readonly modelMb: number[] } {
  globalThis.gc?.();
  const modelMb = modelProcesses().map((pid) => {
    const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Math.round(Number(kilobytes) / 1024);
  });
  const { rss, heapUsed, external } = process.memoryUsage();
  return { serverMb: Math.round(rss / 2 ** 20), usedMb: Math.round((heapUsed + external) / 2 ** 20), modelMb };
}

async function manySessions(server: Server): Promise<object> {
  const probe = question.subarray(0, 6 * 1280);
  const first = await answerDigest(server, probe);
  const reports: object[] = [{ session: 0, ...memory() }];
  let compared = 0;
  let different = 0;
  for (let n = 1; n <= sessions; n++) {
    // Before a kill, which would hide what has grown.
    if (n % Math.ceil(sessions / REPORTS) === 0) reports.push({ session: n, ...memory() });
    const kill = Number(values.kills) > 0 && n % killEvery === 0;
    await endSession(server, kill ? "kill" : (ENDINGS[n % ENDINGS.length] ?? "commit"), n);
    // A probe after each would be half of the sessions; one after each way of ending is enough.
    if (kill || n % 9 === 0) {
      compared += 1;
      if ((await answerDigest(server, probe)) !== first) different += 1;
    }
  }
  return { sessions, compared, different, reports };
}

async function oneLongSession(server: Server, minutes: number): Promise<object> {
  const peer = await Peer.ready(server);
  const total = minutes * FRAMES_PER_MINUTE;
  const marks: object[] = [];
  let [seconds, cpuMs] = [await frameSeconds(server), modelCpuMs()];
  let answered = 0;
  for (let sent = 0; sent < total; sent++) {
    const at = (sent * 1280) % (question.length - 1280);
    peer.say(append(question.subarray(at, at + 1280)));
    if (sent + 1 - answered < AHEAD_FRAMES && sent + 1 < total) continue;
    answered = sent + 1;
    await peer.until("response.audio.delta", answered - marks.length * FRAMES_PER_MINUTE);
    if (answered % FRAMES_PER_MINUTE !== 0 && answered < total) continue;
    const [nowSeconds, nowCpuMs] = [await frameSeconds(server), modelCpuMs()];
    const frameMs = ((nowSeconds - seconds) * 1000) / FRAMES_PER_MINUTE;
    const frameCpuMs = (nowCpuMs - cpuMs) / FRAMES_PER_MINUTE;
    marks.push({ minute: marks.length + 1, frameMs, frameCpuMs, ...memory() });
    [seconds, cpuMs] = [nowSeconds, nowCpuMs];
    peer.heard.length = 0;
  }
  peer.say(append(new Float32Array(1280)), { type: "input_audio_buffer.commit" });
  const closeCode = await peer.closed;
  return { frames: total, beyondTheLimit: peer.errors, end: peer.heard.at(-1), closeCode, marks };
}

/** Processor time of the model's process: a busy machine does not change it. */
function modelCpuMs(): number {
  const [pid] = modelProcesses();
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  // User and system time, in ticks of 10 ms.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function frameSeconds(server: Server): Promise<number> {
  return Number(/antiphon_frame_seconds_sum\{stage="total"\} (\S+)/.exec(await server.metrics.text())?.[1] ?? 0);
}

const server = await voiceChatServer();
const many = await manySessions(server);
const long = Number(values.minutes) > 0 ? await oneLongSession(server, Number(values.minutes)) : null;
await server[Symbol.asyncDispose]();
process.stdout.write(`${JSON.stringify({ many, long }, null, 2)}\n`);
