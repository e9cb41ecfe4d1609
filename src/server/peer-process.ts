/** The main process's side of one peer's process: starts it, talks to it, and sees to its end. */
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { AppError, CapacityError } from "../errors.ts";
import { systemClock } from "../util/clock.ts";
import type { Log } from "../util/log.ts";
import { forkModule } from "../workers/fork.ts";
import { StderrLines } from "../workers/stderr-lines.ts";
import type { FromPeer, ToPeer } from "./peer-wire.ts";

const ENTRY = new URL("./peer-entry.ts", import.meta.url);
/** Half a second for the last words, and some for a busy machine. */
const END_MS_MAX = 3_000;

export interface PeerListener {
  /** After `ready`. */
  receive(message: FromPeer): void;
  /** `signal` where it was killed or crashed. */
  ended(signal: NodeJS.Signals | null): void;
}

export class PeerProcess {
  /**
   * libwebrtc is loaded.
   * @throws {AppError} not_implemented where there is none; internal_error where it ends before.
   * @throws {CapacityError} session_limit_reached where the machine lets no further process start.
   */
  readonly ready: Promise<void>;
  /** The process is gone. */
  readonly ended: Promise<void>;
  readonly #process: ChildProcess;
  #listener: PeerListener | null = null;
  #isEnding = false;
  #failure: NodeJS.ErrnoException | null = null;

  constructor(log: Log) {
    const child = forkModule(ENTRY, [], ["ignore", "ignore", "pipe", "ipc"]);
    this.#process = child;
    // One that waits for a call does not keep a program alive.
    child.unref();
    child.channel?.unref();
    const lines = new StderrLines((line) => log.warn({ line }, "output of a call's process"));
    child.stderr?.on("data", (chunk: Buffer) => lines.push(chunk));
    (child.stderr as Socket | null)?.unref();
    this.ended = new Promise((resolve) => {
      const end = (signal: NodeJS.Signals | null): void => {
        resolve();
        this.#listener?.ended(signal);
        this.#listener = null;
      };
      child.once("exit", (_code, signal) => end(signal));
      // It could not be started, or not be reached.
      child.once("error", (error) => {
        this.#failure = error;
        end(null);
      });
    });
    this.ready = new Promise((resolve, reject) => {
      child.on("message", (message: FromPeer) => {
        if (message.type === "ready") resolve();
        else if (message.type === "unavailable") {
          reject(unavailable(message.reason));
          this.kill();
        } else this.#listener?.receive(message);
      });
      void this.ended.then(() => reject(endedEarly(this.#failure)));
    });
    this.ready.catch(() => {});
  }

  /** Null when it has ended. */
  get pid(): number | null {
    const { exitCode, signalCode, pid } = this.#process;
    return exitCode === null && signalCode === null ? (pid ?? null) : null;
  }
  listen(listener: PeerListener): void {
    this.#listener = listener;
    this.#process.ref();
    this.#process.channel?.ref();
  }
  send(message: ToPeer): void {
    if (!this.#process.connected) return;
    // A process that has just ended is told of by its "exit".
    this.#process.send(message, () => {});
  }
  /** Lets the peer say its last words. Idempotent. */
  async end(): Promise<void> {
    if (!this.#isEnding) {
      this.#isEnding = true;
      this.send({ type: "close" });
      const cancel = systemClock.schedule(END_MS_MAX, () => this.#process.kill("SIGKILL"));
      void this.ended.then(cancel);
    }
    await this.ended;
  }
  /** For one that never had a peer. */
  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

/** What a system says that has no room for one more process, or for its pipes. */
const FULL = new Set(["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"]);

function endedEarly(failure: NodeJS.ErrnoException | null): AppError {
  const code = failure?.code ?? "";
  if (!FULL.has(code)) return new AppError("internal_error", "The process of the call ended; try again.");
  return new CapacityError(
    "session_limit_reached",
    `This machine starts no further process for a call (${code}); try again when another call has ended. Whoever runs this server can raise its limits of open files and processes.`,
    { retryable: true },
  );
}

function unavailable(reason: string): AppError {
  const machine = `${process.platform}-${process.arch}`;
  return new AppError("not_implemented", `No WebRTC on ${machine}: use the WebSocket at /v1/realtime.`, {
    details: { reason: reason.slice(0, 200) },
  });
}
