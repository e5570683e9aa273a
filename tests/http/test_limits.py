"""Who takes too long or too much costs nobody else anything."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess

import pytest

from conftest import PATIENCE, Raw, until

GET = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def is_served(server, source="127.0.0.1", path="/healthz"):
    with server.raw(source) as connection:
        connection.send(GET.replace("/healthz", path))
        return connection.answer()[0] == 200


def test_a_head_has_its_time_whatever_comes_of_it(host):
    server = host("head_ms=600", "idle_ms=60000")
    with server.raw() as connection, server.raw() as silent:
        connection.send("GET /healthz HTTP/1.1\r\nA: ")
        until(lambda: has_answered_to_a_byte(connection))
        assert silent.is_ended_within(PATIENCE)


def has_answered_to_a_byte(connection):
    try:
        connection.send("a")
        return bool(select.select([connection.socket], [], [], 0.05)[0])
    except ConnectionError:
        return True


def test_one_that_is_slow_is_told_so(host):
    server = host("head_ms=300")
    with server.raw() as connection:
        connection.send("GET /healthz HTTP/1.1\r\n")
        status, fields, _ = connection.answer()
        assert (status, fields["connection"]) == (408, "close")
        assert connection.is_ended_within(PATIENCE)


def test_a_second_head_has_its_time_too(host):
    server = host("head_ms=300", "idle_ms=60000")
    with server.raw() as connection:
        connection.send(GET + "GET /he")
        assert connection.answer()[0] == 200
        assert connection.answer()[0] == 408
    with server.raw() as connection:
        connection.send(GET)
        assert connection.answer()[0] == 200
        connection.send("GET /he")
        assert connection.answer()[0] == 408


def test_a_connection_that_asks_nothing_more_is_closed(host):
    server = host("head_ms=60000", "idle_ms=300")
    with server.raw() as connection:
        connection.send(GET)
        assert connection.answer()[0] == 200
        assert connection.is_ended_within(PATIENCE)


def test_who_does_not_take_his_answer_loses_it(host):
    server = host("write_ms=500")
    with server.raw() as connection:
        connection.send("GET /large?100000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.socket.recv(1)
        # Nothing is read until the other side has given up, which the others do not notice.
        assert is_served(server)
        until(lambda: has_hung_up(connection.socket))
        assert len(connection.rest()) < 100000000


def has_hung_up(connection):
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(20))


def test_there_is_a_limit_per_address_and_one_for_all(host):
    server = host("connections_max=20", "connections_per_address_max=8", "idle_ms=600000")
    with contextlib.ExitStack() as stack:
        def connect(source):
            return stack.enter_context(server.raw(source))

        def hold(source):
            one = connect(source)
            one.send(GET)
            assert one.answer()[0] == 200
            return one

        held = [hold("127.0.0.1") for _ in range(8)]
        refused = connect("127.0.0.1")
        status, fields, why = refused.answer()
        assert (status, fields["connection"]) == (503, "close")
        assert b"20 connections" in why and b"8 of an address" in why
        held += [hold("127.0.0.2") for _ in range(8)]
        held += [hold("127.0.0.3") for _ in range(4)]
        assert connect("127.0.0.4").answer()[0] == 503
        # How the server is, is told all the same: to be full is not to hang.
        for path, expected in (("/healthz", 200), ("/large?1", 503)):
            other = connect("127.0.0.4")
            other.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, fields, _ = other.answer()
            assert (status, fields["connection"]) == (expected, "close"), path
        held[0].socket.close()
        until(lambda: is_served(server, "127.0.0.4", "/echo"))
        held[1].send(GET)
        assert held[1].answer()[0] == 200


def test_who_has_asked_for_nothing_longest_yields(host):
    server = host("connections_max=20", "connections_per_address_max=8", "head_ms=600000",
                  "idle_ms=600000")
    with contextlib.ExitStack() as stack:
        def connect(source):
            return stack.enter_context(server.raw(source))

        settled = connect("127.0.0.1")
        settled.send(GET)
        assert settled.answer()[0] == 200
        silent = [connect("127.0.0.1") for _ in range(3)]
        halves = [connect("127.0.0.1") for _ in range(4)]
        for one in halves:
            one.send("GET /healthz HTTP/1.1\r\n")
        for count in range(1, 31):  # each that comes is served, and one of those before goes
            assert is_served(server, path="/echo"), count
            if count == 1:
                assert silent[0].is_ended_within(PATIENCE)
        crowd = [connect(f"127.0.0.{2 + number // 8}") for number in range(60)]
        assert is_served(server, "127.0.0.99", "/echo")
        settled.send(GET)
        assert settled.answer()[0] == 200
        assert crowd[0].is_ended_within(PATIENCE)


def barriers(bystanders):
    """What a group did in half a second, and what failed."""
    bystanders.stdin.write("500\n")
    bystanders.stdin.flush()
    return json.loads(bystanders.stdout.readline())


@pytest.mark.skipif("BYSTANDERS" not in os.environ, reason="sanitizers make the ranks slow")
def test_a_thousand_that_never_finish_cost_the_groups_nothing(musterd):
    server = musterd()
    bystanders = subprocess.Popen([os.environ["BYSTANDERS"], server.address, "barriers"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(bystanders.stdout.readline())["event"] == "ready"
        before = barriers(bystanders)
        with contextlib.ExitStack() as stack:
            for index in range(1000):
                with contextlib.suppress(ConnectionError):
                    source = f"127.0.1.{index % 8 + 1}"
                    one = stack.enter_context(Raw(server.host, server.port, source))
                    one.socket.settimeout(PATIENCE)
                    one.send("GET /healthz HTTP/1.1\r\n")
            during = barriers(bystanders)
            assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 100
        after = barriers(bystanders)
        for told in (before, during, after):
            assert not told["failures"], told
            assert told["barrier"], told
        until(lambda: is_served_or_refused(server))
    finally:
        bystanders.kill()
        bystanders.communicate(timeout=PATIENCE)


def is_served_or_refused(server):
    try:
        return is_served(server)
    except (AssertionError, ConnectionError, socket.timeout):
        return False
