"""Servers with HTTP for the tests, and connections to them that say what no client would."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

PATIENCE = 30.0


class Server:
    """A process that tells its URL, and is ended with the test."""

    def __init__(self, *command: str, stdout_lines: int = 0, errors: int = subprocess.DEVNULL):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=errors, text=True)
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline().strip() for _ in range(stdout_lines)]
        url = urlsplit(self.lines[-1].split()[-1])
        assert url.hostname is not None and url.port is not None
        self.host, self.port, self.scheme = url.hostname, url.port, url.scheme
        self.address = self.lines[0].split()[-1]

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def raw(self, source: str = "127.0.0.1") -> Raw:
        return Raw(self.host, self.port, source)

    def say_once(self, text: str | bytes) -> bytes:
        """All that is answered to these bytes, behind which nothing more comes."""
        with self.raw() as connection:
            connection.send(text)
            connection.socket.shutdown(socket.SHUT_WR)
            return connection.rest()

    def status(self, head: str | bytes) -> int:
        """Of a request whose head this is, but for its end."""
        if isinstance(head, str):
            head = head.encode("latin-1")
        answer = self.say_once(head + b"\r\n\r\n")
        assert answer, "closed without a word"
        return int(answer.split(b" ")[1])


class Raw:
    """A connection."""

    def __init__(self, host: str, port: int, source: str = "127.0.0.1"):
        self.socket = socket.create_connection((host, port), PATIENCE, (source, 0))

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode("latin-1") if isinstance(text, str) else text)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer, with the body that its length says."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.socket.recv(1)
            assert byte, f"ended in the midst of a head: {head!r}"
            head += byte
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:-2])
        size = int(fields["content-length"])
        body = b""
        while len(body) < size:
            part = self.socket.recv(size - len(body))
            assert part, "ended in the midst of a body"
            body += part
        return int(lines[0].split(" ")[1]), fields, body

    def rest(self) -> bytes:
        """What comes until the other side ends it."""
        told = b""
        try:
            while part := self.socket.recv(65536):
                told += part
        except ConnectionResetError:
            pass
        return told

    def is_ended_within(self, seconds: float) -> bool:
        """Whether the other side ends it within that time, without a word."""
        ready, _, _ = select.select([self.socket], [], [], seconds)
        return bool(ready) and self.rest() == b""


@pytest.fixture
def musterd() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*flags: str, http: str = "127.0.0.1:0", errors: int = subprocess.DEVNULL) -> Server:
        started.append(Server(os.environ["MUSTERD"], "--listen", "127.0.0.1:0", "--http", http,
                              *flags, stdout_lines=2, errors=errors))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def host() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*limits: str) -> Server:
        started.append(Server(os.environ["HTTP_HOST"], *limits, stdout_lines=1))
        return started[-1]

    yield start
    for server in started:
        server.stop()


class Rank:
    """A process that is one rank of a group."""

    def __init__(self, server: Server, group: str, rank: int, world_size: int, namespace: str = ""):
        self.process = subprocess.Popen(
            [os.environ["HTTP_RANKS"], server.address, namespace, group, str(rank),
             str(world_size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.heard() == "connected"

    def heard(self) -> str:
        """The next line that it tells."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def call(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def ranks() -> Iterator[Callable[..., Rank]]:
    started: list[Rank] = []

    def start(*arguments: Any, **more: Any) -> Rank:
        started.append(Rank(*arguments, **more))
        return started[-1]

    yield start
    for rank in started:
        rank.stop()


@pytest.fixture(scope="session")
def certificates() -> Iterator[dict[str, str]]:
    """Files: of an authority, of a server and a client that it has signed, and of a stranger."""
    maker = subprocess.Popen([os.environ["CERTIFICATES_PROGRAM"]], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    files = json.loads(maker.stdout.readline())
    for name, path in files.items():
        if name.endswith("_key"):
            os.chmod(path, 0o600)
    yield files
    maker.communicate(timeout=PATIENCE)


def token_in(folder: Path) -> tuple[str, Path]:
    """A new token with the right to read, and the file of tokens that has it."""
    made = subprocess.run([os.environ["MUSTERCTL"], "keygen", "--http", "one"], text=True,
                          stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout.split("\n")
    file = folder / "tokens"
    file.write_text(made[1] + "\n")
    file.chmod(0o600)
    return made[0], file


def until(holds: Callable[[], bool]) -> None:
    """Asks again and again, since nothing tells when it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        select.select([], [], [], 0.02)
