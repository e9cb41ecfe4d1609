/** The server with real models that all test files share, and a client for it. */
import { readFileSync } from "node:fs";
import { inject } from "vitest";
import { WebSocket } from "ws";
import { floatToPcm16 } from "../../src/audio/pcm.ts";
import { readWav } from "../../src/audio/wav.ts";

export interface LiveServer {
  /** `http://127.0.0.1:…` */
  readonly url: string;
  /** The same over https, with a certificate that `caFile` (PEM) makes trusted. */
  readonly secureUrl: string;
  readonly caFile: string;
}

/** Loading takes a while: call it in `beforeAll` with `LIVE_SERVER_MS`. */
export async function liveServer(): Promise<LiveServer> {
  const response = await fetch(inject("liveServerLauncher"));
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as LiveServer;
}
export const LIVE_SERVER_MS = 240_000;

const DIRECTORY = new URL("../fixtures/questions/", import.meta.url);

/** Name -> text of the recorded questions: ten, in voices that the server does not have. */
export const QUESTIONS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL("questions.json", DIRECTORY), "utf8"),
);
export const questionFile = (name: string): string => new URL(`${name}.wav`, DIRECTORY).pathname;
/** PCM16 at 16,000 Hz. */
export const questionPcm = (name: string): Buffer =>
  Buffer.from(floatToPcm16(readWav(readFileSync(questionFile(name))).samples));

export type Event = { readonly type: string } & Record<string, unknown>;

/** Speaks the protocol as any client would, at 16,000 Hz in and 24,000 Hz out. */
export class LiveClient {
  readonly socket: WebSocket;
  readonly events: Event[] = [];
  #seen = 0;
  #closed = false;
  #wake: () => void = () => {};
  constructor(server: LiveServer, query = "") {
    this.socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/realtime${query}`);
    this.socket.on("message", (data) => {
      this.events.push(JSON.parse(data.toString()) as Event);
      this.#wake();
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.#closed = true;
      this.#wake();
    });
  }
  static async open(server: LiveServer, session: object = {}): Promise<LiveClient> {
    const client = new LiveClient(server);
    await client.until("session.created");
    const audio = { input: { format: { type: "audio/pcm", rate: 16_000 } } };
    client.send({ type: "session.update", session: { type: "realtime", audio, ...session } });
    await client.until("session.updated");
    return client;
  }
  send(event: object): void {
    this.socket.send(JSON.stringify(event));
  }
  /** The next event of this type, after those that were waited for. Fails on an error event that was not asked for. */
  async until(type: string, where: (event: Event) => boolean = () => true): Promise<Event> {
    for (;;) {
      for (; this.#seen < this.events.length; ) {
        const event = this.events[this.#seen++] as Event;
        if (event.type === type && where(event)) return event;
        if (event.type === "error") throw new Error(`waiting for ${type}: ${JSON.stringify(event)}`);
      }
      if (this.#closed) throw new Error(`closed while waiting for ${type}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
  /** Says `pcm` and the silence after it, as fast as it goes: media time is what counts. */
  say(pcm: Buffer, silenceMs = 1200): void {
    const audio = Buffer.concat([pcm, Buffer.alloc(32 * silenceMs)]);
    for (let at = 0; at < audio.length; at += 3200) {
      this.send({ type: "input_audio_buffer.append", audio: audio.subarray(at, at + 3200).toString("base64") });
    }
  }
  /** Says a recorded question and waits for the end of the answer. */
  async ask(name: string): Promise<Answer> {
    const before = this.events.length;
    this.say(questionPcm(name));
    const heard = await this.until("conversation.item.input_audio_transcription.completed");
    const done = await this.until("response.done");
    const of = (type: string): Event[] => this.events.slice(before).filter((event) => event.type === type);
    return {
      transcript: String(heard["transcript"]),
      text: of("response.output_audio_transcript.delta")
        .map((event) => event["delta"])
        .join(""),
      pcm: Buffer.concat(
        of("response.output_audio.delta").map((event) => Buffer.from(String(event["delta"]), "base64")),
      ),
      status: String((done["response"] as { status: string }).status),
    };
  }
  close(): void {
    this.socket.terminate();
  }
}

export interface Answer {
  readonly transcript: string;
  readonly text: string;
  /** PCM16 at 24,000 Hz. */
  readonly pcm: Buffer;
  readonly status: string;
}

/** Has the server transcribe PCM16 at 24,000 Hz. */
export async function transcribe(server: LiveServer, pcm: Buffer): Promise<string> {
  const client = new LiveClient(server, "?intent=transcription");
  try {
    await client.until("session.created");
    client.send({
      type: "session.update",
      session: { type: "transcription", audio: { input: { turn_detection: null } } },
    });
    await client.until("session.updated");
    for (let at = 0; at < pcm.length; at += 48_000) {
      client.send({ type: "input_audio_buffer.append", audio: pcm.subarray(at, at + 48_000).toString("base64") });
    }
    client.send({ type: "input_audio_buffer.commit" });
    return String((await client.until("conversation.item.input_audio_transcription.completed"))["transcript"]);
  } finally {
    client.close();
  }
}
