"""A musterd for the tests, and processes that end with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import muster
import pytest

MUSTERD = os.environ["MUSTERD"]
PATIENCE = 30.0


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Of a musterd on a port that is free."""
    server = subprocess.Popen(
        [MUSTERD, "--listen", "127.0.0.1:0", "--log-level", "warning"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield line.split()[-1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)


_names = iter(range(1, 1_000_000))


@pytest.fixture
def namespace() -> str:
    """One that nobody else has."""
    return f"test{next(_names)}"


@pytest.fixture
def store(address: str, namespace: str) -> Iterator[muster.Store]:
    with muster.Store(address, namespace=namespace, timeout=PATIENCE) as connected:
        yield connected


def in_threads(world_size: int, work: Callable[[int], Any]) -> list[Any]:
    """What `work(rank)` gives for each rank, in a thread each; raises the first failure."""
    results: list[Any] = [None] * world_size
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(rank)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
        assert not thread.is_alive()
    if failures:
        raise failures[0]
    return results


@pytest.fixture
def in_ranks(address: str, namespace: str) -> Callable[..., list[Any]]:
    """Runs `part(group)` for each rank of a group, in a thread each."""

    def run(world_size: int, part: Callable[[muster.StatelessProcessGroup], Any]) -> list[Any]:
        def work(rank: int) -> Any:
            with muster.Store(address, namespace=namespace, timeout=PATIENCE) as connected:
                return part(
                    muster.StatelessProcessGroup(
                        connected, "g", rank, world_size, timeout=PATIENCE
                    )
                )

        return in_threads(world_size, work)

    return run


@pytest.fixture
def own_server() -> Iterator[tuple[str, int]]:
    """Its address and process. It may be stopped by SIGSTOP."""
    server = subprocess.Popen(
        [MUSTERD, "--listen", "127.0.0.1:0", "--log-level", "silent", "--session-timeout", "600s"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1], server.pid
    finally:
        server.kill()
        server.wait(PATIENCE)


@pytest.fixture
def process(address: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a Python with a program, of which `address` and `muster` are there."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str) -> subprocess.Popen[str]:
        text = f"import muster, sys\naddress = {address!r}\n" + textwrap.dedent(program)
        one = subprocess.Popen(
            # From 3.12 on Python warns of each fork beside other threads, such as Muster's.
            [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", text,
             *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        started.append(one)
        return one

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
        one.communicate(timeout=PATIENCE)


def variables_of(rank: int, world_size: int, store: str, nodes: int = 1) -> dict[str, str]:
    """What a launcher gives a rank."""
    each = world_size // nodes
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_RANK": str(rank % each),
        "LOCAL_WORLD_SIZE": str(each),
        "NODE_RANK": str(rank // each),
        "NUM_NODES": str(nodes),
        "MUSTER_STORE": store,
    }


@pytest.fixture
def in_job(address: str, namespace: str) -> Callable[..., list[Any]]:
    """Runs `part(job)` for each rank of a job, in a thread each, initialized with `options`."""
    import muster.runtime

    def run(
        world_size: int,
        part: Callable[[muster.runtime.Runtime], Any],
        *,
        nodes: int = 1,
        more: dict[str, str] | None = None,
        **options: Any,
    ) -> list[Any]:
        def work(rank: int) -> Any:
            variables = variables_of(rank, world_size, address, nodes) | (more or {})
            job = muster.runtime.Runtime(variables)
            job.init(timeout=PATIENCE, namespace=namespace, **options)
            return part(job)

        return in_threads(world_size, work)

    return run
