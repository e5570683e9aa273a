"""What a client of TCPStore says: a server that answers it, and prints each request's bytes.

    record.py PYTHON [first|second]   runs ask.py by that Python, which has torch, and prints what
                                      comes; in which numbers if nobody says VALIDATE: of PyTorch 1
                                      and 2.0, or of 2.1

The lines of a call follow its name: the number of the connection, counted from 1, how many segments
had come since the request before (loopback's are up to 64 KiB long), the bytes of the request, and
what they mean; or that the connection has ended.
What the server does not understand it prints as it came, and ends the connection.
"""

import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

VALIDATE = bytes.fromhex("00cef7853c")
FIRST = ("SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS", "WATCH_KEY",
         "DELETE_KEY")
NEWEST = ("VALIDATE", "SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS",
          "DELETE_KEY", "APPEND", "MULTI_GET", "MULTI_SET", "CANCEL_WAIT", "PING", "QUEUE_PUSH",
          "QUEUE_POP", "QUEUE_LEN", "LIST_KEYS", "BARRIER")
WITHOUT_VALIDATE = {"first": FIRST, "second": NEWEST[1:13]}
# s: a string with its length; i: 64 bits; u: 32 bits; l: a list of s; p: a list of pairs of s.
FIELDS = {"VALIDATE": "u", "SET": "ss", "COMPARE_SET": "sss", "GET": "s", "ADD": "si",
          "CHECK": "l", "WAIT": "l", "GETNUMKEYS": "", "WATCH_KEY": "s", "DELETE_KEY": "s",
          "APPEND": "ss", "MULTI_GET": "l", "MULTI_SET": "p", "CANCEL_WAIT": "", "PING": "u",
          "QUEUE_PUSH": "ss", "QUEUE_POP": "s", "QUEUE_LEN": "s", "LIST_KEYS": "",
          "BARRIER": "si"}
ASK = Path(__file__).resolve().parent / "ask.py"
LIMIT_S = 120
DATA_SEGMENTS_IN = 152  # where it stands in the kernel's tcp_info


def text(value):
    return struct.pack("<q", len(value)) + value


def number(value):
    return struct.pack("<q", value)


class Ended(Exception):
    """The client has closed its connection."""


class Store:
    """Answers as TCPStore does."""

    def __init__(self):
        self.lock = threading.Condition()
        self.values = {}
        self.queues = {}
        self.waits = []  # connection, and the keys that it awaits

    def there(self, keys):
        return all(key in self.values or self.queues.get(key) for key in keys)

    def answer(self, who, command, fields):
        with self.lock:
            reply = getattr(self, command.lower(), lambda *_: b"")(who, *fields)
            for wait in [wait for wait in self.waits if self.there(wait[1])]:
                self.waits.remove(wait)
                wait[0].send(b"\0")
        return reply

    def set(self, _, key, value):
        self.values[key] = value
        return b""

    def compare_set(self, _, key, expected, desired):
        now = self.values.get(key, b"" if expected == b"" else None)
        if now is None:
            return text(expected)
        if now == expected:
            self.values[key] = now = desired
        return text(now)

    def get(self, _, key):
        return text(self.values.get(key, b""))

    def add(self, _, key, delta):
        self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + delta)
        return number(int(self.values[key]))

    def check(self, _, keys):
        return b"\0" if self.there(keys) else b"\1"

    def wait(self, who, keys):
        self.waits.append((who, keys))
        return b""

    def getnumkeys(self, _):
        return number(len(self.values))

    def watch_key(self, *_):
        return b"\3"

    def delete_key(self, _, key):
        return number(0 if self.values.pop(key, None) is None else 1)

    def append(self, _, key, value):
        self.values[key] = self.values.get(key, b"") + value
        return b""

    def multi_get(self, _, keys):
        return b"".join(text(self.values.get(key, b"")) for key in keys)

    def multi_set(self, _, pairs):
        self.values.update(pairs)
        return b""

    def cancel_wait(self, who):
        self.waits = [wait for wait in self.waits if wait[0] is not who]
        return b"\1"

    def ping(self, _, nonce):
        return struct.pack("<I", nonce)

    def queue_push(self, _, key, value):
        self.queues.setdefault(key, []).append(value)
        return b""

    def queue_pop(self, _, key):
        queue = self.queues.get(key, [])
        return number(len(queue)) + (text(queue.pop(0)) if queue else b"")

    def queue_len(self, _, key):
        return number(len(self.queues.get(key, [])))

    def list_keys(self, _):
        return number(len(self.values)) + b"".join(map(text, self.values))

    def barrier(self, who, key, size):
        self.add(who, key, 1)
        return b"\0" if int(self.values[key]) >= size else b""


