"""Measures what strangers at the port of HTTP cost the barriers of a group.

strangers.py BUILD [--ranks 64] [--rate 100] [--seconds 5] [--rounds 7]

BUILD has tools/musterd and tests/http/http_crowd. A group passes barriers at a server without a
port of HTTP, and another one at a server that has it: in turn nobody is there, or 50 programs ask
for /metrics once a second each, by a new connection, while 1,000 connections have begun a request
that they never end. Tells the processor time of the thread that serves per barrier of each, the
ratios of the medians, and the longest turn.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from cost import figures, processor_s

SCRAPERS = 50
HALF_OPEN = 1000


class Case:
    """A musterd and a group that passes barriers."""

    def __init__(self, arguments: argparse.Namespace, has_http: bool):
        build = Path(arguments.build)
        flags = ["--http", "127.0.0.1:0"] if has_http else []
        self.server = subprocess.Popen(
            [str(build / "tools/musterd"), "--listen", "127.0.0.1:0", "--log-level", "error",
             *flags], stdout=subprocess.PIPE, text=True)
        address = self.line(self.server).split()[-1]
        self.port = int(self.line(self.server).rstrip("/").rsplit(":", 1)[1]) if has_http else 0
        self.crowd = subprocess.Popen(
            [str(build / "tests/http/http_crowd"), address, "1", str(arguments.ranks),
             str(arguments.rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.line(self.crowd) == "ready"

    @staticmethod
    def line(program: subprocess.Popen[str]) -> str:
        assert program.stdout is not None
        return program.stdout.readline().strip()

    def barriers(self) -> int:
        assert self.crowd.stdin is not None
        self.crowd.stdin.write("count\n")
        self.crowd.stdin.flush()
        return int(self.line(self.crowd))

    def us_per_barrier(self, seconds: float) -> float:
        before, began = self.barriers(), processor_s(self.server.pid, "musterd")
        time.sleep(seconds)
        used = processor_s(self.server.pid, "musterd") - began
        return 1e6 * used / (self.barriers() - before)

    def end(self) -> None:
        for program in (self.crowd, self.server):
            program.terminate()
            program.wait()


class Strangers:
    """Half-open connections, which are made again where they are ended, and scrapers."""

    def __init__(self, port: int):
        self.port = port
        self.ends = threading.Event()
        self.answered = 0
        self.unanswered = 0
        self.ended = 0
        self.threads = [threading.Thread(target=self.half_open),
                        *(threading.Thread(target=self.scrape, args=(index,))
                          for index in range(SCRAPERS))]
        for thread in self.threads:
            thread.start()

    def scrape(self, index: int) -> None:
        """By a new connection each time, so that it needs a place."""
        self.ends.wait(index / SCRAPERS)
        while not self.ends.wait(1):
            scraper = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10,
                                                 source_address=(f"127.0.2.{index + 1}", 0))
            status = 0
            with contextlib.suppress(OSError, http.client.HTTPException):
                scraper.request("GET", "/metrics")
                answer = scraper.getresponse()
                answer.read()
                status = answer.status
            scraper.close()
            if status == 200:
                self.answered += 1
            else:
                self.unanswered += 1

    def half_open(self) -> None:
        with selectors.DefaultSelector() as ready:
            for number in range(HALF_OPEN):
                self.begin(ready, number)
            while not self.ends.is_set():
                for key, _ in ready.select(0.2):
                    assert isinstance(key.fileobj, socket.socket)
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
                    self.ended += 1
                    if not self.ends.wait(0.002):
                        self.begin(ready, key.data)
            for key in list(ready.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()

    def begin(self, ready: selectors.BaseSelector, number: int) -> None:
        one = socket.socket()
        with contextlib.suppress(OSError):
            one.bind((f"127.0.1.{number % 20 + 1}", 0))
            one.connect(("127.0.0.1", self.port))
            one.sendall(b"GET /healthz HTTP/1.1\r\n")
        ready.register(one, selectors.EVENT_READ, number)

    def end(self) -> None:
        self.ends.set()
        for thread in self.threads:
            thread.join()


@contextlib.contextmanager
def case(arguments: argparse.Namespace, has_http: bool) -> Iterator[Case]:
    made = Case(arguments, has_http)
    try:
        yield made
    finally:
        made.end()


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    without: list[float] = []
    alone: list[float] = []
    beside: list[float] = []
    answered = unanswered = ended = 0
    with case(arguments, False) as bare, case(arguments, True) as measured:
        for _ in range(arguments.rounds):
            without.append(bare.us_per_barrier(arguments.seconds))
            alone.append(measured.us_per_barrier(arguments.seconds))
            strangers = Strangers(measured.port)
            time.sleep(2)
            beside.append(measured.us_per_barrier(arguments.seconds))
            strangers.end()
            answered += strangers.answered
            unanswered += strangers.unanswered
            ended += strangers.ended
            time.sleep(2)
        longest = figures(measured.port)["muster_longest_turn_seconds"]
    return {
        "ranks": arguments.ranks,
        "barriers a second": arguments.rate,
        "us per barrier, without --http": [round(one, 1) for one in without],
        "us per barrier, nobody there": [round(one, 1) for one in alone],
        "us per barrier, with strangers": [round(one, 1) for one in beside],
        "nobody there to without": round(statistics.median(alone) / statistics.median(without), 3),
        "strangers to nobody there": round(statistics.median(beside) / statistics.median(alone), 3),
        "scrapes answered": answered,
        "scrapes not answered": unanswered,
        "half-open connections ended": ended,
        "longest turn, ms": round(1000 * longest, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--rate", type=int, default=100, help="barriers a second")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    json.dump(measure(parser.parse_args()), sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
