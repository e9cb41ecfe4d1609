/** A peer on libwebrtc, as a client would be: one audio track each way, and the data channel `oai-events`. */
import wrtc from "@roamhq/wrtc";

// The library's types need the browser's, which tests are compiled without.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any;
export type JsonEvent = { type: string } & Record<string, Untyped>;
type Wake = () => void;

export interface WebRtcPeerOptions {
  /** Default true. */
  readonly channel?: boolean;
  /** Adds what the offer has; default: one audio section both ways. */
  readonly add?: (connection: Untyped, microphone: Untyped) => void;
}

export class WebRtcPeer {
  readonly pc: Untyped = new wrtc.RTCPeerConnection({});
  readonly channel: Untyped;
  /** In order of arrival. */
  readonly events: JsonEvent[] = [];
  /** Mono PCM16, 10 ms each, since the connection; the rate is 48 kHz once the first packet is in. */
  readonly heard: { atMs: number; samples: Int16Array; hz: number }[] = [];
  readonly #source = new wrtc.nonstandard.RTCAudioSource();
  readonly #track = this.#source.createTrack();
  #sink: Untyped = null;
  #wakes: Wake[] = [];
  closed = false;
  /** Of the tracks that the server sends. */
  streamCount = 0;

  constructor(options: WebRtcPeerOptions = {}) {
    if (options.add === undefined) this.pc.addTrack(this.#track);
    else options.add(this.pc, this.#track);
    if (options.channel !== false) {
      this.channel = this.pc.createDataChannel("oai-events");
      this.channel.onmessage = ({ data }: { data: string }) => {
        this.events.push(JSON.parse(data) as JsonEvent);
        this.#wake();
      };
      this.channel.onopen = () => this.#wake();
      this.channel.onclose = () => {
        this.closed = true;
        this.#wake();
      };
    }
    this.pc.onconnectionstatechange = () => this.#wake();
    this.pc.ontrack = ({ track, streams }: { track: { kind: string }; streams: unknown[] }) => {
      if (track.kind !== "audio") return;
      this.streamCount += streams.length;
      this.#sink = new wrtc.nonstandard.RTCAudioSink(track as never);
      this.#sink.ondata = ({ samples, sampleRate }: { samples: Int16Array; sampleRate: number }) => {
        this.heard.push({ atMs: performance.now(), samples: samples.slice(), hz: sampleRate });
        if (this.heard.length > 6000) this.heard.shift();
        this.#wake();
      };
    };
  }

  async offer(): Promise<string> {
    await this.pc.setLocalDescription(await this.pc.createOffer());
    await this.until(() => this.pc.iceGatheringState === "complete");
    return this.pc.localDescription.sdp as string;
  }
  accept(answerSdp: string): Promise<void> {
    return this.pc.setRemoteDescription({ type: "answer", sdp: answerSdp });
  }
  send(event: object): void {
    this.channel.send(JSON.stringify(event));
  }
  /** 10 ms of mono PCM16 at 48 kHz. */
  speak(samples: Int16Array): void {
    this.#source.onData({ samples, sampleRate: 48_000, bitsPerSample: 16, channelCount: 1, numberOfFrames: 480 });
  }
  /** Waits until something that the peer was told makes `condition` true. */
  async until(condition: () => boolean, withinMs = 10_000): Promise<void> {
    const untilMs = performance.now() + withinMs;
    while (!condition()) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) throw new Error(`the peer waited ${withinMs} ms in vain`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(leftMs, 50));
        this.#wakes.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }
  async event(type: string, withinMs?: number): Promise<JsonEvent> {
    await this.until(() => this.events.some((event) => event.type === type), withinMs);
    return this.events.find((event) => event.type === type)!;
  }
  /** Lets go of everything; `vanish` says no goodbye on the data channel first. */
  close(): void {
    if (this.#sink !== null) {
      this.#sink.ondata = null;
      this.#sink.stop();
    }
    this.#track.stop();
    this.pc.close();
  }
  #wake(): void {
    const wakes = this.#wakes;
    this.#wakes = [];
    for (const wake of wakes) wake();
  }
}

/** Root mean square of the last `pieces` of what was heard, 0 to 1. */
export function loudness(peer: WebRtcPeer, pieces: number): number {
  const samples = peer.heard.slice(-pieces).flatMap((piece) => [...piece.samples]);
  return Math.sqrt(samples.reduce((sum, sample) => sum + (sample / 32_768) ** 2, 0) / Math.max(1, samples.length));
}
