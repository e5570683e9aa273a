"""Servers, ranks and a Prometheus for the tests, which end with them."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import programs
import pytest

MUSTERD, MUSTERCTL = os.environ["MUSTERD"], os.environ["MUSTERCTL"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "prometheus"
PATIENCE = 60.0


def until(what: Callable[[], Any]) -> Any:
    """Asks again and again, since nothing tells when it holds; what is told then."""
    end = time.monotonic() + PATIENCE
    while not (told := what()):
        assert time.monotonic() < end, "it did not come to hold"
        select.select([], [], [], 0.1)
    return told


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.communicate(timeout=PATIENCE)


class Token:
    """A token for HTTP: the file that Prometheus has of it, and that of the server."""

    def __init__(self, folder: Path) -> None:
        told = subprocess.run([MUSTERCTL, "keygen", "--http", "prometheus"], capture_output=True,
                              text=True, timeout=PATIENCE, check=True)
        self.file, self.of_server = folder / "muster.token", folder / "http-tokens"
        for path, line in zip((self.file, self.of_server), told.stdout.splitlines()):
            path.write_text(line + "\n")
            path.chmod(0o600)


class Server:
    """A musterd; where clients find it, and who asks by HTTP, as host:port."""

    def __init__(self, *flags: str) -> None:
        self.process = subprocess.Popen(
            [MUSTERD, "--listen", "127.0.0.1:0", "--log-level", "silent", *flags],
            stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        self.http = ""
        if "--http" in flags:
            self.http = urllib.parse.urlsplit(self.process.stdout.readline().split()[-1]).netloc

    def musterctl(self, *arguments: str) -> str:
        return subprocess.run([MUSTERCTL, "--server", self.address, *arguments], timeout=PATIENCE,
                              stdout=subprocess.PIPE, text=True, check=True).stdout


class Rank:
    """A process that is a rank; `rank.py` says what it can be told."""

    def __init__(self, address: str, name: str, rank: int, world_size: int, namespace: str) -> None:
        program = Path(__file__).with_name("rank.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program), address, namespace, name, str(rank), str(world_size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def call(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def told(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


class Prometheus:
    """One that scrapes what its file targets.json says, four times in a second or so."""

    def __init__(self, folder: Path, rules: str, interval: str = "250ms") -> None:
        program = programs.find("prometheus")
        if program is None:
            pytest.skip(f"there is no prometheus: {programs.HOW}")
        text = (EXAMPLES / "prometheus.yml").read_text()
        targets = 'static_configs:\n      - targets: ["127.0.0.1:9400"]\n'
        assert targets in text and text.count(": 15s") == 2
        text = text.replace(": 15s", f": {interval}").replace(
            targets, "file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]\n")
        (folder / "prometheus.yml").write_text(text)
        (folder / "muster.rules.yml").write_text(rules)
        self.targets = folder / "targets.json"
        self.process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.yml", "--log.level=info",
             f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True)
        self.log: list[str] = []
        self.url = self._url()
        # Nobody else takes its log.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        until(self._is_ready)

    def _url(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r'msg="Listening on" address=(\S+)', line):
                return f"http://{found.group(1)}/api/v1/"
            self.log.append(line)
        raise AssertionError("".join(self.log))

    def _is_ready(self) -> bool:
        try:
            self._ask("alerts")
        except urllib.error.HTTPError as error:
            assert error.code == 503
            return False
        return True

    def scrape(self, http: str) -> None:
        """From now on what is there, as host:port; under a name that stays."""
        new = self.targets.with_suffix(".new")
        new.write_text(json.dumps([{"targets": [http], "labels": {"instance": "muster-0"}}]))
        new.rename(self.targets)

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Each with `metric`, its labels, and `value`, the last of which is the number as text."""
        found: list[dict[str, Any]] = self._ask(
            "query?" + urllib.parse.urlencode({"query": expression}))["result"]
        return found

    def firing(self) -> dict[str, dict[str, Any]]:
        """Name of each alert that fires -> its labels and annotations."""
        return {alert["labels"]["alertname"]: alert for alert in self._ask("alerts")["alerts"]
                if alert["state"] == "firing"}


@pytest.fixture
def started() -> Iterator[Callable[[Any], Any]]:
    """Ends the process of what it is given when the test is over."""
    things: list[Any] = []

    def keep(thing: Any) -> Any:
        things.append(thing)
        return thing

    yield keep
    for thing in reversed(things):
        end(thing.process)
