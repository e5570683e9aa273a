"""The pending calls of a loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any

from muster import _core
from muster.errors import MusterError

# A cancelled task does not get these: the session or membership ends.
_HANDLES = (_core.Group, _core.Store)


class _Loop:
    """The pending calls of one loop. Muster's threads put their ends where the loop looks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._completions = _core.Completions()
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._calls: dict[int, _core.Call | _core.Cancellation] = {}
        self._last = 0
        reader = self._look
        loop.add_reader(self._completions.descriptor(), reader)
        # Only the loop refers to its reader, and drops it when it is closed: asyncio tells no more.
        weakref.finalize(reader, self._abandon).atexit = False

    async def run(
        self,
        begin: Callable[..., _core.Call | _core.Cancellation],
        arguments: tuple[Any, ...],
        convert: Callable[[Any], Any] | None,
    ) -> Any:
        """Begins a call, and waits for its end.

        convert  makes the caller's result of the call's value
        errors   the task's own CancelledError, which then has ``error`` (how the call ended; None:
                 it succeeded), ``value`` (its result, if so) and ``in_doubt``
        """
        self._last += 1
        token = self._last
        call = begin(*arguments, self._completions, token)
        self._calls[token] = call
        future = self._awaited(token)
        try:
            await future
        except asyncio.CancelledError as cancelled:
            if future.cancelled():
                call.cancel()
                await self._end_of(token)
            if self._completions.give_back(token):
                await self._end_of(token)
            self._tell(cancelled, token, convert)
            raise
        finally:
            self._calls.pop(token, None)
        is_value, outcome = self._completions.take(token)
        if not is_value:
            raise outcome
        return outcome if convert is None else convert(outcome)

    def _awaited(self, token: int) -> asyncio.Future[None]:
        future = self._futures[token] = asyncio.get_running_loop().create_future()
        return future

    async def _end_of(self, token: int) -> None:
        """Waits for the end of a call that was cancelled, 2 s at most, even if the task is
        cancelled again."""
        while not self._completions.has(token):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._awaited(token)])

    def _tell(
        self, cancelled: Any, token: int, convert: Callable[[Any], Any] | None
    ) -> None:
        """Sets the attributes of a cancelled task's exception: how its call ended."""
        # asyncio and others compare its class, and some look at its message.
        cancelled.error = cancelled.value = None
        is_value, outcome = self._completions.take(token)
        if not is_value:
            cancelled.error = outcome
        elif isinstance(outcome, _core.Delivery):
            outcome.refuse()  # the next receive gets the object
        elif not isinstance(outcome, _HANDLES):
            try:
                cancelled.value = outcome if convert is None else convert(outcome)
            except Exception as failure:  # such as that of a codec or of the caller's function
                cancelled.error = failure
        error = cancelled.error
        cancelled.in_doubt = isinstance(error, MusterError) and error.in_doubt

    def _look(self) -> None:
        for token in self._completions.look():
            future = self._futures.pop(token, None)
            if future is not None and not future.done():
                future.set_result(None)

    def _abandon(self) -> None:
        """The loop was closed: its tasks do not run again, and get nothing."""
        for call in self._calls.values():
            call.cancel()
        self._completions.close()
        self._futures.clear()  # they refer to the loop


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()


def _running() -> _Loop:
    loop = asyncio.get_running_loop()
    pending = _loops.get(loop)
    if pending is None:
        pending = _loops[loop] = _Loop(loop)
    return pending


def in_thread(call: Callable[..., Any]) -> Callable[..., _core.Cancellation]:
    """The callback form of a call that only blocks.

    Each call has a thread of its own, so that its timeout begins with it. It is a daemon, for which
    the end of the interpreter waits no longer than for other calls.
    """

    def begin(*given: Any) -> _core.Cancellation:
        *arguments, completions, token = given
        cancellation = _core.Cancellation()

        def run() -> None:
            try:
                ended = True, cancellation.run(call, tuple(arguments))
            except BaseException as error:
                ended = False, error
            completions.put(token, *ended)

        threading.Thread(target=run, name="muster-call", daemon=True).start()
        return cancellation

    return begin


class Pending:
    """A call that begins when it is awaited."""

    __slots__ = ("_arguments", "_begin", "convert")

    def __init__(self, begin: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._begin = begin
        self._arguments = arguments
        self.convert: Callable[[Any], Any] | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        return _running().run(self._begin, self._arguments, self.convert).__await__()


# Calls that wait and have no callback form.
_BLOCKING = frozenset({"host", "inspect", "whoami"})


class AsyncCore:
    """A handle of the extension, or the extension itself, whose calls return a ``Pending``. What
    does not wait is as it is there."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __getattr__(self, name: str) -> Any:
        begin: Any = getattr(self.handle, f"{name}_async", None)
        if name in _BLOCKING:
            begin = in_thread(getattr(self.handle, name))
        if begin is None:
            return getattr(self.handle, name)

        def call(*arguments: Any) -> Pending:
            handles = (each.handle if type(each) is AsyncCore else each for each in arguments)
            return Pending(begin, tuple(handles))

        return call
