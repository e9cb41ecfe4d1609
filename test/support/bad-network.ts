/** A bad network between two UDP ports of this machine, without privileges: delay, loss and reordering, from a seed. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

export interface NetworkFaults {
  /** One way. */
  readonly delayMs: number;
  /** Added to some packets at random, which overtake each other by it. */
  readonly jitterMs: number;
  /** Share of packets that never arrive, each way. */
  readonly loss: number;
}

/** Stands where the server's UDP port would be; whoever sends to it is taken to the server. */
export class BadNetwork {
  readonly #outside: Socket = createSocket("udp4");
  readonly #inside: Socket = createSocket("udp4");
  readonly #faults: NetworkFaults;
  readonly #timers = new Set<NodeJS.Timeout>();
  #server: number | null = null;
  #serverAddress = "127.0.0.1";
  #peer: number | null = null;
  #random = 1;
  sent = 0;
  lost = 0;

  constructor(faults: NetworkFaults) {
    this.#faults = faults;
    this.#outside.on("message", (packet, { port }) => {
      this.#peer = port;
      this.#carry(packet, this.#inside, () => this.#server);
    });
    this.#inside.on("message", (packet) => this.#carry(packet, this.#outside, () => this.#peer));
  }

  async open(): Promise<void> {
    for (const socket of [this.#outside, this.#inside]) {
      socket.bind(0, "127.0.0.1");
      await once(socket, "listening");
    }
  }
  /** The offer without the peer's addresses, so that no packet goes around. */
  offer(sdp: string): string {
    return sdp
      .split("\r\n")
      .filter((line) => !line.startsWith("a=candidate:"))
      .join("\r\n");
  }
  /** The answer with this network in place of the server's UDP address. */
  answer(sdp: string): string {
    const lines: string[] = [];
    for (const line of sdp.split("\r\n")) {
      if (!line.startsWith("a=candidate:")) {
        lines.push(line);
        continue;
      }
      const fields = line.split(" ");
      if (this.#server !== null || fields[2]?.toLowerCase() !== "udp" || fields[4]?.includes(":") === true) continue;
      this.#server = Number(fields[5]);
      this.#serverAddress = fields[4] ?? "127.0.0.1";
      lines.push(
        [...fields.slice(0, 4), "127.0.0.1", String(this.#outside.address().port), ...fields.slice(6)].join(" "),
      );
    }
    return lines.join("\r\n");
  }
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#outside.close();
    this.#inside.close();
  }

  #carry(packet: Buffer, out: Socket, port: () => number | null): void {
    const { delayMs, jitterMs, loss } = this.#faults;
    this.sent += 1;
    if (this.#next() < loss) {
      this.lost += 1;
      return;
    }
    // One packet in four is late.
    const lateMs = this.#next() < 0.25 ? this.#next() * jitterMs : 0;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      const to = port();
      if (to !== null) out.send(packet, to, out === this.#inside ? this.#serverAddress : "127.0.0.1");
    }, delayMs + lateMs);
    this.#timers.add(timer);
  }
  /** A linear congruential generator: the same faults in every run. Source: Numerical Recipes. */
  #next(): number {
    this.#random = (this.#random * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return this.#random / 2 ** 32;
  }
}
