"""A client of TCPStore's protocol without torch, for ranks of tcpstore_test.py.

tcpstore_client.py VERB [ARGUMENT...]   what one rank does and prints; see the functions below
"""

import os
import socket
import struct
import sys
import time
from pathlib import Path

PATIENCE_S = 60
VALIDATE = b"\x00\xce\xf7\x85\x3c"
SET, GET, CHECK, WAIT = 1, 3, 5, 6


class Client:
    """As torch's: where the environment says, or at that port of another address."""

    def __init__(self, host=None):
        address = (host or os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.socket.sendall(VALIDATE)

    @staticmethod
    def text(value):
        return struct.pack("=Q", len(value)) + value.encode()

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the store has ended the connection")
            data += more
        return data

    def set(self, key, value):
        self.socket.sendall(bytes([SET]) + self.text(key) + self.text(value))

    def get(self, key):
        self.socket.sendall(bytes([GET]) + self.text(key))
        return self.read(struct.unpack("=Q", self.read(8))[0]).decode()

    def has(self, key):
        self.socket.sendall(bytes([CHECK]) + struct.pack("=Q", 1) + self.text(key))
        return self.read(1) == b"\0"

    def wait(self, *keys):
        self.socket.sendall(bytes([WAIT]) + struct.pack("=Q", len(keys)) +
                            b"".join(map(self.text, keys)))
        self.read(1)


def await_file(path):
    end = time.monotonic() + PATIENCE_S
    while not Path(path).exists():
        if time.monotonic() > end:
            sys.exit(f"there is no {path}")
        time.sleep(0.01)


RANK = int(os.environ.get("RANK", 0))
ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def attempts():
    """All ranks set a key of their attempt; then the last one fails, if it is the first attempt."""
    store = Client()
    count = int(os.environ["WORLD_SIZE"])
    store.set(f"{ATTEMPT}/{RANK}", "set")
    store.wait(*(f"{ATTEMPT}/{rank}" for rank in range(count)))
    others = [f"{attempt}/{rank}" for attempt in range(ATTEMPT) for rank in range(count)]
    seen = [key for key in others if store.has(key)]
    print(f"{RANK} in {ATTEMPT} at {os.environ['MASTER_PORT']} by "
          f"{os.environ['TORCHELASTIC_USE_AGENT_STORE']}: {seen}", flush=True)
    store.set(f"told/{RANK}", "")
    store.wait(*(f"told/{rank}" for rank in range(count)))
    if ATTEMPT == 0 and RANK == count - 1:
        sys.exit(1)
    if ATTEMPT == 0:
        time.sleep(PATIENCE_S)


def beside(folder, own, other):
    """Of two jobs at once: what each sets, the other does not see."""
    store = Client()
    store.set(own, "set")
    store.wait(own)
    Path(folder, f"{own}-{RANK}").touch()
    for rank in (0, 1):
        await_file(f"{folder}/{other}-{rank}")
    print(RANK, store.has(own), store.has(other), flush=True)


def outlived():
    """Rank 0 ends, and the others still have the store."""
    store = Client()
    if RANK == 0:
        store.set("pid", str(os.getpid()))
        return
    store.wait("pid")
    pid = store.get("pid")
    end = time.monotonic() + PATIENCE_S
    while Path("/proc", pid).exists() and time.monotonic() < end:
        time.sleep(0.01)
    store.set("after", "set")
    print(Path("/proc", pid).exists(), store.get("after"), flush=True)


def told(host=None):
    """What a rank is told, and whether somebody serves it there."""
    try:
        store = Client(host)
        store.set("key", "set")
        is_there = store.has("key")
    except OSError:
        is_there = False
    print(os.environ["MASTER_ADDR"], os.environ["TORCHELASTIC_USE_AGENT_STORE"], is_there,
          flush=True)


def second():
    """A program of PyTorch 2.1, which says no VALIDATE and has other numbers."""
    append, multi_get = 8, 9
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        key = Client.text(f"key-{RANK}")
        connection.sendall(bytes([append]) + key + Client.text("a") +
                           bytes([append]) + key + Client.text("b") +
                           bytes([multi_get]) + struct.pack("=Q", 1) + key)
        print(connection.recv(64)[8:].decode(), flush=True)


def too_long():
    """A key beyond all limits ends the connection."""
    store = Client()
    store.set("x" * 100_000, "")
    try:
        store.has("key")
    except OSError:
        print("ended", flush=True)


if __name__ == "__main__":
    {each.__name__: each for each in (attempts, beside, outlived, second, told, too_long)}[
        sys.argv[1]](*sys.argv[2:])
