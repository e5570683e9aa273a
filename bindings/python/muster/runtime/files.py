"""Locks among processes, and work that one rank does before others where there is no server: by
files in a folder that they share, also on NFS. With a group, take the scopes of
:class:`~muster.runtime.RankGroup`."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping
from typing import NamedTuple

from muster import _core
from muster._events import as_logger
from muster._handles import Handle
from muster._keywords import names_keywords
from muster.errors import Closed, Forked
from muster.runtime.environment import Environment
from muster.runtime.turns import Turn
from muster.store import Time

__all__ = ["FileLock", "LockOwner", "SignalFolder"]


class LockOwner(NamedTuple):
    """Who holds a lock, or held it, as the lock's file says. Empty: the file does not say it."""

    host: str
    pid: int
    label: str
    since: datetime.datetime


def _as_owner(fields: tuple[str, int, str, float] | None) -> LockOwner | None:
    if fields is None:
        return None
    host, pid, label, since = fields
    when = datetime.datetime.fromtimestamp(since, datetime.timezone.utc)
    return LockOwner(host, pid, label, when)


@names_keywords
class FileLock(Handle):
    """An exclusive lock among processes, and among the handles of one process. The lock ends with
    ``release``, as a context manager, or when this is gone; the kernel ends it when the process
    dies in whatever way.

    It is on a file that exists while the lock is held. A forked child holds nothing.
    """

    __slots__ = ("_handle",)
    _instead = "a lock is held by one process. Each process acquires it: FileLock(path)"

    def __init__(self, path: str, *, timeout: Time = 0.0, label: str = "") -> None:
        """Acquires the lock. Waits for its owner at most ``timeout`` seconds.

        path    of the lock's file, in a folder that is there
        label   tells people who holds the lock
        errors  Busy (another one holds it, and the timeout is 0), TimedOut (another one still holds
                it); ``detail`` of both: who, since when. InvalidArgument, PermissionDenied,
                ResourceExhausted, Unsupported (a file system without locks), Unavailable
        """
        self._handle = _core.acquire_file_lock(path, timeout, label, as_logger())

    @staticmethod
    def owner_of(path: str) -> LockOwner | None:
        """Who holds the lock of that path now; None: nobody."""
        return _as_owner(_core.owner_of_file_lock(path))

    def release(self) -> None:
        """Releases the lock and removes its file; a second time it does nothing.

        errors  Forked, NotFound (somebody has removed the file meanwhile, so others may have had
                the lock at the same time), PermissionDenied, Unavailable
        """
        self._handle.release()

    @property
    def is_held(self) -> bool:
        return self._handle.is_held()

    @property
    def path(self) -> str:
        return self._handle.path()

    @property
    def taken_over_from(self) -> LockOwner | None:
        """The owner that died without releasing the lock before this one acquired it."""
        return _as_owner(self._handle.taken_over_from())

    def __enter__(self) -> FileLock:
        if not self.is_held:
            raise Closed(
                "FileLock: it was released, and holds nothing; acquire by another FileLock(path)",
                code="closed", number=23, happened="no",
            )
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Forked):  # a child holds nothing
            self.release()


@names_keywords
class SignalFolder(Handle):
    """A folder by whose files the ranks of a node, or of a whole job, tell each other what the
    first of them has done. All ranks enter the same scopes of it, in the same order.

    Errors of the scopes: CallbackFailed (the first rank's body has failed), TimedOut (it has told
    nothing for ``silence_max``, or has not come within ``arrival_max``), RankLost (it has died); at
    the first rank Busy (another process does the same), PermissionDenied, ResourceExhausted,
    Unavailable.
    """

    __slots__ = ("_handle",)
    _instead = "it is one process's rank. Each process opens its own: SignalFolder(folder)"

    def __init__(
        self,
        folder: str,
        environment: Environment | Mapping[str, str] | None = None,
        *,
        job: str = "",
        attempt: str = "",
    ) -> None:
        """folder       made if it is not there
        environment  what this process was told of its place and its job; None: that of the process
        job          tells the job apart from all others that use the folder; empty: what the
                     environment says, as ``muster::SignalFolderOptions`` has it
        attempt      tells the starts of one job apart; empty: the same
        errors       EnvironmentWrong, InvalidArgument, PermissionDenied, Unavailable
        """
        self._handle = _core.open_signal_folder(
            folder, Environment._given(environment)._handle, job, attempt, as_logger()
        )

    @property
    def folder(self) -> str:
        return self._handle.folder()

    @property
    def job(self) -> str:
        """What tells this job and attempt apart from others."""
        return self._handle.job()

    def local_rank_zero_first(
        self,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
        arrival_max: Time = _core.DEFAULTS.arrival_max,
    ) -> Turn:
        """A scope whose body runs on local rank 0 of each node, then on the others of that node.
        Local rank 0 leaves it when all of them have read how its body has ended, or after
        ``arrival_max``."""
        return Turn(self._handle.local_rank_zero_first((silence_max, limit, arrival_max)), False)

    def fs_local_rank_zero_first(
        self,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
        arrival_max: Time = _core.DEFAULTS.arrival_max,
    ) -> Turn:
        """The same for ranks that share a file system: if MUSTER_SHARED_FS or OLMO_SHARED_FS is 1,
        rank 0 of the whole job is first."""
        return Turn(self._handle.fs_local_rank_zero_first((silence_max, limit, arrival_max)), False)
