"""What a server counts, as it is asked for by HTTP."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from conftest import PATIENCE, until

MUSTERCTL = os.environ["MUSTERCTL"]


def musterctl(server, *arguments):
    return subprocess.run([MUSTERCTL, "--server", server.address, *arguments],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          timeout=PATIENCE).returncode


def metrics(server, accept="*/*"):
    """The type of the answer, and the lines of its text."""
    with server.raw() as connection:
        connection.send(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n")
        status, fields, body = connection.answer()
    assert status == 200
    return fields["content-type"], body.decode().splitlines()


def client_hello():
    """Begins a session."""
    page = Path(__file__).parent.parent / "golden" / "hello_client.txt"
    lines = re.findall(r"^ *\d+  ((?:[0-9a-f]{2}(?: |$))+)", page.read_text(), re.MULTILINE)
    return bytes.fromhex("".join(lines))


def value(server, sample):
    lines = [line for line in metrics(server)[1] if line.startswith(sample + " ")]
    assert len(lines) == 1, sample
    return float(lines[0].split(" ")[-1])


def test_both_formats_are_told_to_who_wants_them(musterd):
    server = musterd()
    kind, lines = metrics(server)
    assert kind.startswith("text/plain; version=0.0.4")
    assert "# TYPE muster_operations_total counter" in lines
    assert "# EOF" not in lines
    kind, lines = metrics(server, "application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert "# TYPE muster_operations counter" in lines
    assert lines[-1] == "# EOF"


def test_what_clients_do_is_counted(musterd):
    server = musterd()
    before = value(server, 'muster_operations_total{operation="set",outcome="ok"}')
    assert musterctl(server, "set", "a", "one") == 0
    assert musterctl(server, "set", "b", "two") == 0
    until(lambda: value(server, "muster_keys") == 2)
    assert value(server, 'muster_operations_total{operation="set",outcome="ok"}') == before + 2


def test_lines_of_the_log_that_nobody_takes_are_counted(musterd):
    server = musterd(errors=subprocess.PIPE)
    dropped = 'muster_log_lines_dropped_total{why="not_taken"}'
    assert value(server, dropped) == 0
    server.process.stderr.close()
    server.process.send_signal(signal.SIGHUP)  # each is told
    until(lambda: value(server, dropped) > 0)


def test_a_drained_server_is_not_ready(musterd):
    server = musterd()
    assert server.status("GET /readyz HTTP/1.1\r\nHost: localhost") == 200
    with socket.create_connection(server.address.rsplit(":", 1), PATIENCE) as client:
        client.sendall(client_hello())  # whoever is there is waited for
        until(lambda: value(server, "muster_sessions") == 1)
        assert musterctl(server, "drain", "an update") == 0
        answer = server.say_once("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"it is being drained" in answer and b"an update" not in answer
        assert musterctl(server, "drain", "--cancel") == 0
        assert server.status("GET /readyz HTTP/1.1\r\nHost: localhost") == 200
