"""The group on any store of ``torch.distributed``, for groups that are constructed with one.

Only what all stores have is used: ``set``, ``get``, ``add``, ``delete_key``, and ``wait`` with a
timeout where it can be given up.

An object: set under a key of its source, its receiver and their count of objects -> got, and the
key is deleted; the last reader of a broadcast does that. What expires first leaves a mark, so that
a slow receiver is told.

A barrier: a number from the store, so that each has keys of its own -> every rank is counted -> the
last one, or the first whose time has passed, decides for all, once -> everybody leaves, rank 0 as
the last one, who deletes the keys.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from muster._events import log
from muster.compat._errors import as_runtime_error
from muster.errors import Expired, RankReport, TimedOut

_POLL_FIRST, _POLL_MAX = 0.0002, 0.01
_ROUNDING = 0.05


class Channel(NamedTuple):
    """Objects or tensors: their keys, and where a group counts them."""

    send_key: str
    broadcast_key: str
    tag: int
    counters: Callable[[Any, str], dict[int, int]]
    """Of a group, by the name of the field."""


def _of_tensors(group: Any, name: str) -> dict[int, int]:
    counters: dict[int, int] = group.__dict__.setdefault(
        "_tensor_" + name, dict.fromkeys(range(group.world_size), 0)
    )
    return counters


OBJECTS = Channel("send_to", "broadcast_from", 0, getattr)
TENSORS = Channel("send_tensor", "broadcast_tensor", 1, _of_tensors)


class Gone:
    """In place of an object that has expired."""

    __slots__ = ("age",)

    def __init__(self, age: float) -> None:
        self.age = age

    def __reduce__(self) -> tuple[Any, ...]:
        return Gone, (self.age,)


def _delete(store: Any, key: str) -> bool:
    """Whether it existed. Stores that cannot delete keep it."""
    with contextlib.suppress(NotImplementedError):
        return bool(store.delete_key(key))
    return False


def expire(group: Any) -> None:
    """What nobody has taken is replaced by a mark."""
    while group.entries:
        key, since = group.entries[0]
        age = time.time() - since
        if age <= group.data_expiration_seconds:
            return
        group.entries.popleft()
        if _delete(group.store, key):
            group.store.set(key, pickle.dumps(Gone(age)))


def _put(group: Any, key: str, obj: Any) -> None:
    group.expire_data()
    group.store.set(key, pickle.dumps(obj))
    group.entries.append((key, time.time()))


def _object_of(data: bytes, call: str, source: int) -> Any:
    obj = pickle.loads(data)
    if type(obj) is not Gone:
        return obj
    raise as_runtime_error(Expired(
        f"{call}: the object of rank {source} had expired after {obj.age:.1f} s",
        code="expired", number=69, operation=call, happened="no", rank_numbers=[source],
    ))


def send(group: Any, obj: Any, dst: int, channel: Channel) -> None:
    sent = channel.counters(group, "send_dst_counter")
    _put(group, f"{channel.send_key}/{dst}/{group.rank}/{sent[dst]}", obj)
    sent[dst] += 1


def recv(group: Any, src: int, channel: Channel) -> Any:
    received = channel.counters(group, "recv_src_counter")
    key = f"{channel.send_key}/{group.rank}/{src}/{received[src]}"
    data = group.store.get(key)
    received[src] += 1
    _delete(group.store, key)
    return _object_of(data, "recv_obj", src)


def _own_broadcasts(group: Any, channel: Channel) -> int:
    """Its number; one more from now on."""
    if channel is OBJECTS:
        group.broadcast_send_counter += 1
        return int(group.broadcast_send_counter) - 1
    sent = channel.counters(group, "broadcast_recv_src_counter")
    sent[group.rank] += 1
    return sent[group.rank] - 1


def broadcast(group: Any, obj: Any, src: int, channel: Channel) -> Any:
    if src == group.rank:
        number = _own_broadcasts(group, channel)
        if group.world_size > 1:
            _put(group, f"{channel.broadcast_key}/{src}/{number}", obj)
        return obj
    received = channel.counters(group, "broadcast_recv_src_counter")
    key = f"{channel.broadcast_key}/{src}/{received[src]}"
    data = group.store.get(key)
    received[src] += 1
    if group.store.add(f"{key}/read", 1) == group.world_size - 1:
        _delete(group.store, key)
        _delete(group.store, f"{key}/read")
    return _object_of(data, "broadcast_obj", src)


def _wait(store: Any, key: str, is_set: Callable[[], bool], deadline: float) -> bool:
    """Waits for a key, of which `is_set` tells. Returns whether it came in time.

    A store of PyTorch 1 cannot take a wait back: its answer would be taken for another one's.
    """
    if hasattr(store, "multi_get"):
        left = max(deadline - time.monotonic(), 0.001)
        try:
            store.wait([key], timedelta(seconds=left))
        except Exception:
            if time.monotonic() < deadline - _ROUNDING:
                raise  # it is no time-out
            return is_set()
        return True
    pause = _POLL_FIRST
    while not is_set():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _POLL_MAX)
    return True


class _Barrier:
    """One barrier, at one rank."""

    def __init__(self, group: Any) -> None:
        self.store: Any = group.store
        self.rank: int = group.rank
        self.size: int = group.world_size
        number = self.store.add(f"barrier/of/{self.rank}", 1)
        self.key = f"barrier/number/{number}/"

    def count(self, name: str, by: int = 0) -> int:
        return int(self.store.add(self.key + name, by))

    def decide(self, missing: list[int]) -> list[int]:
        """For all ranks, unless somebody has: then what that one has decided."""
        if self.count("decided", 1) == 1:
            self.store.set(self.key + "missing", json.dumps(missing))
        return [int(rank) for rank in json.loads(self.store.get(self.key + "missing"))]

    def missing(self, deadline: float) -> list[int]:
        """Those who had not come when it was decided."""
        self.count(f"here/{self.rank}", 1)
        if self.count("here", 1) == self.size:
            return self.decide([])
        came = _wait(self.store, self.key + "missing", lambda: self.count("decided") > 0, deadline)
        if came:
            return [int(rank) for rank in json.loads(self.store.get(self.key + "missing"))]
        return self.decide([r for r in range(self.size) if self.count(f"here/{r}") == 0])

    def leave(self, has_failed: bool, deadline: float) -> None:
        """Whoever goes last deletes the keys. That is rank 0, which may be the server's: it waits
        for the others, unless it has failed."""
        others = self.size - 1
        if has_failed:
            if self.count("left", 1) == self.size:
                self.delete()
        elif self.rank != 0:
            if self.count("left", 1) == others:
                self.store.set(self.key + "gone", b"1")
        elif others == 0:
            self.delete()
        elif _wait(
            self.store, self.key + "gone", lambda: self.count("left") == others, deadline
        ):
            self.store.get(self.key + "gone")  # it may be on its way
            self.delete()
        else:
            log.warning("the barrier has succeeded, but some ranks did not confirm it")

    def delete(self) -> None:
        for name in ("decided", "missing", "here", "left", "gone"):
            _delete(self.store, self.key + name)
        for rank in range(self.size):
            _delete(self.store, f"{self.key}here/{rank}")


def barrier(group: Any, timeout: float) -> None:
    began = time.monotonic()
    one = _Barrier(group)
    missing = one.missing(began + timeout)
    one.leave(bool(missing), began + timeout)
    if missing:
        raise as_runtime_error(_timed_out(missing, time.monotonic() - began, timeout))


def _timed_out(missing: list[int], elapsed: float, timeout: float) -> TimedOut:
    names = ", ".join(str(rank) for rank in missing)
    return TimedOut(
        f"barrier: timed out after {elapsed:.2f} s, missing: {names}",
        code="timed_out", number=21, operation="barrier", elapsed=elapsed, happened="no",
        decided_by="a rank whose time had passed", decided_by_timeout=timeout,
        rank_numbers=missing,
        ranks=[RankReport(rank, False, "", 0, "", "", None, "", "") for rank in missing],
    )
