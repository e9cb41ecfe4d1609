import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/errors.ts";
import type { Server } from "../../src/server/server.ts";
import { loadTls, selfSignedTls } from "../../src/server/tls.ts";
import { Client, scriptedServer } from "../support/scripted-server.ts";

const directory = (): string => join(mkdtempSync(join(tmpdir(), "antiphon-tls-")), "tls");
const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

describe("self-signed", () => {
  test("is made once, kept for its owner only, and valid for this machine's names", async () => {
    const at = directory();
    const first = await selfSignedTls(at);
    const file = first.selfSignedFile as string;
    for (const name of [file, join(at, "key.pem")]) expect(statSync(name).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).not.toContain("PRIVATE KEY");
    const certificate = new X509Certificate(first.cert);
    for (const name of ["localhost", hostname()]) expect(certificate.checkHost(name)).toBe(name);
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(first.fingerprint).toBe(certificate.fingerprint256);
    expect((await selfSignedTls(at)).fingerprint).toBe(first.fingerprint);
  });

  test("is renewed before it expires", async () => {
    const at = directory();
    const first = await selfSignedTls(at);
    const inThreeYears = Date.now() + 3 * 365 * 24 * 3_600_000;
    const second = await selfSignedTls(at, inThreeYears);
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect((await selfSignedTls(at, inThreeYears)).fingerprint).toBe(second.fingerprint);
  });

  test("two servers that start at once end up with the same one", async () => {
    const at = directory();
    await Promise.all([1, 2, 3, 4].map(() => selfSignedTls(at)));
    const kept = await selfSignedTls(at);
    expect(new X509Certificate(kept.cert).checkPrivateKey(await keyOf(at))).toBe(true);
  });

  test("a client that trusts the file talks over wss:, another does not", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "antiphon-data-"));
    const server = await scriptedServer({ config: { tls: "self-signed", dataDir } });
    servers.push(server);
    await server.ready;
    const ca = readFileSync(server.tls?.selfSignedFile as string);
    const url = server.url.replace("127.0.0.1", "localhost");
    const trusting = new Client(`${url}/v1/realtime`, [], { ca });
    expect((await trusting.nextEvent())["type"]).toBe("session.created");
    trusting.socket.terminate();
    const stranger = new Client(`${url}/v1/realtime`);
    expect((await stranger.closed).code).toBe(1006);
  });
});

async function keyOf(at: string) {
  const { createPrivateKey } = await import("node:crypto");
  return createPrivateKey(readFileSync(join(at, "key.pem")));
}

describe("a certificate of one's own", () => {
  test("a file that is missing or no certificate is named", async () => {
    // Both were read at once, and the one whose error came first was named: at times the key, at times the certificate.
    for (let time = 0; time < 50; time++) {
      await expect(loadTls("/nowhere.pem", "/nowhere.key")).rejects.toThrow(
        "--tls-cert /nowhere.pem cannot be read (ENOENT)",
      );
    }
    const file = join(mkdtempSync(join(tmpdir(), "antiphon-tls-")), "cert.pem");
    writeFileSync(file, "not a certificate");
    await expect(loadTls(file, file)).rejects.toThrow(ConfigError);
  });
});
