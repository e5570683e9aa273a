"""Each panel of the dashboard shows something of a server that has clients."""

from __future__ import annotations

import itertools
import json
import math
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import muster
import pytest

from conftest import (EXAMPLES, MUSTERCTL, MUSTERD, PATIENCE, Prometheus, Server, Token,
                      until)

COLUMNS = 24


def dashboard():
    return json.loads((EXAMPLES / "muster.json").read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queried(expression: str) -> str:
    """As Grafana asks for it, of all servers."""
    for name, value in (("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "10s")):
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


Part = Callable[[muster.Store, str], None]


class Clients:
    """They use keys and groups until they are told to end, and wait for each other."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_over = threading.Event()
        self.threads: list[threading.Thread] = []
        self.begin(self.take_key, self.set_key)
        self.begin(self.in_group(0), self.in_group(1))
        self.begin(self.wait_in_vain, lambda store, number: None)

    def begin(self, first: Part, second: Part) -> None:
        """Two threads, of which the second does its part as often as the first."""
        turns: queue.Queue[str | None] = queue.Queue()

        def lead() -> None:
            with muster.Store(self.address, timeout=PATIENCE) as store:
                for number in map(str, itertools.count()):
                    if self.is_over.is_set():
                        break
                    turns.put(number)
                    first(store, number)
            turns.put(None)

        def follow() -> None:
            with muster.Store(self.address, timeout=PATIENCE) as store:
                for number in iter(turns.get, None):
                    time.sleep(0.01)  # so that the first waits
                    second(store, number)

        for run in (lead, follow):
            self.threads.append(threading.Thread(target=run))
            self.threads[-1].start()

    def take_key(self, store: muster.Store, number: str) -> None:
        store.take(number)

    def set_key(self, store: muster.Store, number: str) -> None:
        store.set(number, "value")

    def wait_in_vain(self, store: muster.Store, number: str) -> None:
        with pytest.raises(muster.TimedOut):
            store.get("never", timeout=0.1)

    def in_group(self, rank: int) -> Part:
        def work(store: muster.Store, number: str) -> None:
            with muster.StatelessProcessGroup(store, f"group{number}", rank, 2) as group:
                for _ in range(5):
                    time.sleep(0.01 * rank)
                    group.barrier()

        return work

    def end(self) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture
def clients() -> Iterator[Callable[[str], Clients]]:
    begun: list[Clients] = []
    yield lambda address: begun.append(Clients(address))
    for each in begun:
        each.end()


def test_panels_stand_beside_each_other():
    taken = set()
    identities = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(identities)) == len(identities)
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_panels_say_what_they_show():
    assert len(panels()) > 20
    for panel in panels():
        assert panel["title"] and panel["description"], panel
        assert panel["datasource"]["uid"] == "${datasource}"
        names = [target["refId"] for target in panel["targets"]]
        assert names and len(set(names)) == len(names), panel["title"]


class Shown:
    """Which panels' expressions have told a number."""

    def __init__(self, prometheus: Prometheus) -> None:
        self.prometheus = prometheus
        self.missing = [(panel["title"], target["expr"]) for panel in panels()
                        for target in panel["targets"]]

    def look(self) -> bool:
        """Whether there were all of them, now or before."""
        self.missing = [each for each in self.missing if not self._tells(each[1])]
        return not self.missing

    def _tells(self, expression: str) -> bool:
        return any(math.isfinite(float(sample["value"][1]))
                   for sample in self.prometheus.query(queried(expression)))


def rules() -> str:
    return (EXAMPLES / "muster.rules.yml").read_text()


def test_every_panel_shows_what_clients_do(tmp_path, started, clients):
    token = Token(tmp_path)
    server = started(Server("--http", "127.0.0.1:0", "--http-tokens", str(token.of_server)))
    prometheus = started(Prometheus(tmp_path, rules()))
    prometheus.scrape(server.http)
    clients(server.address)
    shown = Shown(prometheus)
    # Where a metric without a sample is shown as 0, there is one here.
    shown.missing = [(title, re.sub(r"(muster_.*) or vector\(0\)", r"\1", expression))
                     for title, expression in shown.missing]
    try:
        until(shown.look)
    except AssertionError:
        pytest.fail(f"nothing is told by {shown.missing}")
    assert prometheus.firing() == {}
    for mark in dashboard()["annotations"]["list"]:
        assert prometheus.query(queried(mark["expr"])) == []


def test_every_panel_shows_the_demo(tmp_path, started):
    """It takes two seconds, so it comes again and again; at an address that nobody else has."""
    if "DEMO" not in os.environ:
        pytest.skip("the examples are not built")
    Token(tmp_path)
    pid = os.getpid()
    http = f"127.{1 + (pid >> 16) % 200}.{pid >> 8 & 255}.{1 + pid % 250}:9400"
    prometheus = started(Prometheus(tmp_path, rules()))
    prometheus.scrape(http)
    shown = Shown(prometheus)
    end = time.monotonic() + 2 * PATIENCE
    while not shown.look():
        assert time.monotonic() < end, f"nothing is told by {shown.missing}"
        demo = subprocess.Popen([os.environ["DEMO"], MUSTERD, MUSTERCTL],
                                env={**os.environ, "MUSTER_HTTP": http}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            while demo.poll() is None:
                shown.look()
            assert demo.returncode == 0, demo.communicate()[0]
        finally:
            if demo.poll() is None:
                os.killpg(demo.pid, signal.SIGKILL)
            demo.communicate(timeout=PATIENCE)
