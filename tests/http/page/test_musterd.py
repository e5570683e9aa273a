"""The page as musterd itself serves it, with ranks that are processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import View
from double import PAGE, policy_of
from selenium import webdriver

MUSTERD, MUSTERCTL = os.environ.get("MUSTERD", ""), os.environ.get("MUSTERCTL", "")
RANKS = os.environ.get("HTTP_RANKS", "")
PATIENCE_S = 30.0

pytestmark = pytest.mark.skipif(not (MUSTERD and MUSTERCTL and RANKS),
                                reason="there is no musterd: tools/dev page builds it")


class Process:
    def __init__(self, *command: str):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


class Real(View):
    """The page of a musterd."""

    def __init__(self, driver: webdriver.Chrome, flags: tuple[str, ...]):
        self.driver = driver
        self.processes: list[Process] = []
        self.server = self.start(
            MUSTERD, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--session-timeout", "5s",
            "--grace", "500ms", "--heartbeat", "300ms", *flags)
        self.address = self.server.line().split()[-1]
        self.url = self.server.line().split()[-1]

    def start(self, *command: str) -> Process:
        self.processes.append(Process(*command))
        return self.processes[-1]

    def join(self, group: str, rank: int, size: int, namespace: str = "") -> Process:
        member = self.start(RANKS, self.address, namespace, group, str(rank), str(size))
        assert member.line() == "connected"
        return member

    def form(self, group: str, size: int, namespace: str = "") -> list[Process]:
        members = [self.join(group, rank, size, namespace) for rank in range(size)]
        assert [member.line() for member in members] == ["joined"] * size
        return members

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self.url + fragment)

    def read(self, text: str, selector: str = "body") -> None:
        told: list[str] = []

        def is_told() -> bool:
            told[:] = [self.text(selector)]
            return text in told[0]
        try:
            self.until(is_told, "")
        except AssertionError:
            raise AssertionError(f"{text} is not told; there is: {told[0][:2000]}") from None


@pytest.fixture
def serve(driver: webdriver.Chrome) -> Iterator[Callable[..., Real]]:
    made: list[Real] = []

    def start(*flags: str) -> Real:
        made.append(Real(driver, flags))
        made[-1].be()
        made[-1].complaints()
        return made[-1]

    yield start
    driver.get("about:blank")
    for view in made:
        for process in view.processes:
            process.end()


def test_a_hang_a_loss_and_the_next_epoch(serve: Callable[..., Real]) -> None:
    view = serve()
    view.open()
    view.read("No groups")
    first = view.join("trainer", 0, 4, "research")
    view.read("1 of 4 ranks", ".row")
    view.read("forms", ".row .badge")
    members = [first, *(view.join("trainer", rank, 4, "research") for rank in (1, 2, 3))]
    assert [member.line() for member in members] == ["joined"] * 4
    view.read("works", ".row .badge")
    for rank in (0, 1, 3):
        members[rank].say("barrier")
    view.read("waits", ".row .badge")
    view.read("hangs", ".row .badge")
    view.read("waits for rank 2 in barrier", ".row .who")
    view.read("ranks 0–1, 3 wait", ".row .who")
    view.read("for rank 2", "h1")
    view.look("musterd-hang")
    view.click(".row a")
    assert view.driver.current_url.endswith("#group=trainer&namespace=research")
    view.read("it hangs: somebody is held up for", "#part-why")
    view.read(f"2 ! is waited for {os.uname().nodename} {members[2].process.pid} rank-2",
              "#members")
    view.look("musterd-group")
    members[2].say("barrier")
    assert [member.line() for member in members] == ["ok"] * 4
    view.read("works", ".row .badge")
    members[1].process.kill()
    view.read("failed", ".row .badge")
    view.read("lost rank 1", ".row .who")
    view.look("musterd-loss")
    view.open()
    view.read("trainer lost rank 1", "#happened")
    view.read("closed 1", "#lanes")
    view.open("#group=trainer&namespace=research")
    for rank in (0, 2, 3):
        members[rank].say("regroup")
    for rank in (0, 2, 3):
        assert members[rank].line() == "ok"
    view.read("3 ranks · epoch 2", ".row .facts")
    view.read("works", ".row .badge")
    view.read("regrouped: 3 ranks, epoch 2", "#part-history")
    assert view.complaints() == []


def test_an_idle_receive_and_keys(serve: Callable[..., Real]) -> None:
    view = serve()
    members = view.form("pair", 2)
    view.open()
    members[0].say("receive 1")
    view.read("idle", ".row .badge")
    members[1].say("set checkpoints/7 value")
    assert members[1].line() == "ok"
    view.read("checkpoints/ 1 key", "#prefixes")
    view.open("#group=pair")
    view.read("waits for tag 0 of rank 1", "#part-waits")
    view.type_in("#find", os.uname().nodename)
    view.read("Processes on such hosts: 2", "#found")
    view.until(lambda: view.rows() == ["pair"], "the group of these hosts is not shown")
    assert view.complaints() == []


def test_hostile_names(serve: Callable[..., Real]) -> None:
    view = serve()
    for name in ("<img src=x onerror=alert(1)>", "\u202egnp.exe", "#group=x&namespace=y"):
        view.form(name, 1)
    view.open()
    view.until(lambda: len(view.rows()) == 3, "the groups are not there")
    assert "<img src=x onerror=alert(1)>" in view.rows()
    for name in view.rows():
        view.js("[...document.querySelectorAll('.row a')].find((one) =>"
                "one.querySelector('.name').innerText === arguments[0]).click()", name)
        view.until(lambda: view.text("#detail-title") == name, f"{name} is not opened")
        view.read("1 ranks", "#part-why")
    assert view.complaints() == []


def test_log_in_from_a_link_and_out(serve: Callable[..., Real], tmp_path: Path) -> None:
    told = subprocess.run([MUSTERCTL, "keygen", "--http", "me"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    token, line = told.stdout.splitlines()
    tokens = tmp_path / "tokens"
    tokens.write_text(line + "\n")
    tokens.chmod(0o600)
    view = serve("--http-tokens", str(tokens))
    view.form("trainer", 1)
    view.open("#group=trainer")
    view.look("musterd-log-in")
    view.send_form("[name=token]", "muster-http-wrong")
    assert view.driver.current_url.endswith("/login")
    view.send_form("[name=token]", token)
    view.read("group \"trainer\"", "#part-why")
    assert view.driver.current_url == view.url + "#group=trainer"
    assert token not in view.driver.page_source
    view.until(lambda: view.is_shown("#log-out"), "there is no way out")
    view.leave(view.driver.find_element("css selector", "#log-out").click)
    view.until(lambda: view.driver.find_elements("css selector", "[name=token]"), "still in")


def test_there_is_nothing_to_log_out_from_without_tokens(serve: Callable[..., Real]) -> None:
    view = serve()
    view.open()
    view.read("live", "#link-text")
    assert not view.is_shown("#log-out")


def test_it_is_the_page_of_the_sources_under_its_policy(serve: Callable[..., Real]) -> None:
    view = serve()
    view.open()
    view.read("live", "#link-text")
    text, policy = view.driver.execute_async_script(
        "const done = arguments[0]; fetch('/').then(async (answer) =>"
        "done([await answer.text(), answer.headers.get('Content-Security-Policy')]))")
    assert text == PAGE.read_text()
    assert policy == policy_of(text)


def test_the_server_ends(serve: Callable[..., Real]) -> None:
    view = serve()
    view.open()
    view.read("live", "#link-text")
    view.server.process.terminate()
    view.read("reconnecting", "#link-text")
    view.read("stale since", "#link-text")
