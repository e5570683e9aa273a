"""The stream of events: what its viewers are told, and who costs others nothing."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
from typing import Any

import pytest

from conftest import PATIENCE, Raw, token_in, until
from test_api import SCHEMAS, check, form

GET = "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def server(musterd):
    return musterd("--grace", "200ms")


class Viewer:
    """Reads a stream, and keeps what it was told as a page would."""

    def __init__(self, server, source="127.0.0.1", head=GET):
        self.socket = socket.create_connection((server.host, server.port), PATIENCE, (source, 0))
        self.socket.sendall(head.encode())
        self.bytes = b""
        self.text = b""
        self.world: dict[str, Any] = {}
        self.groups: dict[tuple[str, str], Any] = {}
        self.events: dict[int, Any] = {}
        self.kinds: list[str] = []
        self.ids: list[int] = []
        head, self.bytes = self.until(b"\r\n\r\n")
        self.status = int(head.split(b" ")[1])
        self.head = head.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def until(self, end):
        while end not in self.bytes:
            part = self.socket.recv(65536)
            assert part, f"it has ended: {self.bytes!r}"
            self.bytes += part
        return self.bytes.split(end, 1)

    def next(self):
        """The next event."""
        event = b":"
        while event.startswith(b":"):  # a comment
            while b"\n\n" not in self.text:
                size, self.bytes = self.until(b"\r\n")
                while len(self.bytes) < int(size, 16) + 2:
                    part = self.socket.recv(65536)
                    assert part, "it has ended"
                    self.bytes += part
                self.text += self.bytes[:int(size, 16)]
                self.bytes = self.bytes[int(size, 16) + 2:]
            event, self.text = self.text.split(b"\n\n", 1)
        fields = dict(line.split(": ", 1) for line in event.decode().split("\n"))
        message = json.loads(fields["data"])
        kind = fields["event"]
        check(message, SCHEMAS["Whole" if kind == "whole" else "Change"])
        self.kinds.append(kind)
        self.ids.append(int(fields["id"]))
        self.take(kind, message)
        return message

    def take(self, kind, message):
        if kind == "whole":
            self.groups.clear()
            self.events.clear()
        for name, value in message.items():
            if name not in ("groups", "gone", "events"):
                self.world[name] = value
        for group in message.get("groups", []):
            self.groups[group["namespace"], group["name"]] = group
        for namespace, name, *_ in message.get("gone", []):
            del self.groups[namespace, name]
        for event in message.get("events", []):
            self.events[event["serial"]] = event

    def read_until(self, holds):
        while not holds():
            self.next()

    def state(self, name, namespace=""):
        group = self.groups.get((namespace, name))
        return group and group["state"]


def states(group):
    """The state of each rank."""
    return [state for state, count in group["ranks"] for _ in range(count)]


def test_a_viewer_is_told_everything_and_then_what_differs(server, ranks):
    with Viewer(server) as viewer:
        assert viewer.status == 200 and "text/event-stream" in viewer.head
        viewer.next()
        assert viewer.kinds == ["whole"] and not viewer.groups
        first = ranks(server, "trainer", 1, 3)
        viewer.read_until(lambda: viewer.state("trainer") == "forming")
        group = viewer.groups["", "trainer"]
        viewer.read_until(lambda: viewer.groups["", "trainer"]["candidates"] == 0)
        assert states(group) == ["absent", "waiting", "absent"]
        assert group["waits_for"] == [[0, 0], [2, 2]] and group["waiting"] == [[1, 1]]
        assert group["why"] == "ranks 0, 2 have not joined"
        others = [ranks(server, "trainer", rank, 3) for rank in (0, 2)]
        for member in (first, *others):
            assert member.heard() == "joined"
        viewer.read_until(lambda: viewer.state("trainer") == "working")
        assert states(viewer.groups["", "trainer"]) == ["live"] * 3
        assert viewer.ids == sorted(set(viewer.ids))
        assert set(viewer.kinds[1:]) == {"change"}
        assert {event["what"] for event in viewer.events.values()} == {"formed"}


def test_a_hang_is_told_with_who_is_waited_for(server, ranks):
    members = form(server, ranks, "g", 4)
    with Viewer(server) as viewer:
        for rank in (0, 1, 3):
            members[rank].call("barrier")
        viewer.read_until(lambda: viewer.state("g") == "waiting")
        group = viewer.groups["", "g"]
        assert group["call"] == "barrier" and group["round"] == 1
        assert group["waits_for"] == [[2, 2]] and group["waiting"] == [[0, 1], [3, 3]]
        assert states(group) == ["waiting", "waiting", "missing", "waiting"]
        assert group["why"].startswith("rank 2 (host ") and "label rank-2)" in group["why"]
        assert group["why"].endswith("has not called round 1, barrier")
        assert group["held_up_since"] == group["since"]
        members[2].call("barrier")
        viewer.read_until(lambda: viewer.state("g") == "working")
        assert "why" not in viewer.groups["", "g"] and "call" not in viewer.groups["", "g"]


def test_a_rank_that_waits_for_an_object_is_idle(server, ranks):
    members = form(server, ranks, "g", 2)
    with Viewer(server) as viewer:
        members[1].call("receive 0")
        viewer.read_until(lambda: viewer.state("g") == "waiting")
        group = viewer.groups["", "g"]
        assert group["call"] == "receive" and "held_up_since" not in group
        assert states(group) == ["live", "waiting"]


def test_a_loss_is_told_with_its_cause_and_a_regroup_ends_it(server, ranks):
    members = form(server, ranks, "g", 3)
    with Viewer(server) as viewer:
        members[1].stop()
        viewer.read_until(lambda: viewer.state("g") == "failed")
        group = viewer.groups["", "g"]
        assert states(group) == ["live", "lost", "live"]
        assert group["failure"]["code"] == "rank_lost"
        assert group["why"].startswith("rank 1 (host ")
        assert group["why"].endswith(" was lost; the others have not regrouped")
        lost = [event for event in viewer.events.values() if event["what"] == "rank_lost"]
        assert lost[0]["error"]["cause"] == "closed" and lost[0]["namespace"] == ""
        members[0].call("regroup")
        viewer.read_until(lambda: viewer.state("g") == "regrouping")
        assert viewer.groups["", "g"]["waits_for"] == [[2, 2]]
        members[2].call("regroup")
        viewer.read_until(lambda: viewer.state("g") == "working")
        assert viewer.groups["", "g"]["world_size"] == 2


def test_what_has_happened_before_is_told_again(server, ranks):
    members = form(server, ranks, "g", 2)
    with Viewer(server) as viewer:
        serials = set()
        for count in (1, 2, 3):
            members[0].call("barrier 50")
            viewer.read_until(lambda: any(
                event["what"] == "round_failed" and event["count"] == count
                for event in viewer.events.values()))
            assert members[0].heard() == "timed_out"
            serials |= {event["serial"] for event in viewer.events.values()}
        assert len(serials) == 2  # it formed, and what happened three times is one event


def test_a_group_that_is_gone_is_told_so_and_may_come_again(server, ranks):
    with Viewer(server) as viewer:
        for _ in range(2):
            member, = form(server, ranks, "g", 1, namespace="job")
            viewer.read_until(lambda: ("job", "g") in viewer.groups)
            member.stop()
            viewer.read_until(lambda: ("job", "g") not in viewer.groups)


def test_a_group_that_works_makes_no_event(server, ranks):
    members = form(server, ranks, "g", 2)
    with Viewer(server) as viewer:
        viewer.read_until(lambda: viewer.state("g") == "working")
        count = 0
        for _ in range(5):
            for member in members:
                member.call("barrier")
            assert {member.heard() for member in members} == {"ok"}
            count += len(viewer.next().get("groups", []))
        assert count == 0


def test_all_viewers_are_told_the_same(server, ranks):
    form(server, ranks, "g", 2)
    with contextlib.ExitStack() as stack:
        viewers = [stack.enter_context(Viewer(server, f"127.0.0.{index + 1}"))
                   for index in range(10)]
        for viewer in viewers:
            viewer.read_until(lambda viewer=viewer: viewer.state("g") == "working")
        member, = form(server, ranks, "h", 1)
        for viewer in viewers:
            viewer.read_until(lambda viewer=viewer: viewer.state("h") == "working")
        member.stop()
        for viewer in viewers:
            viewer.read_until(lambda viewer=viewer: viewer.state("h") is None)
            assert viewer.kinds.count("whole") == 1


def test_keys_are_told_by_prefix(server):
    subprocess.run([os.environ["MUSTERCTL"], "--server", server.address, "--namespace", "job",
                    "set", "a/b", "12345"], check=True, timeout=PATIENCE)
    with Viewer(server) as viewer:
        viewer.read_until(lambda: viewer.world.get("keys", {}).get("prefixes"))
        assert viewer.world["keys"] == {
            "count": 1, "bytes": 5,
            "prefixes": [{"namespace": "job", "prefix": "a/", "count": 1, "bytes": 5}]}


def is_well(server, source="127.0.0.9"):
    with server.raw(source) as connection:
        connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return connection.answer()[0] == 200


def test_there_is_a_limit_of_streams_in_all_and_of_an_address(server):
    with contextlib.ExitStack() as stack:
        def view(source):
            return stack.enter_context(Viewer(server, source))

        first = [view("127.0.0.1") for _ in range(32)]
        assert {viewer.status for viewer in first} == {200}
        refused = view("127.0.0.1")
        assert refused.status == 503
        assert "retry-after: " in refused.head.lower()
        assert is_well(server, "127.0.0.1")  # which has connections left
        more = [view("127.0.0.2") for _ in range(32)]
        assert {viewer.status for viewer in more} == {200}
        assert view("127.0.0.3").status == 503
        more[0].socket.close()
        until(lambda: view("127.0.0.3").status == 200)
        first[5].next()


def test_ten_thousand_streams_are_refused_beyond_the_limit(server, ranks):
    with contextlib.ExitStack() as stack:
        viewer = stack.enter_context(Viewer(server))
        viewer.next()
        for index in range(10_000):
            # They come from all sides, and nobody of them reads.
            with contextlib.suppress(ConnectionError, socket.timeout):
                one = Raw(server.host, server.port, f"127.0.{index % 250}.{index % 199 + 2}")
                one.send(GET)
                if index % 100 == 0:
                    stack.enter_context(one)
                else:
                    one.socket.close()
            if index % 2500 == 0:
                form(server, ranks, f"g{index}", 1)
                viewer.read_until(lambda name=f"g{index}": viewer.state(name) == "working")
        until(lambda: is_well_or_refused(server))


def is_well_or_refused(server):
    try:
        return is_well(server)
    except (AssertionError, ConnectionError, socket.timeout):
        return False


def test_who_does_not_read_is_let_go(host):
    server = host("write_ms=500", "stream_ms=20")
    with server.raw() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send("GET /ticks?1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.socket.recv(1)
        assert is_well(server)
        until(lambda: has_hung_up(connection.socket))


def has_hung_up(connection):
    """Whether the other side has reset it; what has come before is not read."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP | select.POLLERR | select.POLLHUP)
    return bool(poll.poll(20))


