/** The client's side of a session with a full-duplex model: audio in at the model's pace, words and audio out. */
import { base64ToBytes, floatToPcm16, pcm16ToFloat } from "../audio/pcm.ts";
import { AppError, UpstreamError } from "../errors.ts";
import { isVoiceChatSession, type VoiceChatEvent } from "../protocol/voicechat/server-events.ts";
import { OptionGroup, type OptionTable } from "../util/options.ts";
import type { CliContext } from "./context.ts";
import type { DuplexView } from "./duplex-view.ts";
import { RealtimeClient, trustedCertificate } from "./realtime-client.ts";
import { type ServerSettings, serverOptions } from "./server-options.ts";

export const VOICECHAT_INPUT_HZ = 16_000;
export const VOICECHAT_OUTPUT_HZ = 22_050;
/** 80 ms: what the model takes at a time, and answers. */
export const VOICECHAT_FRAME_SAMPLES = 1280;

export interface VoiceChatClientSettings extends ServerSettings {
  readonly systemPrompt: string | null;
  readonly seed: number;
}

const session = new OptionGroup("Session");

/** Options of both commands. */
export const VOICECHAT_CLIENT_OPTIONS: OptionTable<VoiceChatClientSettings> = {
  ...serverOptions(["ANTIPHON_API_KEY"]),
  systemPrompt: session.maybeText("How the model is to answer.", { env: [] }),
  seed: session.integer(0, [0, Number.MAX_SAFE_INTEGER], "The same seed gives the same answer.", { env: [] }),
};

/** Frames that wait for their answer before more are sent: enough for the way there and back, little to wait for. */
const AHEAD_FRAMES_MAX = 50;

type Sample = (pcm: Float32Array) => void;

export class VoiceChatClient implements AsyncDisposable {
  readonly #client: RealtimeClient<VoiceChatEvent>;
  readonly #view: DuplexView;
  readonly #onAudio: Sample;
  readonly #settings: VoiceChatClientSettings;
  #sentSamples = 0;
  #answeredFrames = 0;
  #failures: string[] = [];
  #state: "opening" | "ready" | "done" | "closed" = "opening";
  #wake: () => void = () => {};

  private constructor(
    client: RealtimeClient<VoiceChatEvent>,
    settings: VoiceChatClientSettings,
    view: DuplexView,
    onAudio: Sample,
  ) {
    this.#client = client;
    this.#settings = settings;
    this.#view = view;
    this.#onAudio = onAudio;
  }
  /** Connects; `run` then configures the session. @throws {AppError} as `RealtimeClient.connect`. */
  static async connect(
    url: string,
    settings: VoiceChatClientSettings,
    view: DuplexView,
    onAudio: Sample,
    signal: AbortSignal,
  ): Promise<VoiceChatClient> {
    const { apiKey, tlsCa } = settings;
    const ca = trustedCertificate(tlsCa);
    const client = await RealtimeClient.connect<VoiceChatEvent>({ url, apiKey, model: null, ca, signal });
    return new VoiceChatClient(client, settings, view, onAudio);
  }
  /**
   * Answers events until the server ends the session.
   * @throws {UpstreamError} where it takes none, or ends it before its time.
   */
  async run(): Promise<void> {
    try {
      for await (const event of this.#client.events) this.#take(event);
    } finally {
      const wasDone = this.#state === "done";
      this.#state = "closed";
      this.#wake();
      this.#view.end();
      if (!wasDone) this.#failures.push(`the server closed the connection (${this.#client.closeCode ?? "no code"})`);
    }
  }
  /** What the server said went wrong. */
  get failures(): readonly string[] {
    return this.#failures;
  }
  /** False once the session takes no more audio. */
  get listening(): boolean {
    return this.#state === "ready" && this.#failures.length === 0;
  }
  /** Audio that was sent and is not answered yet. */
  get aheadFrames(): number {
    return Math.floor(this.#sentSamples / VOICECHAT_FRAME_SAMPLES) - this.#answeredFrames;
  }
  /** Resolves when the model can hear, or never will. */
  async opened(): Promise<void> {
    while (this.#state === "opening" && this.#failures.length === 0) await this.#change();
  }
  /** Resolves when the server has little left to answer, or takes no more: it sets the pace. */
  async room(): Promise<void> {
    while (this.listening && this.aheadFrames >= AHEAD_FRAMES_MAX) await this.#change();
  }
  append(pcm: Float32Array): void {
    const audio = Buffer.from(floatToPcm16(pcm)).toString("base64");
    this.#sentSamples += pcm.length;
    this.#client.send({ type: "input_audio_buffer.append", audio, sample_rate: VOICECHAT_INPUT_HZ });
  }
  /** The end of what is said; the server answers the rest and closes. */
  commit(): void {
    this.#client.send({ type: "input_audio_buffer.commit" });
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  #take(event: VoiceChatEvent): void {
    switch (event.type) {
      case "session.created": {
        if (!isVoiceChatSession(event.session)) throw this.#otherDialect();
        const { systemPrompt, seed } = this.#settings;
        const prompt = systemPrompt === null ? {} : { system_prompt: systemPrompt };
        this.#client.send({ type: "session.update", session: { ...prompt, seed } });
        break;
      }
      case "session.updated":
        this.#state = "ready";
        break;
      case "conversation.item.input_audio_transcription.delta":
        this.#view.show("user", event.transcript);
        break;
      case "response.text.delta":
        this.#view.show("assistant", event.text);
        break;
      case "response.function.delta":
        this.#view.show("function", event.text);
        break;
      case "response.audio.delta":
        this.#answeredFrames += 1;
        this.#onAudio(this.#decode(event.delta));
        break;
      case "response.done":
      case "response.cancelled":
        this.#state = "done";
        break;
      case "error":
        this.#fail(event.error.code, event.error.message);
        break;
      default:
    }
    this.#wake();
  }
  #decode(audio: string): Float32Array {
    const bytes = base64ToBytes(audio);
    const pcm = bytes === null ? null : pcm16ToFloat(bytes);
    if (pcm === null) throw new UpstreamError("upstream_failed", `${this.#client.url} sent audio that is no PCM16`);
    return pcm;
  }
  #otherDialect(): UpstreamError {
    const { url } = this.#client;
    return new UpstreamError(
      "upstream_failed",
      `${url} serves no VoiceChat model, but the OpenAI Realtime API: antiphon talk --url ${url}, and with recordings --input-file question.wav --output-file answer.wav`,
    );
  }
  #fail(code: string, message: string): void {
    // Of what was on its way when something went wrong, each message may be answered with the same words.
    if (!this.#failures.includes(message)) this.#failures.push(message);
    if (code === "server_busy") throw new UpstreamError("server_busy", `the server is busy: ${message}`);
    if (this.#state === "opening") throw new UpstreamError("upstream_failed", `the session did not open: ${message}`);
  }
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Where the server stands, of a command line that must name it. @throws {AppError} usage */
export function positionalsOf(positionals: readonly string[], names: readonly string[], usage: string): string[] {
  if (positionals.length === names.length) return [...positionals];
  const missing = names.slice(positionals.length).join(" and ");
  const what = missing === "" ? `takes no "${positionals[names.length]}"` : `needs ${missing}`;
  throw new AppError("usage", `the command ${what}: ${usage}`);
}

/** The exit code, and what went wrong in words. */
export function reportFailures(client: VoiceChatClient, context: CliContext): number {
  for (const failure of client.failures) context.stderr.write(`antiphon: ${failure}\n`);
  return client.failures.length === 0 ? 0 : 1;
}
