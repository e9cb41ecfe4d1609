/** One call: the microphone, the sound and the connection, opened side by side and let go of together. */
import type { ConnectionListener, ConnectionOptions, RealtimeConnection } from "./connection.ts";
import { isMicrophoneAllowed, openMicrophone, stopTracks } from "./microphone.ts";
import type { ServerFacts } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openVoiceChat } from "./voicechat-connection.ts";
import { openWebRtc } from "./webrtc-connection.ts";
import { openWebSocket, WIRE_HZ } from "./websocket-connection.ts";

/** A question of the browser that is answered sooner than this is not worth a word. */
const QUESTION_MS = 500;

export interface CallOptions {
  readonly settings: Settings;
  readonly withMicrophone: boolean;
  /** As far as they are known when the call begins. */
  readonly knownFacts: ServerFacts | null;
  readonly facts: Promise<ServerFacts>;
  /** The session that the connection is opened with, once the server is known. */
  session(facts: ServerFacts): Readonly<Record<string, unknown>>;
  /** The browser asks the user for the microphone, and waits; or waits no longer. */
  asking(isAsking: boolean): void;
  readonly listener: ConnectionListener;
  readonly signal: AbortSignal;
}

export class Call {
  readonly connection: RealtimeConnection;
  /** Null in a call by text alone. */
  readonly microphone: MediaStream | null;
  readonly #sound: Sound;

  /** @throws {TalkFailure}, or the signal's reason. Nothing stays open then. */
  static async open(options: CallOptions): Promise<Call> {
    const { settings, signal } = options;
    const sound = new Sound(settings, options.knownFacts);
    const microphone = options.withMicrophone ? openMicrophone(settings.deviceId) : null;
    // Its failure is waited for below; until then it is nobody's.
    microphone?.catch(() => {});
    try {
      // Users take their time to answer the browser. A server would not wait for them, so it is not asked before.
      if (microphone !== null && !isMicrophoneAllowed()) await answered(microphone, options);
      const facts = await options.facts;
      signal.throwIfAborted();
      const { listener } = options;
      const session = options.session(facts);
      const wanted = { microphone, audio: () => sound.context, session, key: settings.key, listener, signal };
      const connection = await openConnection(wanted, facts, settings);
      return new Call(connection, await microphone, sound);
    } catch (error) {
      microphone?.then(stopTracks, () => {});
      sound.close();
      throw error;
    }
  }

  private constructor(connection: RealtimeConnection, microphone: MediaStream | null, sound: Sound) {
    this.connection = connection;
    this.microphone = microphone;
    this.#sound = sound;
  }

  close(): void {
    this.connection.close();
    stopTracks(this.microphone);
    this.#sound.close();
  }
}

/** The page's sound, made when it is first wanted: the first of a page takes 50 ms in which nothing else happens. */
class Sound {
  readonly #options: AudioContextOptions;
  #context: AudioContext | null = null;

  constructor({ transport }: Settings, facts: ServerFacts | null) {
    const isWebSocket = facts?.dialect === "voicechat" || transport === "websocket";
    // At the wire's own rate, what a WebSocket brings is resampled by the browser.
    const sampleRate = isWebSocket ? { sampleRate: facts?.outputHz ?? WIRE_HZ } : {};
    this.#options = { latencyHint: "interactive", ...sampleRate };
    // What plays by itself has to begin with the click: some browsers give no sound after it.
    if (isWebSocket) void this.context;
  }

  get context(): AudioContext {
    if (this.#context === null) {
      this.#context = new AudioContext(this.#options);
      void this.#context.resume();
    }
    return this.#context;
  }
  close(): void {
    void this.#context?.close();
  }
}

async function answered(microphone: Promise<unknown>, { asking }: CallOptions): Promise<void> {
  const timer = setTimeout(() => asking(true), QUESTION_MS);
  try {
    await microphone;
  } finally {
    clearTimeout(timer);
    asking(false);
  }
}

function openConnection(
  options: ConnectionOptions,
  facts: ServerFacts,
  { transport }: Settings,
): Promise<RealtimeConnection> {
  if (facts.dialect === "voicechat") return openVoiceChat(options, facts);
  return transport === "websocket" ? openWebSocket(options) : openWebRtc(options);
}
