"""What is at ``.store`` of a group that ``create`` has made, where torch is imported."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import muster
from muster.compat._errors import as_runtime_error
from muster.errors import MusterError
from muster.torch.store import Store, _Shared

_TIMED = frozenset({
    "add", "append", "compare_set", "get", "keys", "multi_exists", "multi_get", "multi_set",
    "queue_length", "queue_pop", "queue_push", "remove", "set", "wait",
})


class _Timed:
    """A session whose calls have another time-out by default: its own is what was left of joining
    the group."""

    def __init__(self, session: muster.Store, timeout: timedelta) -> None:
        self.session = session
        self._timeout = timeout

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.session, name)
        if name not in _TIMED:
            return found

        def call(*arguments: Any, timeout: Any = None, **options: Any) -> Any:
            given = self._timeout if timeout is None else timeout
            return found(*arguments, timeout=given, **options)

        return call


class GroupStore(Store):
    """A store of ``torch.distributed`` with the session of a group: for a PrefixStore, a backend,
    or native code.

    Its keys are those of :class:`muster.compat._keys.KeyStore`, without a "/" before them, so that
    ranks without torch have the same ones. It is open as long as the group; keep that.
    """

    _prefix = b""

    def __init__(self, session: muster.Store, timeout: float, host: str, port: int) -> None:
        dist.Store.__init__(self)
        self.host, self.port = host, port
        each = timedelta(seconds=timeout)
        timed: Any = _Timed(session, each)
        self._share(_Shared(timed, None, None), each)

    def _share(self, shared: _Shared, timeout: Any) -> None:
        """The group keeps it, and nothing else does."""
        self._shared = shared
        self.set_timeout(timeout)

    @property
    def session(self) -> muster.Store:
        timed: Any = self._shared.session
        kept: muster.Store = timed.session
        return kept

    def _torchs(self, error: MusterError) -> Exception:
        return as_runtime_error(error)

    def _late(self, error: MusterError, names: Iterable[bytes], timeout: timedelta) -> Exception:
        return as_runtime_error(error)
