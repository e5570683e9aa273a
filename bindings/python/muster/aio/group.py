"""Groups, for asyncio."""

from __future__ import annotations

from typing import Any

from muster._events import Events
from muster.aio._calls import AsyncCore, Pending, in_thread
from muster.aio._derived import GroupCalls
from muster.aio.store import Store
from muster.store import Time


class StatelessProcessGroup(GroupCalls):
    """As :class:`muster.StatelessProcessGroup`; made by ``await StatelessProcessGroup.join(store,
    ...)`` or ``create``.

    Handlers run on a thread of Muster's; ``loop.call_soon_threadsafe`` leads back to the loop.
    """

    __slots__ = ("_events", "_handle")
    _instead = "it is one process's rank. Each process joins on a store of its own"

    _events: Events | None
    _handle: Any

    def __init__(self) -> None:
        raise TypeError("use `await muster.aio.StatelessProcessGroup.join(store, ...)`")

    @classmethod
    def _of(cls, handle: Any, events: Events | None) -> StatelessProcessGroup:
        group = cls.__new__(cls)
        group._events = events
        group._handle = AsyncCore(handle)
        return group

    async def close(self, linger: Time = 10.0) -> int:
        """Leaves; the process that hosts the server waits until the others have gone, and stops it.

        Cancelling the task ends the wait: the server is stopped immediately.

        returns  the number of other sessions that had not ended
        """
        remained: int = await Pending(in_thread(self._handle.close), (linger,))
        return remained

    @property
    def store(self) -> Store:
        """The store that the group is on."""
        return Store._of(self._handle.store())

    async def __aenter__(self) -> StatelessProcessGroup:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
