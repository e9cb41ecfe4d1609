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

interface Address {
  readonly address: string;
  readonly port: number;
}

/** Stands where the server's UDP port would be; whoever sends to it is taken to the server. */
export class BadNetwork {
  readonly #outside: Socket = createSocket("udp4");
  /** One for each address of the peer, as a NAT would: ICE tries all of them. */
  readonly #inside = new Map<string, Socket>();
  readonly #faults: NetworkFaults;
  readonly #timers = new Set<NodeJS.Timeout>();
  #server: Address | null = null;
  #random = 1;
  #isClosed = false;
  sent = 0;
  lost = 0;

  constructor(faults: NetworkFaults) {
    this.#faults = faults;
    this.#outside.on("message", (packet, peer) => {
      if (this.#server !== null) this.#carry(packet, this.#socketOf(peer), this.#server);
    });
  }

  async open(): Promise<void> {
    this.#outside.bind(0, "0.0.0.0");
    await once(this.#outside, "listening");
  }
  /** The offer without the peer's addresses, so that no packet goes around. */
  offer(sdp: string): string {
    const isAddress = (line: string): boolean => line.startsWith("a=candidate:");
    return sdp
      .split("\r\n")
      .filter((line) => !isAddress(line))
      .join("\r\n");
  }
  /** The answer with this network in place of the server's addresses. */
  answer(sdp: string): string {
    const lines = sdp.split("\r\n").flatMap((line) => {
      if (!line.startsWith("a=candidate:")) return [line];
      const fields = line.split(" ");
      const [address = "", port] = fields.slice(4, 6);
      if (this.#server !== null || fields[2]?.toLowerCase() !== "udp" || address.includes(":")) return [];
      this.#server = { address, port: Number(port) };
      fields.splice(5, 1, String(this.#outside.address().port));
      return [fields.join(" ")];
    });
    return lines.join("\r\n");
  }
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of [this.#outside, ...this.#inside.values()]) socket.close();
  }

  #socketOf(peer: Address): Socket {
    const key = `${peer.address}:${peer.port}`;
    const known = this.#inside.get(key);
    if (known !== undefined) return known;
    const socket = createSocket("udp4");
    socket.on("message", (packet) => this.#carry(packet, this.#outside, peer));
    this.#inside.set(key, socket);
    return socket;
  }

  #carry(packet: Buffer, out: Socket, { address, port }: Address): void {
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
      if (!this.#isClosed) out.send(packet, port, address);
    }, delayMs + lateMs);
    this.#timers.add(timer);
  }
  /** A linear congruential generator: the same faults in every run. Source: Numerical Recipes. */
  #next(): number {
    this.#random = (this.#random * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return this.#random / 2 ** 32;
  }
}
