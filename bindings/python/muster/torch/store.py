"""A Store of torch.distributed that is kept by a server of Muster's."""

from __future__ import annotations

import contextlib
import numbers
import operator
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Union

import torch.distributed as dist

import muster
from muster._calls import shown
from muster._comparing import compare_set
from muster._handles import NotPickled
from muster._keywords import names_keywords
from muster.errors import MusterError, NotFound, TimedOut
from muster.store import IoThread, Time
from muster.torch import _ranks
from muster.torch._errors import QueueEmptyError, as_torch, time_is_up

__all__ = ["Store"]

Text = Union[str, bytes, "list[int]"]
"""As torch gives it: from C++ it comes as bytes, or as a list of them in old versions."""

SLASH = b"/"
TIMEOUT_MAX = timedelta(days=30)


def bytes_of(text: Text) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, list)):
        return bytes(text)
    raise TypeError(f"a value is str or bytes, not {type(text).__name__}")


def names_in(keys: Sequence[str]) -> Sequence[str]:
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"keys: a sequence of them, not {type(keys).__name__}")
    return keys


def as_delta(timeout: Time) -> timedelta:
    """At most 30 days, as all time-outs."""
    if isinstance(timeout, timedelta):
        return min(timeout, TIMEOUT_MAX)
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout: seconds or a timedelta, not {type(timeout).__name__}")
    return timedelta(seconds=min(timeout, TIMEOUT_MAX.total_seconds()))


_io_thread: tuple[int, IoThread] | None = None


def io_thread() -> IoThread:
    """One for all stores of this process: a thread for each would cost more than to connect it."""
    global _io_thread
    if _io_thread is None or _io_thread[0] != os.getpid():  # a child has none of its parent's
        _io_thread = os.getpid(), IoThread("muster-torch")
    return _io_thread[1]


class _Shared:
    """The session of a store and of its clones, and what keeps them: C++ refers to a store without
    Python's knowing, and calls what only the object in Python has."""

    __slots__ = ("presence", "session", "stores", "world_size")

    def __init__(
        self, session: muster.Store, presence: _ranks.Presence | None, world_size: int | None
    ) -> None:
        self.session = session
        self.presence = presence
        self.world_size = world_size
        self.stores: list[Store] = []


_open: set[_Shared] = set()


