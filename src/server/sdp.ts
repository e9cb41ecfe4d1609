/** Session descriptions as text: what an offer must have, and what an answer is given before it leaves. Pure. */
import { ClientError } from "../errors.ts";

/** Peers that say nothing take this much in one message (RFC 8841). */
const MESSAGE_BYTES_DEFAULT = 65_536;
const SDP_BYTES_MAX = 256 * 1024;

/** What the transport needs to know about an offer. */
export interface Offer {
  /** The offer with Opus as the only audio codec. */
  readonly sdp: string;
  readonly hasDataChannel: boolean;
  /** The largest message that the peer reads; Infinity where it says "any". */
  readonly messageBytesMax: number;
}

/** @throws {ClientError} invalid_sdp, saying what is missing. */
export function readOffer(sdp: string): Offer {
  if (sdp.length > SDP_BYTES_MAX) refuse(`the offer has ${sdp.length} characters, at most ${SDP_BYTES_MAX} are read`);
  if (!sdp.startsWith("v=0")) refuse('the body does not begin with "v=0"; send the offer\'s sdp as it is, not JSON');
  const [session, ...media] = sdp.split(/\r?\n(?=m=)/);
  const audio = media.findIndex((section) => section.startsWith("m=audio "));
  if (audio < 0) refuse("there is no audio section (m=audio); add a microphone track or an audio transceiver");
  const data = media.find((section) => /^m=application .*webrtc-datachannel/.test(section));
  const opus = media.map((section, index) => (index === audio ? onlyOpus(section) : section));
  const messageBytes = data?.match(/^a=max-message-size:(\d+)/m)?.[1];
  return {
    sdp: `${[session, ...opus].map((section) => section?.trimEnd()).join("\r\n")}\r\n`,
    hasDataChannel: data !== undefined,
    messageBytesMax: messageBytes === undefined ? MESSAGE_BYTES_DEFAULT : Number(messageBytes) || Infinity,
  };
}

/** Leaves the Opus payload types and their attributes, so that the answer cannot choose another codec. */
function onlyOpus(section: string): string {
  const [line, ...attributes] = section.trimEnd().split(/\r?\n/);
  const [media, port, protocol, ...payloads] = line?.split(" ") ?? [];
  const opus = new Set(attributes.flatMap((attribute) => attribute.match(/^a=rtpmap:(\d+) opus\/48000/i)?.[1] ?? []));
  if (opus.size === 0) refuse("the audio section does not offer opus/48000, the one codec that is spoken here");
  const kept = attributes.filter((attribute) => {
    const payload = attribute.match(/^a=(?:rtpmap|fmtp|rtcp-fb):(\d+)/)?.[1];
    return payload === undefined || opus.has(payload);
  });
  return [[media, port, protocol, ...payloads.filter((payload) => opus.has(payload))].join(" "), ...kept].join("\r\n");
}

/**
 * The answer with the address under which a server behind NAT is reached: one UDP host candidate of the same family
 * takes it, with the port that the server has bound, and the other host candidates go.
 */
export function publishAddress(sdp: string, address: string): string {
  const isIpv6 = address.includes(":");
  let published = false;
  const lines = sdp.split(/\r?\n/).flatMap((line) => {
    const fields = line.startsWith("a=candidate:") ? line.split(" ") : null;
    if (fields === null || fields[7] !== "host") return [line];
    const host = fields[4] ?? "";
    const isLoopback = host === "::1" || host.startsWith("127.");
    if (published || isLoopback || fields[2]?.toLowerCase() !== "udp" || host.includes(":") !== isIpv6) return [];
    published = true;
    return [[...fields.slice(0, 4), address, ...fields.slice(5)].join(" ")];
  });
  return lines.join("\r\n");
}

/** Whether the answer names a UDP port; without one no peer gets through. */
export function hasUdpCandidate(sdp: string): boolean {
  return /^a=candidate:\S+ \d+ udp /im.test(sdp);
}

function refuse(reason: string): never {
  throw new ClientError("invalid_sdp", `The SDP offer cannot be used: ${reason}.`, "sdp");
}
