/**
 * The process of one peer: it owns libwebrtc and all objects of one connection, and ends with it. libwebrtc does ICE, DTLS,
 * the jitter buffer and Opus. Its bindings for Node are not safe where a data channel closes while it is written to:
 * the process dies (RTCDataChannel::Send reads a pointer that another thread has cleared). Here, only this call is in it.
 */
import { type FromPeer, LINE_HZ, type PeerConfiguration, type PeerSections, type ToPeer } from "./peer-wire.ts";

/** Candidates that come later than this are left out of the answer; only STUN and TURN take time. */
const GATHERING_MS_MAX = 3_000;
/** Without STUN and TURN there are this machine's own addresses, known at once; libwebrtc says "complete" 100 ms later. */
const OWN_ADDRESSES_MS = 25;
/** What the last words of a call may take to leave. */
const FAREWELL_MS_MAX = 500;
/** What the goodbye of the connection itself may take to leave. */
const GOODBYE_MS = 100;
const BUFFER_LOOK_MS = 20;
/** OpenAI's name of the channel for events. */
const EVENTS_LABEL = "oai-events";
/** A channel of another name carries the events of a peer that opens none of the right name meanwhile. */
const OTHER_LABEL_MS = 300;

// What is used of @roamhq/wrtc, whose own types need the browser's.
interface Emitter {
  addEventListener(name: string, listener: (event: never) => void): void;
}
interface Track {
  readonly kind: string;
  stop(): void;
}
interface Transceiver {
  readonly mid: string | null;
  readonly sender: { replaceTrack(track: Track): Promise<void>; setStreams(stream: object): void };
  direction: "sendrecv" | "sendonly" | "recvonly" | "inactive";
}
interface Channel extends Emitter {
  readonly label: string;
  readonly readyState: string;
  readonly bufferedAmount: number;
  send(text: string): void;
  close(): void;
}
interface Connection extends Emitter {
  readonly connectionState: string;
  readonly iceGatheringState: string;
  readonly localDescription: { readonly sdp: string } | null;
  setRemoteDescription(description: { type: "offer"; sdp: string }): Promise<void>;
  getTransceivers(): Transceiver[];
  createAnswer(): Promise<unknown>;
  setLocalDescription(description: unknown): Promise<void>;
  close(): void;
}
interface TrackEvent {
  readonly track: Track;
  readonly transceiver: Transceiver;
}
interface Sink {
  ondata:
    | ((data: { readonly samples: Int16Array; readonly sampleRate: number; readonly channelCount: number }) => void)
    | null;
  stop(): void;
}
interface Source {
  createTrack(): Track;
  onData(data: object): void;
}
interface Library {
  readonly RTCPeerConnection: new (configuration: object) => Connection;
  readonly MediaStream: new (tracks: Track[]) => object;
  readonly nonstandard: {
    readonly RTCAudioSource: new () => Source;
    readonly RTCAudioSink: new (track: Track) => Sink;
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function tell(message: FromPeer): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

class Peer {
  readonly #library: Library;
  readonly #connection: Connection;
  readonly #source: Source;
  readonly #voice: Track;
  #channel: Channel | null = null;
  #ear: Track | null = null;
  #sink: Sink | null = null;
  #takenBytes = 0;
  #isWatchingBuffer = false;
  #earMid: string | null = null;
  #isClosing = false;

  constructor(library: Library, configuration: PeerConfiguration) {
    this.#library = library;
    this.#connection = new library.RTCPeerConnection(configuration);
    this.#source = new library.nonstandard.RTCAudioSource();
    this.#voice = this.#source.createTrack();
    this.#connection.addEventListener("track", (event: TrackEvent) => {
      if (event.transceiver.mid === this.#earMid) this.#hear(event.track);
    });
    this.#connection.addEventListener("datachannel", ({ channel }: { channel: Channel }) => {
      if (channel.label === EVENTS_LABEL) this.#take(channel);
      else setTimeout(() => this.#take(channel), OTHER_LABEL_MS);
    });
    this.#connection.addEventListener("connectionstatechange", () => {
      if (!this.#isClosing) tell({ type: "state", state: this.#connection.connectionState });
    });
  }

  async answer(sdp: string, sections: PeerSections, asksServers: boolean): Promise<void> {
    this.#earMid = sections.earMid;
    try {
      await this.#connection.setRemoteDescription({ type: "offer", sdp });
    } catch (error) {
      tell({ type: "refused", fault: "offer", reason: reasonOf(error) });
      return;
    }
    try {
      await this.#useSections(sections);
      const gathered = this.#gathered(asksServers);
      await this.#connection.setLocalDescription(await this.#connection.createAnswer());
      await gathered;
      tell({ type: "answered", answerSdp: this.#connection.localDescription?.sdp ?? "" });
    } catch (error) {
      tell({ type: "refused", fault: "library", reason: reasonOf(error) });
    }
  }
  send(text: string): void {
    this.#takenBytes += Buffer.byteLength(text);
    try {
      // The peer may close the channel between the two.
      if (this.#channel?.readyState === "open") this.#channel.send(text);
    } catch {
      // Its "close" event is on the way.
    }
    this.#tellSent();
  }
  speak(piece: Int16Array): void {
    if (this.#isClosing) return;
    // The library reads the whole buffer behind a view.
    const samples = piece.slice();
    const numberOfFrames = samples.length;
    this.#source.onData({ samples, sampleRate: LINE_HZ, bitsPerSample: 16, channelCount: 1, numberOfFrames });
  }
  /** Lets the last events leave, then lets go of everything. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#sink !== null) {
      this.#sink.ondata = null;
      this.#sink.stop();
    }
    const untilMs = performance.now() + FAREWELL_MS_MAX;
    while (this.#bufferedBytes() > 0 && performance.now() < untilMs) await pause(BUFFER_LOOK_MS / 2);
    this.#channel?.close();
    this.#voice.stop();
    this.#ear?.stop();
    this.#connection.close();
    await pause(GOODBYE_MS);
  }

  async #useSections({ voiceMid, earMid }: PeerSections): Promise<void> {
    for (const transceiver of this.#connection.getTransceivers()) {
      const { mid, sender } = transceiver;
      const [speaks, hears] = [mid === voiceMid, mid === earMid];
      if (speaks) {
        await sender.replaceTrack(this.#voice);
        // Clients play the first stream of the track's event, as OpenAI's examples do; a lone track has none.
        sender.setStreams(new this.#library.MediaStream([this.#voice]));
      }
      if (speaks) transceiver.direction = hears ? "sendrecv" : "sendonly";
      else transceiver.direction = hears ? "recvonly" : "inactive";
    }
  }
  #gathered(asksServers: boolean): Promise<void> {
    return new Promise((resolve) => {
      let timer = setTimeout(resolve, GATHERING_MS_MAX);
      const look = (): void => {
        if (this.#connection.iceGatheringState !== "complete") return;
        clearTimeout(timer);
        resolve();
      };
      this.#connection.addEventListener("icegatheringstatechange", look);
      this.#connection.addEventListener("icecandidate", () => {
        if (asksServers) return;
        clearTimeout(timer);
        timer = setTimeout(resolve, OWN_ADDRESSES_MS);
      });
      look();
    });
  }
  #hear(track: Track): void {
    if (track.kind !== "audio" || this.#sink !== null || this.#isClosing) return;
    this.#ear = track;
    this.#sink = new this.#library.nonstandard.RTCAudioSink(track);
    this.#sink.ondata = ({ samples, sampleRate, channelCount }) =>
      tell({ type: "audio", samples, hz: sampleRate, channelCount });
  }
  #take(channel: Channel): void {
    if (this.#channel !== null) {
      channel.close();
      return;
    }
    this.#channel = channel;
    channel.addEventListener("message", ({ data }: { data: string | ArrayBuffer }) => {
      tell({ type: "text", text: typeof data === "string" ? data : Buffer.from(data).toString("utf8") });
    });
    channel.addEventListener("close", () => tell({ type: "channel", state: "closed" }));
    channel.addEventListener("open", () => tell({ type: "channel", state: "open" }));
    if (channel.readyState === "open") tell({ type: "channel", state: "open" });
  }
  #bufferedBytes(): number {
    return this.#channel?.readyState === "open" ? this.#channel.bufferedAmount : 0;
  }
  /** Once for every text, and then until nothing waits any more. */
  #tellSent(): void {
    const bufferedBytes = this.#bufferedBytes();
    tell({ type: "sent", takenBytes: this.#takenBytes, bufferedBytes });
    if (bufferedBytes === 0 || this.#isWatchingBuffer || this.#isClosing) return;
    this.#isWatchingBuffer = true;
    setTimeout(() => {
      this.#isWatchingBuffer = false;
      this.#tellSent();
    }, BUFFER_LOOK_MS);
  }
}

async function load(): Promise<Library | null> {
  try {
    const { default: library } = (await import("@roamhq/wrtc")) as unknown as { default: Library };
    tell({ type: "ready" });
    return library;
  } catch (error) {
    tell({ type: "unavailable", reason: reasonOf(error) });
    return null;
  }
}

/** Null where the library refuses the configuration. */
function newPeer(library: Library, configuration: PeerConfiguration): Peer | null {
  try {
    return new Peer(library, configuration);
  } catch (error) {
    tell({ type: "refused", fault: "library", reason: reasonOf(error) });
    return null;
  }
}

// The main process says when; signals to the whole group are its affair. A natural end crashes the library's sources.
process.on("disconnect", () => process.exit());
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});

const library = await load();
let peer: Peer | null = null;
process.on("message", (message: ToPeer) => {
  if (message.type === "answer" && library !== null) {
    const { offerSdp, sections, configuration } = message;
    peer = newPeer(library, configuration);
    void peer?.answer(offerSdp, sections, configuration.iceServers.length > 0);
  } else if (message.type === "text") peer?.send(message.text);
  else if (message.type === "audio") peer?.speak(message.samples);
  else if (message.type === "close") void (peer?.close() ?? Promise.resolve()).finally(() => process.exit());
});
