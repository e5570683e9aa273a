"""Measures what it costs a server that groups are looked at.

cost.py BUILD [--groups 100] [--ranks 102] [--seconds 20] [--viewers 10]

BUILD has tools/musterd and tests/http/http_crowd. All groups pass a barrier a second, and a rank of
one is lost in each second. Tells how much of a core the thread that serves and that of HTTP have
taken, without a viewer, with the front idle, and with so many viewers of the stream; how long turns
were; and how long it takes until a viewer is told.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PATIENCE = 300.0


def processor_s(pid: int, name: str) -> float:
    """The time of a processor that a thread has had."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


class Viewers:
    """Connections that read a stream, and count what comes."""

    def __init__(self, port: int, count: int):
        self.sockets = []
        self.bytes = 0
        self.events = 0
        for index in range(count):
            one = socket.create_connection(("127.0.0.1", port), 10, (f"127.0.0.{index + 1}", 0))
            one.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.sockets.append(one)

    def read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select(self.sockets, [], [], left)
            for one in ready:
                part = one.recv(1 << 20)
                self.bytes += len(part)
                self.events += part.count(b"\nevent: ") + part.startswith(b"event: ")

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def figures(port: int) -> dict[str, float]:
    found = {}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
    return found


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    build = Path(arguments.build)
    server = subprocess.Popen(
        [build / "tools/musterd", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
         "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    port = int(server.stdout.readline().rstrip("/\n").rsplit(":", 1)[1])
    crowd = subprocess.Popen(
        [build / "tests/http/http_crowd", address, str(arguments.groups), str(arguments.ranks)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert crowd.stdin is not None and crowd.stdout is not None
    told: dict[str, object] = {"groups": arguments.groups, "ranks": arguments.ranks}
    try:
        assert crowd.stdout.readline() == "ready\n"
        for name, count in (("without viewers", 0), ("1 viewer", 1),
                            (f"{arguments.viewers} viewers", arguments.viewers),
                            ("without viewers again", 0)):
            if count == 0 and "again" in name:
                time.sleep(65)  # nothing is published any more
            viewers = Viewers(port, count)
            viewers.read(3)
            before = [processor_s(server.pid, thread) for thread in ("musterd", "muster-http")]
            bytes_before, events_before = viewers.bytes, viewers.events
            for _ in range(arguments.seconds):
                crowd.stdin.write("\n")
                crowd.stdin.flush()
                if count:
                    viewers.read(1)
                else:
                    time.sleep(1)
            after = [processor_s(server.pid, thread) for thread in ("musterd", "muster-http")]
            share = [100 * (late - early) / arguments.seconds
                     for early, late in zip(before, after)]
            told[name] = {
                "serving thread, % of a core": round(share[0], 2),
                "http thread, % of a core": round(share[1], 2),
                "bytes a second": round((viewers.bytes - bytes_before) / arguments.seconds),
                "events": viewers.events - events_before,
            }
            viewers.close()
        found = figures(port)
        told["turns"] = {name: value for name, value in found.items()
                         if name.startswith("muster_turn") or "longest_turn" in name}
    finally:
        crowd.kill()
        crowd.wait()
        server.kill()
        server.wait()
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=102)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=10)
    json.dump(measure(parser.parse_args()), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
