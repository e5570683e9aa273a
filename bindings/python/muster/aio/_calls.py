"""The pending calls of a loop."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Generator
from typing import Any

from muster import _core
from muster.errors import MusterError

# A cancelled task does not get these: the session or membership ends.
_HANDLES = (_core.Group, _core.Store)


def _received(value: Any) -> Any:
    """The value of a call, which its task has from now on."""
    return value.accept() if isinstance(value, _core.TakenValue) else value


def _tell(
    cancelled: Any, future: asyncio.Future[Any], convert: Callable[[Any], Any] | None
) -> None:
    """Sets the attributes of a cancelled task's exception: how its call ended."""
    error = future.exception()
    value = None if error else _received(future.result())
    if isinstance(value, _core.Delivery):
        value.refuse()  # the next receive gets the object
        value = None
    elif isinstance(value, _HANDLES):
        value = None
    elif error is None and convert is not None:
        try:
            value = convert(value)
        except Exception as failure:  # such as that of a codec or of the caller's function
            error, value = failure, None
    _mark(cancelled, error, value)


def _mark(cancelled: Any, error: BaseException | None = None, value: Any = None) -> None:
    # asyncio and others compare its class, and some look at its message.
    cancelled.error = error
    cancelled.value = value
    cancelled.in_doubt = isinstance(error, MusterError) and error.in_doubt


async def _wait_for(future: asyncio.Future[Any]) -> None:
    """Waits for the end of a call that was cancelled, even if the task is cancelled again."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])


class _Loop:
    """The pending calls of one loop. Muster's threads put their ends where the loop looks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._completions = _core.Completions()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        loop.add_reader(self._completions.descriptor(), self._take)

    async def run(
        self,
        begin: Callable[..., _core.Call],
        arguments: tuple[Any, ...],
        convert: Callable[[Any], Any] | None,
    ) -> Any:
        """Begins a call, and waits for its end.

        convert  makes the caller's result of the call's value
        errors   the task's own CancelledError, which then has ``error`` (how the call ended; None:
                 it succeeded), ``value`` (its result, if so) and ``in_doubt``
        """
        future = asyncio.get_running_loop().create_future()
        self._last += 1
        token = self._last
        self._futures[token] = future
        try:
            call = begin(*arguments, self._completions, token)
        except BaseException:
            del self._futures[token]
            raise
        try:
            value = _received(await future)
        except asyncio.CancelledError as cancelled:
            if future.cancelled():
                call.cancel()
                future = await self._end_of(token)
            future = await self._given_back(future)
            _tell(cancelled, future, convert)
            # The exception refers to this frame, which must not keep the call's value.
            del future
            raise
        return value if convert is None else convert(value)

    async def _given_back(self, future: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """Returns a taken value to the server when its task was cancelled."""
        if future.exception() or not isinstance(future.result(), _core.TakenValue):
            return future
        self._last += 1
        token = self._last
        self._futures[token] = asyncio.get_running_loop().create_future()
        future.result().give_back(self._completions, token)
        return await self._end_of(token)

    async def _end_of(self, token: int) -> asyncio.Future[Any]:
        """Waits for the end of a call that was cancelled, 2 s at most."""
        future = self._futures[token]
        if future.cancelled():
            future = self._futures[token] = asyncio.get_running_loop().create_future()
        await _wait_for(future)
        self._futures.pop(token, None)
        return future

    def _take(self) -> None:
        for token, is_value, outcome in self._completions.take_all():
            future = self._futures[token]
            if future.cancelled():
                # Its task has not run since: it finds the end when it does.
                self._futures[token] = future = future.get_loop().create_future()
            else:
                del self._futures[token]
            if is_value:
                future.set_result(outcome)
            else:
                future.set_exception(outcome)


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()


def _running() -> _Loop:
    loop = asyncio.get_running_loop()
    pending = _loops.get(loop)
    if pending is None:
        pending = _loops[loop] = _Loop(loop)
    return pending


async def run_in_thread(
    call: Callable[..., Any],
    arguments: tuple[Any, ...],
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """Makes a call that only blocks in a thread of the loop's executor. Errors as ``_Loop.run``."""
    cancellation = _core.Cancellation()
    has_begun = False

    def run() -> Any:
        nonlocal has_begun
        has_begun = True
        return cancellation.run(call, arguments)

    ended = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        value = await asyncio.shield(ended)
    except asyncio.CancelledError as cancelled:
        cancellation.cancel()
        if not has_begun:  # it waits for a thread of the executor, and never begins
            ended.cancel()
            _mark(cancelled)
            raise
        await _wait_for(ended)
        _tell(cancelled, ended, convert)
        del ended
        raise
    return value if convert is None else convert(value)


class Pending:
    """A call that begins when it is awaited."""

    __slots__ = ("_arguments", "_begin", "_is_blocking", "convert")

    def __init__(
        self, begin: Callable[..., Any], arguments: tuple[Any, ...], is_blocking: bool
    ) -> None:
        self._begin = begin
        self._arguments = arguments
        self._is_blocking = is_blocking
        self.convert: Callable[[Any], Any] | None = None

    def __await__(self) -> Generator[Any, None, Any]:
        made = self._begin, self._arguments, self.convert
        if self._is_blocking:
            return run_in_thread(*made).__await__()
        return _running().run(*made).__await__()


# Calls that wait and have no callback form.
_BLOCKING = frozenset({"host", "inspect", "whoami"})


class AsyncCore:
    """A handle of the extension, or the extension itself, whose calls return a ``Pending``. What
    does not wait is as it is there."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __getattr__(self, name: str) -> Any:
        is_blocking = name in _BLOCKING
        begin: Any = getattr(self.handle, name if is_blocking else f"{name}_async", None)
        if begin is None:
            return getattr(self.handle, name)

        def call(*arguments: Any) -> Pending:
            handles = (each.handle if type(each) is AsyncCore else each for each in arguments)
            return Pending(begin, tuple(handles), is_blocking)

        return call
