import { describe, expect, it } from "vitest";
import { type IceText, readIce } from "../../src/server/ice.ts";

const read = (text: Partial<IceText>) => readIce({ iceServers: null, iceUdpPort: null, iceNatIp: null, ...text });

describe("readIce", () => {
  it("asks nobody by default", () => {
    expect(read({})).toEqual({ iceServers: [], udpPorts: null, natIp: null });
  });
  it("takes servers, a port or a range, and an address", () => {
    const servers = [
      { urls: "stun:stun.example.com:3478" },
      { urls: ["turn:[::1]:3478?transport=tcp"], username: "u", credential: "c" },
    ];
    expect(read({ iceServers: JSON.stringify(servers) }).iceServers).toEqual(servers);
    expect(read({ iceUdpPort: "50000" }).udpPorts).toEqual({ min: 50_000, max: 50_000 });
    expect(read({ iceUdpPort: "50000-50100" }).udpPorts).toEqual({ min: 50_000, max: 50_100 });
    expect(read({ iceNatIp: "2001:db8::5" }).natIp).toBe("2001:db8::5");
  });
  it.each([
    [{ iceServers: "stun:x" }, /not JSON/],
    [{ iceServers: '[{"url":"stun:x"}]' }, /urls/],
    [{ iceServers: '[{"urls":"http://x"}]' }, /stun:HOST/],
    // libwebrtc refuses these, and refused them at every call.
    [{ iceServers: '[{"urls":"turn:x"}]' }, /TURN server needs username and credential/],
    [{ iceServers: '[{"urls":["stun:x","turns:x"],"username":"u"}]' }, /needs username and credential/],
    [{ iceServers: '[{"urls":"stun:user@host"}]' }, /stun:HOST/],
    [{ iceServers: '[{"urls":"stun:a b"}]' }, /stun:HOST/],
    [{ iceServers: '[{"urls":"turn:h?transport=sctp","username":"u","credential":"c"}]' }, /turn:HOST/],
    [{ iceServers: '[{"urls":"stun:host:99999"}]' }, /port from 1 to 65535/],
    [{ iceUdpPort: "0" }, /expected a port/],
    [{ iceUdpPort: "50000-" }, /expected a port/],
    [{ iceUdpPort: "" }, /expected a port/],
    [{ iceNatIp: "" }, /IP address/],
    [{ iceNatIp: "203.0.113.5:50000" }, /IP address/],
    [{ iceUdpPort: "50100-50000" }, /50000-50100/],
    [{ iceUdpPort: "70000" }, /expected a port/],
    [{ iceNatIp: "example.com" }, /IP address/],
  ])("says what was expected instead of %o", (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({ code: "config_invalid", message: expect.stringMatching(message) }),
    );
  });
});
