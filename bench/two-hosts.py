"""Two hosts on one machine: network namespaces, joined by a link that delays, loses and reorders IP packets.

    python3 bench/two-hosts.py --delay 50 --jitter 40 --loss 0.05 --server "COMMAND" --peer "COMMAND"

The server's command runs at 10.99.0.1, the peer's at 10.99.0.2. The peer's begins when the server has printed a line that
begins with http; its exit code is this program's. Wants root, and /dev/net/tun; no traffic control of the kernel.
"""

import argparse
import ctypes
import fcntl
import heapq
import itertools
import os
import random
import select
import shlex
import signal
import struct
import subprocess
import threading
import time

NAMES = ("antiphon-a", "antiphon-b")
ADDRESSES = ("10.99.0.1", "10.99.0.2")
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
CLONE_NEWNET = 0x40000000
PACKET_BYTES_MAX = 65_536


def in_host(name: str, command: str) -> list[str]:
    return ["ip", "netns", "exec", name, *shlex.split(command)]


def open_link(name: str, address: str) -> int:
    """A TUN device of the host, as a file of IP packets. The thread that asks is in that host afterwards."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    with open(f"/run/netns/{name}") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH14x", b"wire", IFF_TUN_NO_PI))
    for command in (f"ip addr add {address}/24 dev wire", "ip link set wire up", "ip link set lo up"):
        subprocess.run(in_host(name, command), check=True)
    return tun


class Link:
    """Carries packets both ways until told to stop."""

    def __init__(self, ends: list[int], delay: float, jitter: float, loss: float) -> None:
        self.sent = self.lost = 0
        self.running = True
        self._ends, self._delay, self._jitter, self._loss = ends, delay, jitter, loss
        self._random = random.Random(1)
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, int, bytes]] = []

    def run(self) -> None:
        other = dict(zip(self._ends, reversed(self._ends)))
        while self.running:
            pause = 0.1 if not self._waiting else min(0.1, max(0, self._waiting[0][0] - time.monotonic()))
            for end in select.select(self._ends, [], [], pause)[0]:
                self._take(os.read(end, PACKET_BYTES_MAX), other[end])
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(self._waiting)
                os.write(end, packet)

    def _take(self, packet: bytes, end: int) -> None:
        self.sent += 1
        if self._random.random() < self._loss:
            self.lost += 1
            return
        # One packet in four is late, and overtaken.
        late = self._random.random() * self._jitter if self._random.random() < 0.25 else 0
        heapq.heappush(self._waiting, (time.monotonic() + self._delay + late, next(self._order), end, packet))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=0, help="ms, one way")
    parser.add_argument("--jitter", type=float, default=0, help="ms, at most, for one packet in four")
    parser.add_argument("--loss", type=float, default=0, help="share of packets, each way")
    parser.add_argument("--server", required=True)
    parser.add_argument("--peer", required=True)
    options = parser.parse_args()
    server = None
    try:
        ends = [open_link(name, address) for name, address in zip(NAMES, ADDRESSES)]
        link = Link(ends, options.delay / 1000, options.jitter / 1000, options.loss)
        threading.Thread(target=link.run, daemon=True).start()
        # Of a group of its own: what npx starts outlives it.
        command = in_host(NAMES[0], options.server)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert server.stdout is not None
        if not any(line.startswith("http") for line in server.stdout):
            return 1
        code = subprocess.run(in_host(NAMES[1], options.peer), check=False).returncode
        print(f"packets: {link.sent} sent, {link.lost} lost", flush=True)
        return code
    finally:
        if server is not None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], check=False)


if __name__ == "__main__":
    raise SystemExit(main())
