"""Pickled objects and barriers on a group of Muster's: what a group that ``create`` has made does.

An object that is longer than the server takes at once goes in parts: a ``Parts`` in its place says
how many, and they follow as raw bytes, in the same stream or in as many broadcasts.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from muster._events import log
from muster._objects import accepted
from muster.codecs import PICKLE, RAW
from muster.compat._errors import raises_runtime_errors
from muster.compat._farewell import Farewell
from muster.errors import MusterError
from muster.group import StatelessProcessGroup


class Parts:
    """Stands for an object that follows in so many parts."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts, (self.count,)


class Hosted:
    """A rank of a group of Muster's. Objects and tensors have a tag each, so that they do not take
    each other's places."""

    __slots__ = (
        "_begun", "_each_bytes_max", "_farewell", "_group", "_handle", "_part_bytes", "_timeout",
        "rank",
    )

    def __init__(
        self, group: StatelessProcessGroup, farewell: Farewell | None, timeout: float
    ) -> None:
        """timeout  of each call but ``barrier``; the group's own is what was left for joining"""
        self._group = group
        self._timeout = timeout
        self._farewell = farewell
        self._handle = group._handle
        self.rank = group.rank
        limits = group.store.limits
        self._part_bytes = limits.value_bytes_max
        self._each_bytes_max = min(
            limits.value_bytes_max, limits.round_bytes_max // group.world_size
        )
        self._begun: dict[tuple[int, int], tuple[int, list[bytes]]] = {}

    def _cut(self, data: bytes) -> list[memoryview]:
        whole = memoryview(data)
        return [
            whole[at:at + self._part_bytes] for at in range(0, len(whole), self._part_bytes)
        ]

    @raises_runtime_errors
    def send(self, obj: Any, dst: int, tag: int) -> None:
        data = pickle.dumps(obj)
        if len(data) <= self._part_bytes:
            self._handle.send(dst, PICKLE.id, data, tag, self._timeout)
            return
        parts = self._cut(data)
        self._handle.send(dst, PICKLE.id, pickle.dumps(Parts(len(parts))), tag, self._timeout)
        for part in parts:
            self._handle.send(dst, RAW.id, part, tag, self._timeout)

    @raises_runtime_errors
    def recv(self, src: int, tag: int) -> Any:
        """A call that fails between parts is gone on with by the next one."""
        if (src, tag) not in self._begun:
            obj = accepted(PICKLE, self._handle.recv(src, PICKLE.id, tag, self._timeout), src)[0]
            if type(obj) is not Parts:
                return obj
            self._begun[src, tag] = obj.count, []
        count, parts = self._begun[src, tag]
        while len(parts) < count:
            delivery = self._handle.recv(src, RAW.id, tag, self._timeout)
            parts.append(accepted(RAW, delivery, src)[0])
        del self._begun[src, tag]
        return pickle.loads(b"".join(parts))

    def _give(self, parts: list[memoryview]) -> None:
        for part in parts:
            self._handle.broadcast(part, RAW.id, self.rank, self._timeout)

    def _take(self, count: int, src: int) -> Any:
        parts = [self._handle.broadcast(b"", RAW.id, src, self._timeout) for _ in range(count)]
        return pickle.loads(b"".join(parts))

    @raises_runtime_errors
    def broadcast(self, obj: Any, src: int) -> Any:
        """The source does not wait for the others, and gets its own object back."""
        if src == self.rank:
            data = pickle.dumps(obj)
            is_whole = len(data) <= self._part_bytes
            parts = [] if is_whole else self._cut(data)
            told = data if is_whole else pickle.dumps(Parts(len(parts)))
            self._handle.broadcast(told, PICKLE.id, src, self._timeout)
            self._give(parts)
            return obj
        got = pickle.loads(self._handle.broadcast(b"", PICKLE.id, src, self._timeout))
        return self._take(got.count, src) if type(got) is Parts else got

    @raises_runtime_errors
    def all_gather(self, obj: Any) -> list[Any]:
        data = pickle.dumps(obj)
        parts = self._cut(data) if len(data) > self._each_bytes_max else []
        told = pickle.dumps(Parts(len(parts))) if parts else data
        gathered = self._handle.all_gather(told, PICKLE.id, self._timeout)
        objs = [
            obj if rank == self.rank else pickle.loads(other)
            for rank, other in enumerate(gathered)
        ]
        for rank, other in enumerate(objs):  # one after the other, everywhere in this order
            if rank == self.rank:
                self._give(parts)
            elif type(other) is Parts:
                objs[rank] = self._take(other.count, rank)
        return objs

    @raises_runtime_errors
    def barrier(self, timeout: float) -> None:
        unconfirmed = self._handle.barrier(timeout)
        if unconfirmed:
            log.warning("the barrier has succeeded, but ranks %s did not confirm it", unconfirmed)

    def close(self) -> None:
        """Leaves. At the rank that serves, the server ends and its port is free."""
        if self._farewell is not None:
            self._farewell.cancel()
        with contextlib.suppress(MusterError):
            self._group.close(0.0)
