"""Errors of Muster in the form of torch's, for code that knows torch's alone."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist

from muster.errors import MusterError

NAMES_THE_KEYS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5)
"""Whether the TCPStore of this version names the keys of a wait whose time is up."""


def class_named(name: str, otherwise: type[Exception] = RuntimeError) -> type[Exception]:
    """A class of torch's errors; where this version lacks it, what it raises in its place."""
    kind: type[Exception] = getattr(dist, name, otherwise)
    return kind


StoreError = class_named("DistStoreError")
QueueEmptyError = class_named("QueueEmptyError", StoreError)
NetworkError = class_named("DistNetworkError")


def time_is_up(keys: Iterable[bytes], milliseconds: int, addition: str) -> Exception:
    """What torch's TCPStore raises when a key has not come, with our addition."""
    if not NAMES_THE_KEYS:
        return StoreError(f"Socket Timeout{addition}")
    names = ", ".join(key.decode(errors="backslashreplace") for key in keys)
    return StoreError(f"wait timeout after {milliseconds}ms, keys: {names}{addition}")


def as_torch(error: MusterError) -> Exception:
    """What torch's stores raise where Muster raises ``error``, whose message it has."""
    kind = NetworkError if isinstance(error, ConnectionError) else StoreError
    return kind(str(error))
