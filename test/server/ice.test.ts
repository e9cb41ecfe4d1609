import { describe, expect, it } from "vitest";
import { type IceText, readIce } from "../../src/server/ice.ts";

const read = (text: Partial<IceText>) => readIce({ iceServers: null, iceUdpPort: null, iceNatIp: null, ...text });

describe("readIce", () => {
  it("asks nobody by default", () => {
    expect(read({})).toEqual({ iceServers: [], udpPorts: null, natIp: null });
  });
  it("takes servers, a port or a range, and an address", () => {
    const servers = [{ urls: "stun:stun.example.com:3478" }, { urls: ["turn:t"], username: "u", credential: "c" }];
    expect(read({ iceServers: JSON.stringify(servers) }).iceServers).toEqual(servers);
    expect(read({ iceUdpPort: "50000" }).udpPorts).toEqual({ min: 50_000, max: 50_000 });
    expect(read({ iceUdpPort: "50000-50100" }).udpPorts).toEqual({ min: 50_000, max: 50_100 });
    expect(read({ iceNatIp: "2001:db8::5" }).natIp).toBe("2001:db8::5");
  });
  it.each([
    [{ iceServers: "stun:x" }, /not JSON/],
    [{ iceServers: '[{"url":"stun:x"}]' }, /urls/],
    [{ iceServers: '[{"urls":"http://x"}]' }, /stun:HOST/],
    [{ iceUdpPort: "50100-50000" }, /50000-50100/],
    [{ iceUdpPort: "70000" }, /expected a port/],
    [{ iceNatIp: "example.com" }, /IP address/],
  ])("says what was expected instead of %o", (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: "config_invalid", message: expect.stringMatching(message) }),
    );
  });
});
