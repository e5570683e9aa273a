"""Keys and values, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from muster._events import Events
from muster._keywords import names_keywords
from muster.aio._calls import AsyncCore
from muster.aio._derived import StoreCalls
from muster.aio.operate import Operator
from muster.store import Key, KeyInfo, Timeout


@names_keywords
class Store(StoreCalls):
    """As :class:`muster.Store`; made by ``await Store.connect(address)``."""

    __slots__ = ("_events", "_handle", "_is_closed")
    _instead = "it is one process's session. Each process connects its own: aio.Store.connect"

    _events: Events | None
    _handle: Any
    _is_closed: bool

    def __init__(self) -> None:
        raise TypeError("use `await muster.aio.Store.connect(address)`")

    @classmethod
    def _of(cls, handle: Any) -> Store:
        store = cls.__new__(cls)
        store._events = None
        store._is_closed = False
        store._handle = AsyncCore(handle)
        return store

    async def keys(self, prefix: Key = b"", *, timeout: Timeout = None) -> AsyncIterator[KeyInfo]:
        """All keys that begin with ``prefix``, page by page, as the blocking call."""
        cursor = 0
        while True:
            page = await self.list(prefix, cursor, timeout=timeout)
            for info in page.keys:
                yield info
            cursor = page.cursor
            if cursor == 0:
                return

    @property
    def operate(self) -> Operator:
        """What operators change on the server: its settings, the end of sessions, its own end."""
        return Operator(self._handle)

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
