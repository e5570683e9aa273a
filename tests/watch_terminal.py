"""Test: `musterctl --watch` on a terminal keeps to its size, scrolls, and keeps the last answer.

watch_terminal.py MUSTERCTL MUSTERD
"""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios

ROWS, COLUMNS = 12, 60
TIMEOUT_S = 20


def screens(terminal):
    """What is shown, each time it was drawn: its lines."""
    shown = b""
    while True:
        begin, found, end = shown.partition(b"\x1b[J")
        if found:
            shown = end
            text = begin.decode().replace("\r\n", "\n").replace("\x1b[2J", "")
            assert text.startswith("\x1b[H"), repr(text)
            yield text.removeprefix("\x1b[H").replace("\x1b[K", "").split("\n")
        else:
            shown += os.read(terminal, 65536)


def rows_of(lines):
    return sum(max(1, -(-len(line) // COLUMNS)) for line in lines)


def next_with(shown, pattern):
    for lines in shown:
        assert rows_of(lines) <= ROWS, lines
        if any(re.search(pattern, line) for line in lines):
            return lines
    raise AssertionError("unreachable")


def lines_seen(terminal, shown, lines):
    """Scrolls down to the end and back to the top, and counts the lines of the answer."""
    seen = set()
    place = re.compile(r"^lines (\d+) to (\d+) of (\d+); ")
    last = -1
    while last != (count := int(place.match(lines[-1])[3])):
        first, last = (int(number) for number in place.match(lines[-1]).groups()[:2])
        seen.update(range(first, last + 1))
        if last < count:
            os.write(terminal, b"\x1b[6~")
            lines = next_with(shown, rf"^lines {last + 1} to |^lines \d+ to {count} of ")
    assert seen == set(range(1, count + 1)), seen
    os.write(terminal, b"k")
    next_with(shown, rf"^lines \d+ to {count - 1} of ")
    os.write(terminal, b"\x1b[H")
    next_with(shown, "^lines 1 to ")
    return count


def main():
    musterctl, musterd = sys.argv[1:]
    signal.alarm(TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/socket"
        server = subprocess.Popen([musterd, "--listen", address, "--log-level", "silent"],
                                  stdout=subprocess.PIPE)
        server.stdout.readline()  # it listens
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        watch = subprocess.Popen(
            [musterctl, "--server", address, "--timeout", "300ms", "--watch=100ms", "status"],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        try:
            shown = screens(ours)
            first = next_with(shown, "^version ")
            assert first[0].startswith("every 100 ms, "), first
            assert re.match(r"lines 1 to \d+ of \d+; ", first[-1]), first
            assert lines_seen(ours, shown, first) > 3 * ROWS
            server.kill()
            server.wait()
            without = next_with(shown, "^no answer for ")
            assert any(line.startswith("the last answer, of ") for line in without), without
            before = termios.tcgetattr(theirs)[3]
            assert not before & termios.ICANON
            watch.send_signal(signal.SIGINT)
            assert watch.wait() == 0
            assert termios.tcgetattr(theirs)[3] & termios.ICANON
        finally:
            for process in (watch, server):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
