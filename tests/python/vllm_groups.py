"""Groups for the tests of muster.compat.vllm: by `create`, on a store, and of the original's
algorithm, which is what tests/compare has of it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muster
from conftest import PATIENCE, in_threads
from muster.compat._keys import KeyStore
from muster.compat.vllm import StatelessProcessGroup

sys.path.append(str(Path(__file__).resolve().parent.parent / "compare"))
from stateless_group import StatelessGroup  # type: ignore[import] # noqa: E402


def listening() -> tuple[socket.socket, int]:
    """A socket of rank 0, and its port."""
    one = socket.create_server(("127.0.0.1", 0))
    return one, one.getsockname()[1]


def held() -> tuple[socket.socket, int]:
    """One that has its port, where nobody listens yet; another process may."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    return one, one.getsockname()[1]


def created(
    world_size: int, part: Callable[[StatelessProcessGroup], Any], *, timeout: float = PATIENCE,
    expiration: float = 3600.0,
) -> list[Any]:
    """Runs `part(group)` for each rank of a group that is made by host and port."""
    serving, port = listening()

    def work(rank: int) -> Any:
        group = StatelessProcessGroup.create(
            "127.0.0.1", port, rank, world_size, expiration, timeout,
            listen_socket=serving if rank == 0 else None,
        )
        try:
            return part(group)
        finally:
            if rank != 0:
                group.store = None
            else:
                kept.append(group)

    kept: list[StatelessProcessGroup] = []  # the server, until all have gone
    try:
        return in_threads(world_size, work)
    finally:
        for group in kept:
            group.store = None


class Original:
    """The original's algorithm, by the names of its class."""

    def __init__(self, rank: int, world_size: int, store: Any, expiration: float) -> None:
        self.rank, self.world_size, self.store = rank, world_size, store
        group = StatelessGroup(store, rank, world_size, expiration)
        self.send_obj, self.recv_obj = group.send, group.receive
        self.broadcast_obj, self.all_gather_obj = group.broadcast, group.all_gather
        self.barrier: Callable[[float], None] = group.barrier


def on_keys(
    kind: Callable[..., Any], address: str, namespace: str, world_size: int,
    part: Callable[[Any], Any], timeout: float, expiration: float,
) -> list[Any]:
    """The same on a store, which has the names of torch's."""

    def work(rank: int) -> Any:
        with muster.Store(address, namespace=namespace, timeout=PATIENCE) as store:
            return part(kind(rank, world_size, KeyStore(store, timeout), expiration))

    return in_threads(world_size, work)
