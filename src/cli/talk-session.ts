/** The client's side of a conversation: prints it as it goes, plays the answers, runs the tools. */
import { base64ToBytes, pcm16ToFloat } from "../audio/pcm.ts";
import { UpstreamError } from "../errors.ts";
import type { ServerEvent } from "../protocol/openai/server-events.ts";
import { isVoiceChatSession } from "../protocol/voicechat/server-events.ts";
import type { Heard, Playback } from "./playback.ts";
import type { RealtimeClient } from "./realtime-client.ts";
import { type ClientTool, runTool } from "./tool-module.ts";
import type { TranscriptView } from "./transcript-view.ts";

/** Both ways. */
export const TALK_HZ = 24_000;

export interface TalkSessionOptions {
  readonly client: RealtimeClient;
  readonly playback: Playback;
  readonly view: TranscriptView;
  readonly instructions: string | null;
  readonly voice: string | null;
  readonly tools: readonly ClientTool[];
}

export class TalkSession {
  readonly #options: TalkSessionOptions;
  /** Turns that the server has heard the end of and not yet answered. */
  #turnsOpen = 0;
  #speaking = false;
  #responding = false;
  #turnCount = 0;
  /** Functions that this response called, each until its result is sent. */
  #calls: Promise<void>[] = [];
  #failures: string[] = [];

  constructor(options: TalkSessionOptions) {
    this.#options = options;
  }
  /** Configures the session and answers events until the connection ends. @throws {UpstreamError} if it ends badly. */
  async run(): Promise<void> {
    for await (const event of this.#options.client.events) {
      this.#take(event);
      this.#options.view.show(event);
    }
  }
  /** True when nobody speaks and nothing more is to be expected. */
  get resting(): boolean {
    return !this.#speaking && !this.#responding && this.#turnsOpen === 0 && this.#calls.length === 0;
  }
  get turnCount(): number {
    return this.#turnCount;
  }
  /** What went wrong in answers, as far as the server said it. */
  get failures(): readonly string[] {
    return this.#failures;
  }
  append(pcm16: Uint8Array): void {
    const audio = Buffer.from(pcm16.buffer, pcm16.byteOffset, pcm16.byteLength).toString("base64");
    this.#options.client.send({ type: "input_audio_buffer.append", audio });
  }
  #configure(): void {
    const { client, instructions, voice, tools } = this.#options;
    const format = { type: "audio/pcm", rate: TALK_HZ };
    client.send({
      type: "session.update",
      session: {
        type: "realtime",
        audio: { input: { format, transcription: {} }, output: { format, ...(voice === null ? {} : { voice }) } },
        ...(instructions === null ? {} : { instructions }),
        ...(tools.length === 0 ? {} : { tools: tools.map(definition) }),
      },
    });
  }
  #take(event: ServerEvent): void {
    switch (event.type) {
      case "session.created":
        if (isVoiceChatSession(event.session)) throw this.#otherDialect();
        this.#configure();
        break;
      case "error":
        this.#fail(event.error.code, event.error.message);
        break;
      case "input_audio_buffer.speech_started":
        this.#speaking = true;
        this.#truncate(this.#options.playback.interrupt());
        break;
      case "input_audio_buffer.speech_stopped":
        this.#speaking = false;
        this.#turnsOpen += 1;
        this.#turnCount += 1;
        break;
      case "conversation.item.input_audio_transcription.completed":
        // Where nothing was said, no answer comes.
        if (event.transcript.trim() === "") this.#closeTurn();
        break;
      case "conversation.item.input_audio_transcription.failed":
        this.#failures.push(event.error.message);
        this.#closeTurn();
        break;
      case "response.created":
        this.#responding = true;
        this.#closeTurn();
        break;
      case "response.output_audio.delta":
        this.#options.playback.add(event.item_id, pcm16ToFloat(base64ToBytes(event.delta)!)!);
        break;
      case "response.function_call_arguments.done":
        this.#calls.push(this.#call(event.call_id, event.name, event.arguments));
        break;
      case "response.done":
        this.#finishResponse(event.response.status, event.response.status_details?.error?.code);
        break;
      default:
    }
  }
  #closeTurn(): void {
    this.#turnsOpen = Math.max(0, this.#turnsOpen - 1);
  }
  #otherDialect(): UpstreamError {
    const { url } = this.#options.client;
    return new UpstreamError(
      "upstream_failed",
      `${url} serves a VoiceChat model, which talks in its own way: antiphon voicechat-mic ${url}, or with recordings: antiphon voicechat-file ${url} question.wav answer.wav`,
    );
  }
  /** An error that ends the conversation before it began is thrown by whoever waits; others are told and counted. */
  #fail(code: string, message: string): void {
    this.#failures.push(message);
    if (FATAL_CODES.has(code)) throw new UpstreamError("upstream_failed", message);
  }
  #finishResponse(status: string, code: string | undefined): void {
    this.#responding = false;
    if (status === "failed") this.#failures.push(`the answer failed${code === undefined ? "" : ` (${code})`}`);
    if (this.#calls.length === 0) return;
    // All results first, then the model goes on.
    void Promise.all(this.#calls).then(() => {
      this.#calls = [];
      this.#responding = true;
      this.#options.client.send({ type: "response.create" });
    });
  }
  async #call(callId: string, name: string, argumentsJson: string): Promise<void> {
    const output = await runTool(this.#options.tools, name, argumentsJson);
    this.#options.view.tool(name, argumentsJson, output);
    const item = { type: "function_call_output", call_id: callId, output };
    this.#options.client.send({ type: "conversation.item.create", item });
  }
  /** The server remembers what was heard, not what was sent. */
  #truncate(heard: Heard | null): void {
    if (heard === null) return;
    const place = { item_id: heard.itemId, content_index: 0, audio_end_ms: heard.ms };
    this.#options.client.send({ type: "conversation.item.truncate", ...place });
  }
}

const FATAL_CODES: ReadonlySet<string> = new Set([
  "session_limit_reached",
  // A VoiceChat server says it so.
  "server_busy",
  "server_loading",
  "server_draining",
  "model_not_found",
  "invalid_api_key",
]);

const definition = ({ name, description, parameters }: ClientTool): object => ({
  type: "function",
  name,
  description,
  parameters,
});