@names_keywords
class Store(dist.Store, NotPickled):  # type: ignore[misc]
    """A store for ``init_process_group``, ``PrefixStore`` and all else that takes one of torch's.

    Its keys are those of a namespace, each with a "/" before it, as TCPStore's clients put it: a
    program with a TCPStore at a port of that namespace has the same ones. Any number of threads
    may use it at once, also those of a backend, and nobody waits for another one.

    ``timeout`` and ``set_timeout`` are of what waits for keys: ``get``, ``wait``, ``multi_get``.
    What a key does not come in time for raises torch's error of a time-out, with who is missing
    and who died; its ``__cause__`` is Muster's error, as that of all other errors. Where torch has
    the classes (2.2 and later) they are DistStoreError, and DistNetworkError of connections; else
    RuntimeError.

    The namespace is that of a run (docs/semantics.md, "Runs"): it is removed with its keys when no
    process is left in it. A rank that restarts finds the keys of the others; when all ranks
    restart, the new ones wait until the old ones are over, at most a session timeout (15 s), and
    find nothing of theirs.

    A store is open until ``close`` or the end of the process, even if nothing in Python refers to
    it: what C++ has of it cannot be seen.
    """

    _instead = "it is one process's session. Each process connects its own: muster.torch.Store"

    def __init__(
        self,
        address: str,
        *,
        namespace: str,
        rank: int | None = None,
        world_size: int | None = None,
        timeout: Time = 300.0,
        label: str = "",
        credential_file: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        authorities_file: str = "",
        server_name: str = "",
        run: str = "",
        namespace_idle_lifetime: Time = 0.0,
    ) -> None:
        """Connects to a server, and does not wait for other ranks.

        rank             that of this process: others then learn from their time-outs whether it
                         has come, or died; two stores of a namespace do not have the same one
        world_size       how many ranks there will be: those that have not come are then named
        timeout          of connecting, of calls that do not wait for keys, and at first of those
                         that do
        run              the name of the run, the same at all ranks and another one for each run,
                         such as the number of the restart: for jobs whose old ranks may still be
                         there when new ones start. It waits for the end of another run
        namespace_idle_lifetime
                         how long the keys are kept when no process is left
        other arguments  as in ``muster.Store``
        errors           ValueError (no such rank); DistNetworkError; DistStoreError (another run
                         goes on)
        """
        rank = rank if rank is None else operator.index(rank)
        world_size = world_size if world_size is None else operator.index(world_size)
        timeout = as_delta(timeout)
        if rank is not None and not 0 <= rank < (rank + 1 if world_size is None else world_size):
            raise ValueError(f"there is no rank {rank} of {world_size}")
        super().__init__()
        if not label and rank is not None:
            label = f"rank {rank}" if world_size is None else f"rank {rank} of {world_size}"
        with self._in_torchs_form():
            session = muster.Store(
                address, namespace=namespace, label=label, connect_timeout=timeout,
                timeout=timeout, credential_file=credential_file,
                certificate_file=certificate_file, certificate_key_file=certificate_key_file,
                authorities_file=authorities_file, server_name=server_name, run=run,
                namespace_idle_lifetime=namespace_idle_lifetime,
                io_thread=io_thread(),
            )
            presence = None if rank is None else _ranks.Presence(session, rank)
            if presence is not None:
                presence.enter()
        self._share(_Shared(session, presence, world_size), timeout)

    def _share(self, shared: _Shared, timeout: Time) -> None:
        self._shared = shared
        shared.stores.append(self)
        _open.add(shared)
        self.set_timeout(as_delta(timeout))

    # What torch calls, from Python and from C++.

    def set(self, key: str, value: Text) -> None:
        """Sets ``key``."""
        with self._in_torchs_form():
            self._shared.session.set(self._name_of(key), bytes_of(value))

    def get(self, key: str) -> bytes:
        """The value of ``key``, which it waits for. One round trip."""
        name = self._name_of(key)
        with self._waiting([name]) as timeout:
            return self._shared.session.get(name, timeout=timeout)

    def add(self, key: str, value: int) -> int:
        """Adds to the number of ``key``; a missing key counts as 0. Returns the new number."""
        with self._in_torchs_form():
            return self._shared.session.add(self._name_of(key), value)

    def compare_set(self, key: str, expected_value: Text, desired_value: Text) -> bytes:
        """As TCPStore's: returns the value afterwards; of a key that is not there and was expected
        to be, ``expected_value``. An empty one also stands for a key that is not there."""
        name = self._name_of(key)
        with self._in_torchs_form():
            return compare_set(
                self._shared.session, name, bytes_of(expected_value), bytes_of(desired_value)
            )

    def delete_key(self, key: str) -> bool:
        """Removes ``key``. Returns whether it existed."""
        with self._in_torchs_form():
            return self._shared.session.remove(self._name_of(key))

    def num_keys(self) -> int:
        """The keys of the namespace, without those in which ranks say that they are there.

        cost  a round trip for each page of keys
        """
        with self._in_torchs_form():
            every = self._shared.session.keys()
            return sum(not info.key.startswith(_ranks.PREFIX) for info in every)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have a value, or something in their queue."""
        with self._in_torchs_form():
            return self._are_there([self._name_of(key) for key in names_in(keys)])

    def wait(self, keys: Sequence[str], timeout: Time | None = None) -> None:
        """Waits until all keys have a value at the same instant; returns at once if ``check`` says
        that they are there. One round trip if they have values, else three."""
        names = [self._name_of(key) for key in names_in(keys)]
        with self._waiting(names, timeout) as remaining:
            if not self._are_there(names):
                self._shared.session.wait(names, timeout=remaining)

    def _are_there(self, names: list[bytes]) -> bool:
        session = self._shared.session
        found = session.multi_exists(names) if names else []
        return all(has_value or session.queue_length(name) > 0
                   for name, has_value in zip(names, found))

    def has_extended_api(self) -> bool:
        """Whether it has ``append``, ``multi_get`` and ``multi_set``: torch asks."""
        return True

    def append(self, key: str, value: Text) -> None:
        """Appends to the value of ``key``; a missing key counts as empty."""
        with self._in_torchs_form():
            self._shared.session.append(self._name_of(key), bytes_of(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of the keys, all read at one instant, when all are there."""
        names = [self._name_of(key) for key in keys]
        found: list[bytes] = []
        with self._waiting(names) as timeout:
            deadline = time.monotonic() + timeout.total_seconds()
            while len(found) < len(names):
                values = self._shared.session.multi_get(names)
                found = [value for value in values if value is not None]
                if len(found) < len(names):
                    remaining = max(0.0, deadline - time.monotonic())
                    self._shared.session.wait(names, timeout=remaining)
        return found

    def multi_set(self, keys: Sequence[str], values: Sequence[Text]) -> None:
        """Sets all keys at the same instant, or none."""
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys and {len(values)} values")
        entries = [(self._name_of(key), bytes_of(value)) for key, value in zip(keys, values)]
        if entries:
            with self._in_torchs_form():
                self._shared.session.multi_set(entries)

    def list_keys(self) -> list[str]:
        """The keys that stores have set, in no order."""
        with self._in_torchs_form():
            found = self._shared.session.keys(self._prefix)
            start = len(self._prefix)
            return [info.key[start:].decode(errors="surrogateescape") for info in found]

    # Queues, as TCPStore has them from torch 2.7 on; C++ cannot call them.

    def queue_push(self, key: str, value: Text) -> None:
        """Puts ``value`` behind the others in the queue of ``key``, which is beside its value."""
        with self._in_torchs_form():
            self._shared.session.queue_push(self._name_of(key), bytes_of(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Removes the first item from the queue of ``key``, which it waits for. One round trip.

        block   False: it does not wait
        errors  QueueEmptyError (``block`` is False; before torch 2.8 DistStoreError)
        """
        name = self._name_of(key)
        if not block:
            try:
                return self._shared.session.queue_pop(name, timeout=0)
            except NotFound as error:
                raise QueueEmptyError(str(error)) from error
            except MusterError as error:
                raise self._torchs(error) from error
        with self._waiting([name]) as timeout:
            return self._shared.session.queue_pop(name, timeout=timeout)

    def queue_len(self, key: str) -> int:
        """The number of items in the queue of ``key``."""
        with self._in_torchs_form():
            return self._shared.session.queue_length(self._name_of(key))

    def clone(self) -> Store:
        """A store with the same session, and a time-out of its own.

        cost  a round trip, which tells whether the session is open
        """
        with self._in_torchs_form():
            self._shared.session.multi_exists([SLASH])
        other = type(self).__new__(type(self))
        dist.Store.__init__(other)
        other.__dict__.update(self.__dict__)
        other._share(self._shared, self.timeout)
        return other

    # The same, by the names that C++ calls.
    getNumKeys = num_keys
    deleteKey = delete_key

    # Beside torch's.

    def close(self) -> None:
        """Ends the session, also for clones; what still waits fails. Takes 1.1 s at most."""
        if self._shared.presence is not None:
            self._shared.presence.leave()
        self._shared.session.close()
        self._shared.stores.clear()
        _open.discard(self._shared)

    @property
    def session(self) -> muster.Store:
        """What it is kept by. Its keys are those of the program with a "/" before them."""
        return self._shared.session

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.session._is_closed else ""
        return shown(self, lambda: f"at {self.session.address}{closed}")

    @contextlib.contextmanager
    def _waiting(
        self, names: Iterable[bytes], timeout: Time | None = None
    ) -> Iterator[timedelta]:
        """Gives the time-out of a wait for keys, and raises torch's error when that is over."""
        given: Any = self.timeout if timeout is None else timeout
        whole = given if isinstance(given, timedelta) else timedelta(seconds=given)
        try:
            yield whole
        except (NotFound, TimedOut) as error:
            raise self._late(error, names, whole) from error
        except MusterError as error:
            raise self._torchs(error) from error

    @contextlib.contextmanager
    def _in_torchs_form(self) -> Iterator[None]:
        try:
            yield
        except MusterError as error:
            raise self._torchs(error) from error

    # What a store of another kind may have in its own way.

    _prefix = SLASH

    def _name_of(self, key: str | bytes) -> bytes:
        return self._prefix + (key.encode() if isinstance(key, str) else key)

    def _torchs(self, error: MusterError) -> Exception:
        return as_torch(error)

    def _late(self, error: MusterError, names: Iterable[bytes], timeout: timedelta) -> Exception:
        """The error of a wait for keys whose time is up."""
        addition = _ranks.report(self._shared.session, self._shared.world_size)
        return time_is_up(names, timeout // timedelta(milliseconds=1), addition)

