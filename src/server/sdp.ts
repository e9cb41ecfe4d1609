/** Session descriptions as text: what an offer must have, and what an answer is given before it leaves. Pure. */
import { AppError, ClientError } from "../errors.ts";
import type { PeerSections } from "./peer-wire.ts";

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
  /** Of the sections that offer Opus: the first in which the peer listens, and the first in which it speaks. */
  readonly sections: PeerSections;
}

/** @throws {ClientError} invalid_sdp, saying what is missing. */
export function readOffer(sdp: string): Offer {
  if (sdp.length > SDP_BYTES_MAX) refuse(`the offer has ${sdp.length} characters, at most ${SDP_BYTES_MAX} are read`);
  if (!sdp.startsWith("v=0")) refuse('the body does not begin with "v=0"; send the offer\'s sdp as it is, not JSON');
  const [session, ...media] = sdp.split(/\r?\n(?=m=)/);
  const audio = media.filter((section) => section.startsWith("m=audio "));
  if (audio.length === 0) refuse("there is no audio section (m=audio); add a microphone track or an audio transceiver");
  const opus = audio.filter((section) => opusOf(section).size > 0);
  if (opus.length === 0) refuse("the audio section does not offer opus/48000, the one codec that is spoken here");
  const data = media.find((section) => /^m=application .*webrtc-datachannel/.test(section));
  const sections = media.map((section) => (opus.includes(section) ? onlyOpus(section) : section));
  const messageBytes = data?.match(/^a=max-message-size:(\d+)/m)?.[1];
  return {
    sdp: `${[session, ...sections].map((section) => section?.trimEnd()).join("\r\n")}\r\n`,
    hasDataChannel: data !== undefined,
    messageBytesMax: messageBytes === undefined ? MESSAGE_BYTES_DEFAULT : Number(messageBytes) || Infinity,
    sections: {
      voiceMid: midOf(opus.find((section) => /^(sendrecv|recvonly)$/.test(directionOf(section)))),
      earMid: midOf(opus.find((section) => /^(sendrecv|sendonly)$/.test(directionOf(section)))),
    },
  };
}

const directionOf = (section: string): string =>
  /^a=(sendrecv|sendonly|recvonly|inactive)\r?$/m.exec(section)?.[1] ?? "sendrecv";
const midOf = (section: string | undefined): string | null => section?.match(/^a=mid:(\S+)/m)?.[1] ?? null;
const opusOf = (section: string): ReadonlySet<string | undefined> =>
  new Set(Array.from(section.matchAll(/^a=rtpmap:(\d+) opus\/48000/gim), ([, payload]) => payload));

/** Leaves the Opus payload types and their attributes, so that the answer cannot choose another codec. */
function onlyOpus(section: string): string {
  const [line, ...attributes] = section.trimEnd().split(/\r?\n/);
  const [media, port, protocol, ...payloads] = line?.split(" ") ?? [];
  const opus = opusOf(section);
  const kept = attributes.filter((attribute) => {
    const payload = attribute.match(/^a=(?:rtpmap|fmtp|rtcp-fb):(\d+)/)?.[1];
    return payload === undefined || opus.has(payload);
  });
  return [[media, port, protocol, ...payloads.filter((payload) => opus.has(payload))].join(" "), ...kept].join("\r\n");
}

/**
 * The answer with the address under which a server behind NAT is reached: one UDP host candidate of the same family
 * takes it, with the port that the server has bound, and the other host candidates go.
 * @throws {AppError} internal_error where this machine has no address of that family.
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
  if (published) return lines.join("\r\n");
  const family = isIpv6 ? "IPv6" : "IPv4";
  throw new AppError(
    "internal_error",
    `The server has no ${family} address that ${address} could stand for: its --ice-nat-ip must be of the other family.`,
  );
}

/** Whether the answer names a UDP port; without one no peer gets through. */
export function hasUdpCandidate(sdp: string): boolean {
  return /^a=candidate:\S+ \d+ udp /im.test(sdp);
}

function refuse(reason: string): never {
  throw new ClientError("invalid_sdp", `The SDP offer cannot be used: ${reason}.`, "sdp");
}
