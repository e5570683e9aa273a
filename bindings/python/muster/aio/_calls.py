"""The calls of a loop that are under way."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from typing import Any

from muster import _core
from muster.errors import MusterError


# A task that is cancelled does not get them: their membership or session ends.
_HANDLES = (_core.Group, _core.Store)


def _received(value: Any) -> Any:
    """The value of a call, which its task has from now on."""
    return value.accept() if isinstance(value, _core.TakenValue) else value


def _tell(
    cancelled: Any, future: asyncio.Future[Any], value_of: Callable[[Any], Any] | None
) -> None:
    """Tells the cancelled task how its call has ended."""
    error = future.exception()
    assert error is None or isinstance(error, MusterError)
    value = None if error else _received(future.result())
    if isinstance(value, _HANDLES):
        value = None
    elif error is None and value_of is not None:
        try:
            value = value_of(value)
        except MusterError as failure:  # such as that of a codec
            error, value = failure, None
    # asyncio and others compare its class, and some look at its message.
    cancelled.error = error
    cancelled.value = value
    cancelled.in_doubt = error is not None and error.in_doubt


class _Calls:
    """The calls of one loop that are under way. Muster's threads put their ends where the loop
    looks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._completions = _core.Completions()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        loop.add_reader(self._completions.descriptor(), self._take)

    async def run(
        self,
        begin: Callable[..., _core.Call],
        *arguments: Any,
        value_of: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Begins a call, and waits for its end.

        value_of  makes what the caller gets of what the call gives
        errors    the task's own CancelledError, which then has ``error`` (how the call ended; None:
                  it has worked), ``value`` (what it has given, if so) and ``in_doubt``
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
            _tell(cancelled, future, value_of)
            # The exception refers to this frame, which must not keep what the call has given.
            del future
            raise
        return value if value_of is None else value_of(value)

    async def _given_back(self, future: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """What was taken for a task that will not have it: how that ends."""
        if future.exception() or not isinstance(future.result(), _core.TakenValue):
            return future
        self._last += 1
        token = self._last
        self._futures[token] = asyncio.get_running_loop().create_future()
        future.result().give_back(self._completions, token)
        return await self._end_of(token)

    async def _end_of(self, token: int) -> asyncio.Future[Any]:
        """Waits for a call that was cancelled, 2 s at most, whoever cancels the task again
        meanwhile."""
        future = self._futures[token]
        if future.cancelled():
            future = self._futures[token] = asyncio.get_running_loop().create_future()
        while not future.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future])
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


_calls: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Calls] = weakref.WeakKeyDictionary()


def here() -> _Calls:
    """The calls of the loop that runs."""
    loop = asyncio.get_running_loop()
    calls = _calls.get(loop)
    if calls is None:
        calls = _calls[loop] = _Calls(loop)
    return calls
