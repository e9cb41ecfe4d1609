/** Every way in which a session with a full-duplex model begins and ends, and what the next one then hears. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Server } from "../../src/server/server.ts";
import { append, frames, Peer } from "./voicechat-server.ts";

export type Ending =
  | "commit"
  | "cancel"
  | "vanish"
  | "vanish unconfigured"
  | "vanish opening"
  | "goodbye behind a backlog"
  | "error"
  | "too large"
  | "limit"
  | "busy"
  | "kill";

export const ENDINGS: readonly Ending[] = [
  "commit",
  "cancel",
  "vanish",
  "vanish unconfigured",
  "vanish opening",
  "goodbye behind a backlog",
  "error",
  "too large",
  "limit",
  "busy",
];

/** Opens a session and ends it so. */
export async function endSession(server: Server, ending: Ending, seed: number): Promise<void> {
  if (ending === "vanish unconfigured" || ending === "vanish opening") {
    const peer = new Peer(server);
    await peer.until("session.created");
    if (ending === "vanish unconfigured") peer.socket.terminate();
    else {
      // Long enough to be taken in while the peer goes.
      peer.say({ type: "session.update", session: { seed, system_prompt: "Be brief. ".repeat(200) } });
      peer.socket.close();
    }
    return vacated(server);
  }
  const peer = await Peer.ready(server, { seed, ...(ending === "limit" ? { max_streaming_seconds: 0.16 } : {}) });
  switch (ending) {
    case "commit":
      peer.say(append(frames(2, 0.01)), { type: "input_audio_buffer.commit" });
      break;
    case "cancel":
      peer.say(append(frames(2, 0.02)), { type: "session.cancel" });
      break;
    case "error":
      peer.say({ type: "input_audio_buffer.append", audio: "#" }, { type: "what" }, "[", { type: "session.update" });
      await peer.until("error", 4);
      peer.socket.close();
      break;
    case "goodbye behind a backlog":
      for (let count = 0; count < 300; count++) peer.say(append(frames(1)));
      peer.socket.close();
      break;
    case "too large":
      peer.say(" ".repeat(2 ** 20 + 1));
      break;
    case "limit":
      peer.say(append(frames(4)));
      await peer.until("error");
      peer.socket.close();
      break;
    case "busy": {
      const second = new Peer(server);
      if ((await second.closed) !== 1013) throw new Error("a second session was let in");
      peer.say({ type: "response.cancel" });
      break;
    }
    case "kill":
      peer.say(append(frames(100)));
      await peer.until("response.audio.delta");
      for (const pid of modelProcesses()) process.kill(pid, "SIGKILL");
      await peer.until("error");
      peer.say({ type: "input_audio_buffer.commit" });
      if ((await peer.closed) !== 1011) throw new Error("a model that is gone ended its session as if it were well");
      break;
    default:
      peer.say(append(frames(100)));
      await peer.until("response.audio.delta");
      peer.socket.terminate();
  }
  await peer.closed;
  return vacated(server);
}

/** A vanished peer is noticed when the server next hears of its socket. */
async function vacated(server: Server): Promise<void> {
  while (!(await server.metrics.text()).includes("\nantiphon_sessions_open 0\n")) await delay(2);
}

/** The processes of models that `parent` started: this process, where no other is named. */
export const modelProcesses = (parent: number = process.pid): number[] => {
  const lines = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(parent)], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line.includes("workers/entry")).map((line) => Number.parseInt(line, 10));
};

/** What a session hears in answer to `pcm`, events without ids, as a digest. */
export async function answerDigest(server: Server, pcm: Float32Array): Promise<string> {
  const peer = await Peer.ready(server, { seed: 5, system_prompt: "Be brief." });
  peer.say(append(pcm), { type: "input_audio_buffer.commit" });
  await peer.closed;
  const plain = peer.heard.map(({ event_id, session, ...event }) => event);
  if (plain.at(-1)?.type !== "response.done") throw new Error(`no answer: ${JSON.stringify(peer.errors)}`);
  return createHash("sha256").update(JSON.stringify(plain)).digest("hex");
}
