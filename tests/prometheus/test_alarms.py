"""A real Prometheus raises the alerts of examples/prometheus when a real server has trouble."""

from __future__ import annotations

import ctypes
import os
import signal

import pytest

from conftest import EXAMPLES, PATIENCE, Prometheus, Rank, Server, Token, until


def in_a_hurry() -> str:
    """The rules; what they wait for by the minute they wait for by the second."""
    text = (EXAMPLES / "muster.rules.yml").read_text()
    down = 'expr: up{job="muster"} == 0\n        for: 1m\n'
    hangs = "max_over_time(muster_oldest_round_seconds[5m]) > 180"
    forms = "max_over_time(muster_oldest_forming_seconds[5m]) > 180"
    stalls = "changes(muster_figures_time_seconds[1m]) == 0\n        for: 1m\n"
    for long, short in ((down, down.replace("1m", "1s")), (hangs, hangs.replace("180", "2")),
                        (forms, forms.replace("180", "2")), (stalls, stalls.replace("1m", "4s"))):
        assert text.count(long) == 1, long
        text = text.replace(long, short)
    return text


def test_alerts_of_a_bad_night(tmp_path, started):
    token = Token(tmp_path)
    flags = ("--http", "127.0.0.1:0", "--http-tokens", str(token.of_server))
    server = started(Server(*flags))
    prometheus = started(Prometheus(tmp_path, in_a_hurry()))
    prometheus.scrape(server.http)

    # Two ranks pass barriers, and nothing is told of it.
    ranks = [started(Rank(server.address, "tp0", rank, 3, "")) for rank in range(2)]
    ranks.append(started(Rank(server.address, "tp0", 2, 3, "")))
    assert [rank.told() for rank in ranks] == ["joined"] * 3
    for _ in range(20):
        for rank in ranks:
            rank.call("barrier 60")
        assert [rank.told() for rank in ranks] == ["ok"] * 3
    until(lambda: prometheus.query("count_over_time(muster_rounds[1m]) > 8"))
    assert prometheus.firing() == {}

    # One does not come.
    for rank in ranks[:2]:
        rank.call("barrier 300")
    hang = until(lambda: prometheus.firing().get("MusterRoundOpenTooLong"))
    assert hang["labels"]["severity"] == "critical"
    assert hang["labels"]["instance"] == "muster-0"
    assert hang["annotations"]["runbook"] == "docs/operations.md#musterroundopentoolong"
    assert "waits for rank 2" in server.musterctl("why")

    # It is killed: the others hear of it, and so does the operator.
    ranks[2].process.kill()
    assert [rank.told() for rank in ranks[:2]] == ["rank_lost"] * 2
    lost = until(lambda: prometheus.firing().get("MusterRanksLost"))
    assert lost["labels"]["cause"] == "closed"

    # Another group does not form.
    started(Rank(server.address, "tp1", 0, 2, ""))
    until(lambda: "MusterGroupDoesNotForm" in prometheus.firing())

    # The server dies, and another one takes its place.
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(PATIENCE)
    until(lambda: "MusterDown" in prometheus.firing())
    assert "MusterRestarted" not in prometheus.firing()
    prometheus.scrape(started(Server(*flags)).http)
    until(lambda: "MusterRestarted" in prometheus.firing())
    until(lambda: "MusterDown" not in prometheus.firing())


def test_a_token_that_is_not_taken_is_a_server_that_is_down(tmp_path, started):
    token = Token(tmp_path)
    server = started(Server("--http", "127.0.0.1:0", "--http-tokens", str(token.of_server)))
    token.file.write_text("muster-http-of-somebody-else\n")
    prometheus = started(Prometheus(tmp_path, in_a_hurry()))
    prometheus.scrape(server.http)
    until(lambda: "MusterDown" in prometheus.firing())


def ptrace(request: int, pid: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return libc.ptrace(request, pid, None, None)


def test_a_server_whose_one_thread_stands_still_is_told_from_one_that_is_down(tmp_path, started):
    """The thread is stopped as by a debugger. HTTP, on another one, answers within a second."""
    seize, interrupt, detach = 0x4206, 0x4207, 17
    token = Token(tmp_path)
    server = started(Server("--http", "127.0.0.1:0", "--http-tokens", str(token.of_server)))
    prometheus = started(Prometheus(tmp_path, in_a_hurry(), interval="1500ms"))
    prometheus.scrape(server.http)
    until(lambda: prometheus.query("count_over_time(muster_rounds[1m]) > 4"))
    assert prometheus.firing() == {}
    pid = server.process.pid
    if ptrace(seize, pid) != 0:
        pytest.skip("this process may not trace another one")
    try:
        assert ptrace(interrupt, pid) == 0
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        assert set(until(prometheus.firing)) == {"MusterStalled"}
    finally:
        ptrace(detach, pid)
    until(lambda: "MusterStalled" not in prometheus.firing())
