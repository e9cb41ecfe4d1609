import { describe, expect, it } from "vitest";
import { publishAddress, readOffer } from "../../src/server/sdp.ts";

const AUDIO = [
  "m=audio 9 UDP/TLS/RTP/SAVPF 0 111 63",
  "c=IN IP4 0.0.0.0",
  "a=mid:0",
  "a=rtpmap:0 PCMU/8000",
  "a=rtpmap:111 opus/48000/2",
  "a=fmtp:111 minptime=10;useinbandfec=1",
  "a=rtpmap:63 red/48000/2",
  "a=fmtp:63 111/111",
];
const DATA = ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "a=mid:1", "a=max-message-size:1000"];
const sdp = (...sections: string[][]): string =>
  `${["v=0", "o=- 1 2 IN IP4 127.0.0.1", ...sections.flat()].join("\r\n")}\r\n`;

describe("readOffer", () => {
  it("keeps Opus alone, and nothing else changes", () => {
    const offer = readOffer(sdp(AUDIO, DATA));
    expect(offer.sdp.split("\r\n").slice(2)).toEqual([
      "m=audio 9 UDP/TLS/RTP/SAVPF 111",
      "c=IN IP4 0.0.0.0",
      "a=mid:0",
      "a=rtpmap:111 opus/48000/2",
      "a=fmtp:111 minptime=10;useinbandfec=1",
      ...DATA,
      "",
    ]);
    expect(offer).toMatchObject({ hasDataChannel: true, messageBytesMax: 1000 });
  });

  it("assumes 64 KiB messages, or any size where the peer says so", () => {
    expect(readOffer(sdp(AUDIO, DATA.slice(0, 2))).messageBytesMax).toBe(65_536);
    expect(readOffer(sdp(AUDIO, [...DATA.slice(0, 2), "a=max-message-size:0"])).messageBytesMax).toBe(Infinity);
    expect(readOffer(sdp(AUDIO)).hasDataChannel).toBe(false);
  });

  it.each([
    ["", /v=0/],
    ['{"type":"offer"}', /not JSON/],
    [sdp(DATA), /m=audio/],
    [sdp(AUDIO.filter((line) => !line.includes("opus"))), /opus/],
    [`v=0\r\n${"a=x\r\n".repeat(100_000)}`, /at most/],
  ])("refuses an offer with the reason: %#", (text, reason) => {
    expect(() => readOffer(text)).toThrow(
      expect.objectContaining({ code: "invalid_sdp", message: expect.stringMatching(reason) }),
    );
  });
});

describe("publishAddress", () => {
  const candidates = [
    "a=candidate:1 1 udp 2122265343 fd00::2 5001 typ host generation 0",
    "a=candidate:2 1 udp 2122194687 172.17.0.2 5002 typ host generation 0",
    "a=candidate:3 1 udp 2122063615 127.0.0.1 5003 typ host generation 0",
    "a=candidate:4 1 tcp 1518285567 172.17.0.2 5002 typ host tcptype passive generation 0",
    "a=candidate:5 1 udp 1677729535 198.51.100.7 6000 typ srflx raddr 172.17.0.2 rport 5002",
  ];
  it("puts the public address with the bound port in place of the container's", () => {
    const answer = publishAddress(sdp(candidates), "203.0.113.5");
    expect(answer.match(/^a=candidate.*$/gm)?.map((line) => line.trim())).toEqual([
      "a=candidate:2 1 udp 2122194687 203.0.113.5 5002 typ host generation 0",
      candidates[4],
    ]);
  });
  // The answer went out without any address, and the call never connected.
  it("says so where no address of this machine is of the family", () => {
    expect(() => publishAddress(sdp(candidates.slice(1)), "2001:db8::5")).toThrow(
      expect.objectContaining({ code: "internal_error", message: expect.stringMatching(/no IPv6.*--ice-nat-ip/) }),
    );
  });
  it("keeps the family", () => {
    const answer = publishAddress(sdp(candidates), "2001:db8::5");
    expect(answer).toContain("2001:db8::5 5001 typ host");
    expect(answer).not.toContain("172.17.0.2 5002 typ host");
  });
});
