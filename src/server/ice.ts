/** The options that say how WebRTC media gets through the network, from text. */
import { isIP } from "node:net";
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import type { IceServer, WebRtcOptions } from "./webrtc.ts";

/** As typed: `--ice-servers`, `--ice-udp-port`, `--ice-nat-ip`. */
export interface IceText {
  readonly iceServers: string | null;
  readonly iceUdpPort: string | null;
  readonly iceNatIp: string | null;
}

// As libwebrtc takes them: what it refuses, it refuses at every call.
const URL = /^(stuns?|turns?):([\w.-]+|\[[\da-f:.]+\])(:\d+)?(\?transport=(udp|tcp))?$/i;
const portOf = (text: string): number => Number(URL.exec(text)?.[3]?.slice(1) ?? 1);
const url = z
  .string()
  .regex(URL, "expected an address such as stun:HOST:3478 or turn:HOST:3478")
  .refine((text) => portOf(text) >= 1 && portOf(text) <= 65_535, "expected a port from 1 to 65535");
const server = z
  .strictObject({
    urls: z.union([url, z.array(url).min(1)]),
    username: z.string().optional(),
    credential: z.string().optional(),
  })
  .refine(
    ({ urls, username, credential }) => ![urls].flat().some((text) => /^turn/i.test(text)) || (username && credential),
    "a TURN server needs username and credential",
  );
const servers = z.array(server);
const EXAMPLE = '[{"urls":"turn:turn.example.com:3478","username":"u","credential":"c"}]';

/** @throws {ConfigError} config_invalid, with what was expected. */
export function readIce(text: IceText): Pick<WebRtcOptions, "iceServers" | "udpPorts" | "natIp"> {
  const natIp = text.iceNatIp;
  if (natIp !== null && isIP(natIp) === 0) {
    refuse(`--ice-nat-ip: expected an IP address such as 203.0.113.5, got "${natIp}"`);
  }
  return { iceServers: readServers(text.iceServers), udpPorts: readPorts(text.iceUdpPort), natIp };
}

function readServers(text: string | null): readonly IceServer[] {
  if (text === null) return [];
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new ConfigError("config_invalid", `--ice-servers: not JSON; expected a list such as ${EXAMPLE}`, { cause });
  }
  const parsed = servers.safeParse(json);
  if (parsed.success) return parsed.data as readonly IceServer[];
  const problem = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  return refuse(`--ice-servers: ${problem}; expected a list such as ${EXAMPLE}`);
}

function readPorts(text: string | null): { readonly min: number; readonly max: number } | null {
  if (text === null) return null;
  const [, first, last] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? [];
  const min = Number(first);
  const max = Number(last ?? first);
  if (first !== undefined && min >= 1 && max <= 65_535 && min <= max) return { min, max };
  return refuse(`--ice-udp-port: expected a port or a range such as 50000-50100, got "${text}"`);
}

function refuse(message: string): never {
  throw new ConfigError("config_invalid", message);
}
