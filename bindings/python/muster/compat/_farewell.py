"""How the server of rank 0 ends when nobody has said that it should.

A program drops its group, or ends, when it has what it wants; other ranks may still fetch theirs.
So the rank leaves, and its server stays until the others have gone, or for ``LINGER_S``: in a
thread while the process lives, and at its end before anything else is taken down.
"""

from __future__ import annotations

import contextlib
import multiprocessing.util
import threading
import time
import weakref
from typing import Any

from muster.errors import MusterError
from muster.group import StatelessProcessGroup

LINGER_S = 10.0
_LOOK_S = 0.02

_lingering: set[Farewell] = set()


class Farewell:
    """Of one server, and the object whose end it waits for."""

    def __init__(self, owner: Any, group: StatelessProcessGroup, port: int) -> None:
        self.port = port
        self._group = group
        self._lock = threading.Lock()
        self._is_begun = False
        self._is_cut, self._is_over = threading.Event(), threading.Event()
        self._of_owner = weakref.finalize(owner, self._owner_is_gone)
        self._of_owner.atexit = False
        # Also children of multiprocessing run this one, which end without atexit.
        self._at_exit: Any = multiprocessing.util.Finalize(None, self._process_ends, exitpriority=1)

    def cancel(self) -> None:
        """The server ends in another way."""
        self._is_begun = True
        self._of_owner.detach()
        self._at_exit.cancel()

    def cut_short(self, timeout: float) -> None:
        """Returns when the server has ended, or after so many seconds."""
        self._is_cut.set()
        self._is_over.wait(min(LINGER_S, timeout))

    def _begins(self) -> bool:
        with self._lock:
            is_first = not self._is_begun
            self._is_begun = True
        return is_first

    def _owner_is_gone(self) -> None:
        if not self._begins():
            return
        if self._group.world_size == 1:
            return self._run()
        _lingering.add(self)
        threading.Thread(target=self._run, name="muster-farewell", daemon=True).start()

    def _process_ends(self) -> None:
        if self._begins():
            self._run()
        else:
            self._is_over.wait(LINGER_S)

    def _run(self) -> None:
        until = time.monotonic() + LINGER_S
        try:
            with contextlib.suppress(MusterError):
                self._group.leave(timeout=LINGER_S)
                while self._has_others() and time.monotonic() < until:
                    if self._is_cut.wait(_LOOK_S):
                        break
            with contextlib.suppress(MusterError):
                self._group.close(0.0)
        finally:
            _lingering.discard(self)
            self._at_exit.cancel()
            self._is_over.set()

    def _has_others(self) -> bool:
        return int(self._group.store.status(timeout=LINGER_S)["sessions_count"]) > 1


def free_port(port: int, timeout: float) -> None:
    """Ends what lingers at a port that this process is to serve again."""
    for one in list(_lingering):
        if one.port == port:
            one.cut_short(timeout)
