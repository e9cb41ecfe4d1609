/** Both directions of sound where events carry it: the microphone's chunks and the assistant's playback, as one thing to end. */
import { Capture, type CaptureOptions } from "./capture.ts";
import { Playback, type PlaybackOptions } from "./playback.ts";

export class SocketSound {
  isMicrophoneOn = true;
  #capture: Capture | null = null;
  #playback: Playback | null = null;
  #isClosed = false;

  async startPlayback(audio: AudioContext, options: PlaybackOptions): Promise<void> {
    const playback = await Playback.open(audio, options);
    if (this.#isClosed) playback.close();
    else this.#playback = playback;
  }
  async startCapture(microphone: MediaStream, options: CaptureOptions): Promise<void> {
    const capture = await Capture.open(microphone, options);
    if (this.#isClosed) capture.close();
    else this.#capture = capture;
  }
  play(itemId: string, samples: Float32Array<ArrayBuffer>): void {
    this.#playback?.push(itemId, samples);
  }
  silence(): void {
    this.#playback?.clear();
  }
  inputLevel(): number {
    return this.isMicrophoneOn ? (this.#capture?.level() ?? 0) : 0;
  }
  outputLevel(): number {
    return this.#playback?.level() ?? 0;
  }
  close(): void {
    this.#isClosed = true;
    this.#capture?.close();
    this.#playback?.close();
  }
}
