/** The certificate of https: the user's own, or one made once and kept. */
import { randomBytes, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { ConfigError } from "../errors.ts";

export interface TlsIdentity {
  readonly cert: string;
  readonly key: string;
  /** SHA-256, as browsers show it. */
  readonly fingerprint: string;
  /** The file that clients can be told to trust; null where the user brought a certificate of their own. */
  readonly selfSignedFile: string | null;
}

/** Browsers refuse server certificates that live longer than this. */
const LIFETIME_DAYS = 825;
const RENEWAL_DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;

/** @throws {ConfigError} config_invalid if a file cannot be read or the two do not belong together. */
export async function loadTls(certFile: string, keyFile: string): Promise<TlsIdentity> {
  // One after the other: where both are missing, it is always the same one that is named.
  const cert = await readPem(certFile, "--tls-cert");
  const key = await readPem(keyFile, "--tls-key");
  return { cert, key, fingerprint: fingerprintOf(cert, certFile), selfSignedFile: null };
}

/**
 * Reads the kept certificate from `directory`, or makes one where there is none or it is about to expire.
 * The directory is published whole: two servers that start at once end up with one pair, not two halves.
 */
export async function selfSignedTls(directory: string, nowMs: number = Date.now()): Promise<TlsIdentity> {
  const pair = (await readKept(directory, nowMs)) ?? (await keep(directory, await make(nowMs), nowMs));
  const certFile = join(directory, CERT_FILE);
  return { ...pair, fingerprint: fingerprintOf(pair.cert, certFile), selfSignedFile: certFile };
}

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

const CERT_FILE = "cert.pem";
const KEY_FILE = "key.pem";

async function readKept(directory: string, nowMs: number): Promise<KeyPair | null> {
  try {
    const cert = await readFile(join(directory, CERT_FILE), "utf8");
    const key = await readFile(join(directory, KEY_FILE), "utf8");
    const expiresMs = new Date(new X509Certificate(cert).validTo).getTime();
    return expiresMs - nowMs < RENEWAL_DAYS * DAY_MS ? null : { cert, key };
  } catch {
    // Absent or unreadable: a new one takes its place.
    return null;
  }
}

async function keep(directory: string, pair: KeyPair, nowMs: number): Promise<KeyPair> {
  const temporary = `${directory}.${process.pid}.${randomBytes(4).toString("hex")}`;
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  await writeFile(join(temporary, CERT_FILE), pair.cert, { mode: 0o600 });
  await writeFile(join(temporary, KEY_FILE), pair.key, { mode: 0o600 });
  try {
    await rename(temporary, directory);
    return pair;
  } catch {
    // Someone else was first, or what is there has expired.
    const kept = await readKept(directory, nowMs);
    if (kept === null) {
      await rm(directory, { recursive: true, force: true });
      await rename(temporary, directory);
      return pair;
    }
    await rm(temporary, { recursive: true, force: true });
    return kept;
  }
}

async function make(nowMs: number): Promise<KeyPair> {
  const names = [...new Set(["localhost", hostname(), `${hostname()}.local`])];
  const pair = await generate([{ name: "commonName", value: "antiphon" }], {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: new Date(nowMs - DAY_MS),
    notAfterDate: new Date(nowMs + (LIFETIME_DAYS - 1) * DAY_MS),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          ...names.map((value) => ({ type: 2 as const, value })),
          ...["127.0.0.1", "::1", ...networkAddresses()].map((ip) => ({ type: 7 as const, ip })),
        ],
      },
    ],
  });
  return { cert: pair.cert, key: pair.private };
}

/** IPv4 addresses under which other machines of the network see this one. */
export function networkAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter((address) => address.family === "IPv4" && !address.internal)
    .map((address) => address.address);
}

async function readPem(file: string, flag: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError("config_invalid", `${flag} ${file} cannot be read (${code})`, { cause: error });
  }
}

function fingerprintOf(cert: string, file: string): string {
  try {
    return new X509Certificate(cert).fingerprint256;
  } catch (error) {
    throw new ConfigError("config_invalid", `${file} is not a PEM certificate`, { cause: error });
  }
}