class Connection:
    """Reads one client's requests."""

    def __init__(self, its_socket, its_number, store, numbers):
        self.socket = its_socket
        self.number = its_number
        self.store = store
        self.numbers = numbers
        self.commands = None
        self.segments = 0  # that had come when the last request was whole
        self.read_bytes = b""
        self.left = b""

    def send(self, data):
        self.socket.sendall(data)

    def more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise Ended
        self.left += piece

    def take(self, count):
        while len(self.left) < count:
            self.more()
        taken, self.left = self.left[:count], self.left[count:]
        self.read_bytes += taken
        return taken

    def segments_since(self):
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, DATA_SEGMENTS_IN + 4)
        before, self.segments = self.segments, struct.unpack_from("=I", info, DATA_SEGMENTS_IN)[0]
        return self.segments - before

    def integer(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def field(self, kind):
        if kind == "s":
            return self.take(self.integer("Q"))
        if kind == "l":
            return [self.field("s") for _ in range(self.integer("Q"))]
        if kind == "p":
            return [(self.field("s"), self.field("s")) for _ in range(self.integer("Q"))]
        return self.integer({"i": "q", "u": "I"}[kind])

    def request(self):
        first = self.take(1)
        if self.commands is None:
            while len(self.left) < 4 and VALIDATE.startswith(first + self.left):
                self.more()
            self.commands = NEWEST if first + self.left[:4] == VALIDATE else self.numbers
        if first[0] >= len(self.commands):
            return None, []
        command = self.commands[first[0]]
        return command, [self.field(kind) for kind in FIELDS[command]]

    def serve(self, say):
        try:
            while True:
                self.read_bytes = b""
                command, fields = self.request()
                begin = f"{self.number}: {self.segments_since()}: "
                if command is None:
                    say(f"{begin}not understood: {(self.read_bytes + self.left).hex(' ')}")
                    break
                say(f"{begin}{self.read_bytes.hex(' ')}: {command} {self.read_bytes[0]} "
                    f"{', '.join(map(str, fields))}")
                self.send(self.store.answer(self, command, fields))
        except (Ended, ConnectionError):
            self.store.cancel_wait(self)
            rest = f", in the middle of {self.read_bytes.hex(' ')}" if self.read_bytes else ""
            say(f"{self.number}: ended{rest}")
        self.socket.close()


class Recorder:
    def __init__(self, numbers):
        self.numbers = numbers
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def say(self, line):
        with self.lock:
            print(f"  {line}\n", end="", flush=True)

    def accept(self):
        store = Store()
        for its_number in range(1, 1 << 20):
            its_socket, _ = self.listener.accept()
            its_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.say(f"{its_number}: begins")
            connection = Connection(its_socket, its_number, store, self.numbers)
            threading.Thread(target=connection.serve, args=(self.say,), daemon=True).start()


def main(python, numbers="first"):
    """The script says what it calls next, and goes on when that is printed."""
    recorder = Recorder(WITHOUT_VALIDATE[numbers])
    with subprocess.Popen([python, ASK, str(recorder.port)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as asking:
        outer_limit = threading.Timer(LIMIT_S, asking.kill)
        outer_limit.start()
        for line in asking.stdout:
            print(line, end="", flush=True)
            asking.stdin.write("\n")
            asking.stdin.flush()
        outer_limit.cancel()
    return asking.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
