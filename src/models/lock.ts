/**
 * One owner at a time among processes that share a cache, also over a network disk. The lock is a file that names its
 * owner and whose time the owner renews. It is stale when its owner is gone from this machine, or when a waiter has not
 * seen it renewed for `STALE_MS` (by its own clock: those of two machines differ). One waiter then removes it, under a
 * claim that carries the stale owner's token.
 */
import { randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { type FileHandle, open, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { Clock } from "../util/clock.ts";
import { systemCode } from "./failure.ts";

const RENEW_MS = 5_000;
const STALE_MS = 30_000;
const POLL_MS = 200;
/** A claim is held for two calls of the file system; an hour allows for any clock. */
const CLAIM_MS = 3_600_000;

interface Owner {
  readonly token: string;
  readonly pid: number;
  /** Host and process namespace: a pid means something only within both. */
  readonly place: string;
}

export interface LockOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Called once, with `pid N on HOST`, when somebody else has the lock. */
  readonly onWait?: (owner: string) => void;
}

/** Runs `task` while holding the lock file at `path`; its folder must exist. */
export async function withLock<T>(path: string, options: LockOptions, task: () => Promise<T>): Promise<T> {
  const release = await acquire(path, options);
  try {
    return await task();
  } finally {
    await release();
  }
}

async function acquire(path: string, options: LockOptions): Promise<() => Promise<void>> {
  const owner: Owner = { token: randomBytes(8).toString("hex"), pid: process.pid, place: thisPlace() };
  const watch = new RenewalWatch(options.clock);
  let told = false;
  for (;;) {
    options.signal?.throwIfAborted();
    if (await create(path, owner)) return renewing(path, owner, options.clock);
    const other = await readOwner(path);
    if (other !== null && ((await watch.isStale(path)) || isGone(other))) {
      await removeStale(path, other, options.clock);
      continue;
    }
    if (!told && other !== null) {
      told = true;
      options.onWait?.(`pid ${other.pid} on ${other.place.split(" ")[0]}`);
    }
    await pause(POLL_MS, options);
  }
}

async function create(path: string, owner: Owner): Promise<boolean> {
  let file: FileHandle;
  try {
    file = await open(path, "wx");
  } catch (error) {
    // Windows answers EPERM while a removed file is still open elsewhere.
    if (systemCode(error) === "EEXIST" || (process.platform === "win32" && systemCode(error) === "EPERM")) return false;
    throw error;
  }
  try {
    await file.writeFile(JSON.stringify(owner));
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return true;
}

function renewing(path: string, owner: Owner, clock: Clock): () => Promise<void> {
  let stop = (): void => {};
  const renew = (): void => {
    stop = clock.schedule(RENEW_MS, () => {
      const now = new Date();
      utimes(path, now, now).catch(() => {}); // A lock that was taken away is noticed on release.
      renew();
    });
  };
  renew();
  return async () => {
    stop();
    if ((await readOwner(path))?.token === owner.token) await rm(path, { force: true });
  };
}

/** Null when the file is gone; an owner without a token when it is being written or was cut short. */
async function readOwner(path: string): Promise<Owner | null> {
  try {
    const text = await readFile(path, "utf8");
    try {
      return JSON.parse(text) as Owner;
    } catch {
      return { token: "unreadable", pid: 0, place: "unknown" };
    }
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

/** Notices when a lock, or a claim, stays as it is for too long. */
class RenewalWatch {
  readonly #clock: Clock;
  #state = "";
  #sinceMs = 0;
  constructor(clock: Clock) {
    this.#clock = clock;
  }
  async isStale(path: string): Promise<boolean> {
    const found = await stat(path).catch(() => null);
    if (found === null) return false;
    const state = `${found.ino} ${found.mtimeMs}`;
    const nowMs = this.#clock.nowMs();
    if (state !== this.#state) {
      this.#state = state;
      this.#sinceMs = nowMs;
    }
    return nowMs - this.#sinceMs > STALE_MS;
  }
}

function isGone({ place, pid }: Owner): boolean {
  return place === thisPlace() && !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

/** Only the holder of the claim on a token may remove the lock of that token, and only while it still is that one. */
async function removeStale(path: string, owner: Owner, clock: Clock): Promise<void> {
  const claim = `${path}.${owner.token}.stale`;
  try {
    await writeFile(claim, "", { flag: "wx" });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    // Another waiter is at it, unless it died between claim and removal.
    const claimed = await stat(claim).catch(() => null);
    if (claimed !== null && Date.now() - claimed.mtimeMs > CLAIM_MS) await rm(claim, { force: true });
    await pause(POLL_MS, { clock });
    return;
  }
  try {
    if ((await readOwner(path))?.token === owner.token) await rm(path, { force: true });
  } finally {
    await rm(claim, { force: true });
  }
}

function thisPlace(): string {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Waits on the clock; ends early, throwing the signal's reason, on abort. */
export function pause(delayMs: number, options: Pick<LockOptions, "clock" | "signal">): Promise<void> {
  return new Promise((resolve, reject) => {
    const { signal } = options;
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = options.clock.schedule(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}
