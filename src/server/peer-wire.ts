/** What the main process and the process of one peer tell each other. Survives a structured clone. */

/** Samples a second of what goes onto the track, in mono. */
export const LINE_HZ = 48_000;

/** Of an `RTCPeerConnection`; `portRange` is the library's own. */
export interface PeerConfiguration {
  readonly iceServers: readonly object[];
  readonly bundlePolicy: "max-bundle";
  readonly portRange?: { readonly min: number; readonly max: number };
}

/** Which audio sections of the offer are used, by their `a=mid`; null where none can be. All others stay inactive. */
export interface PeerSections {
  /** Where the peer listens. */
  readonly voiceMid: string | null;
  /** Where the peer speaks. */
  readonly earMid: string | null;
}

export type ToPeer =
  | {
      readonly type: "answer";
      readonly offerSdp: string;
      readonly sections: PeerSections;
      readonly configuration: PeerConfiguration;
    }
  | { readonly type: "text"; readonly text: string }
  /** 10 ms of mono PCM16 at 48 kHz for the track. */
  | { readonly type: "audio"; readonly samples: Int16Array }
  /** Say what is still unsent, then end. */
  | { readonly type: "close" };

export type FromPeer =
  | { readonly type: "ready" }
  /** There is no libwebrtc on this machine. */
  | { readonly type: "unavailable"; readonly reason: string }
  | { readonly type: "answered"; readonly answerSdp: string }
  /** `fault` tells whose it is: the offer's, or the library's. */
  | { readonly type: "refused"; readonly fault: "offer" | "library"; readonly reason: string }
  /** Of the connection, as in `RTCPeerConnection.connectionState`. */
  | { readonly type: "state"; readonly state: string }
  | { readonly type: "channel"; readonly state: "open" | "closed" }
  | { readonly type: "text"; readonly text: string }
  /** Interleaved PCM16, 10 ms. */
  | { readonly type: "audio"; readonly samples: Int16Array; readonly hz: number; readonly channelCount: number }
  /** Bytes of text taken so far, and how many of them wait for the network. */
  | { readonly type: "sent"; readonly takenBytes: number; readonly bufferedBytes: number };