def test_a_viewer_that_goes_leaves_its_place(host):
    server = host("streams_max=1", "stream_ms=20")
    for _ in range(3):
        with admitted(server):
            with ticks(server) as other:
                assert other.status == 503


def ticks(server):
    return Viewer(server, head=GET.replace("/api/v1/stream", "/ticks?5"))


def admitted(server):
    """A viewer for which there is a place, soon after another one has gone."""
    viewers = []

    def is_admitted():
        viewers.append(ticks(server))
        if viewers[-1].status != 200:
            viewers.pop().socket.close()
        return bool(viewers)
    until(is_admitted)
    return viewers[0]


def test_a_stream_that_is_quiet_says_that_it_lives(host):
    server = host("stream_ms=20", "comment_ms=100")
    with server.raw() as connection:
        connection.send("GET /quiet HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        while told.count(b":\n\n") < 3:
            told += connection.socket.recv(4096)


def test_a_stream_ends_when_its_handler_says_so(host):
    server = host("stream_ms=10")
    head = "GET /ticks?3&end HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with server.raw() as connection:
        connection.send(head)
        told = connection.rest()
        assert told.endswith(b"0\r\n\r\n") and told.count(b"xxx") == 4
    with server.raw() as connection:
        connection.send(head.replace("1.1", "1.0"))
        told = connection.rest()
        assert told.endswith(b"xxx" * 4) and b"chunked" not in told


def test_an_answer_that_is_not_there_yet_is_waited_for(host):
    server = host("answer_ms=500")
    with server.raw() as connection:
        connection.send("GET /later?5 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        assert connection.answer()[0::2] == (200, b"at last")
        assert connection.answer()[0] == 200
        connection.send("GET /later?1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.answer()[0] == 503


def test_a_stream_ends_with_the_line_of_its_token(musterd, tmp_path):
    token, file = token_in(tmp_path)
    server = musterd("--http-tokens", str(file))
    head = GET.replace("\r\n\r\n", f"\r\nAuthorization: Bearer {token}\r\n\r\n")
    with Viewer(server, head=head) as viewer:
        viewer.next()
        file.write_text("another read sha256:" + 64 * "0" + "\n")
        server.process.send_signal(signal.SIGHUP)
        with pytest.raises(AssertionError, match="it has ended"):
            while True:
                viewer.next()
