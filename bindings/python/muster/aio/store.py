"""Keys and values, for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from muster import _core
from muster._events import Events
from muster._keywords import names_keywords
from muster.aio._calls import here
from muster.aio.operate import Operator
from muster.errors import MusterError
from muster.store import (
    AnyKey, Compared, Key, KeyInfo, KeyPage, Limits, Process, Role, Subject, Time,
    Timeout, Value, WhoAmI, number_of, store_options,
)


@names_keywords
class Store:
    """As :class:`muster.Store`; made by ``await Store.connect(address)``."""

    __slots__ = ("_events", "_handle", "__weakref__")

    _events: Events | None
    _handle: _core.Store

    def __init__(self) -> None:
        raise TypeError("use `await muster.aio.Store.connect(address)`")

    @classmethod
    async def connect(
        cls,
        address: str,
        *,
        namespace: str = "",
        role: Role = "client",
        label: str = "",
        connect_timeout: Time = 30.0,
        timeout: Time = 300.0,
        wait_for_server: Timeout = None,
        credential_file: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        authorities_file: str = "",
        server_name: str = "",
        io_thread: _core.IoThread | None = None,
        busy_poll: Time = 0.0,
        on_session_end: Callable[[MusterError], object] | None = None,
        namespace_idle_lifetime: Timeout = None,
        run: str = "",
    ) -> Store:
        """Connects and begins a session, as ``muster.Store(address)``."""
        events = None if on_session_end is None else Events(session_ended=on_session_end)
        handle = await here().run(
            _core.connect_async,
            address,
            store_options(
                namespace=namespace, role=role, label=label, timeout=timeout,
                wait_for_server=wait_for_server, credential_file=credential_file,
                certificate_file=certificate_file, certificate_key_file=certificate_key_file,
                authorities_file=authorities_file, server_name=server_name, io_thread=io_thread,
                busy_poll=busy_poll, events=events,
                namespace_idle_lifetime=namespace_idle_lifetime, run=run,
            ),
            connect_timeout,
        )
        return cls._of(handle, events)

    @classmethod
    def _of(cls, handle: _core.Store, events: Events | None = None) -> Store:
        store = cls.__new__(cls)
        store._events = events
        store._handle = handle
        return store

    async def set(
        self,
        key: Key,
        value: Value,
        *,
        ttl: Timeout = None,
        only_if_absent: bool = False,
        bind_to_session: bool = False,
        timeout: Timeout = None,
    ) -> bool:
        done: bool = await here().run(
            self._handle.set_async, key, value, (ttl, only_if_absent, bind_to_session), timeout
        )
        return done

    async def get(self, key: Key, *, timeout: Timeout = None) -> bytes:
        value: bytes = await here().run(self._handle.get_async, key, timeout)
        return value

    async def take(self, key: Key, *, timeout: Timeout = None) -> bytes:
        value: bytes = await here().run(self._handle.take_async, key, timeout)
        return value

    async def queue_push(self, key: Key, item: Value, *, timeout: Timeout = None) -> int:
        count: int = await here().run(self._handle.queue_push_async, key, item, timeout)
        return count

    async def queue_pop(self, key: Key, *, timeout: Timeout = None) -> bytes:
        item: bytes = await here().run(self._handle.queue_pop_async, key, timeout)
        return item

    async def queue_len(self, key: Key, *, timeout: Timeout = None) -> int:
        count: int = await here().run(self._handle.queue_length_async, key, timeout)
        return count

    async def add(self, key: Key, delta: int = 1, *, timeout: Timeout = None) -> int:
        total: int = await here().run(self._handle.add_async, key, delta, timeout)
        return total

    async def compare_set(
        self,
        key: Key,
        expected: Value | None,
        desired: Value,
        *,
        ttl: Timeout = None,
        timeout: Timeout = None,
    ) -> Compared:
        compared: Compared = await here().run(
            self._handle.compare_set_async, key, expected, desired, ttl, timeout,
            value_of=lambda fields: Compared(*fields),
        )
        return compared

    async def append(self, key: Key, suffix: Value, *, timeout: Timeout = None) -> int:
        length: int = await here().run(self._handle.append_async, key, suffix, timeout)
        return length

    async def touch(self, key: Key, ttl: Timeout, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.touch_async, key, ttl, timeout)

    async def remove(self, key: Key, *, timeout: Timeout = None) -> bool:
        existed: bool = await here().run(self._handle.remove_async, key, timeout)
        return existed

    async def exists(self, key: Key, *, timeout: Timeout = None) -> bool:
        exists: bool = await here().run(self._handle.exists_async, key, timeout)
        return exists

    async def multi_remove(self, keys: Iterable[Key], *, timeout: Timeout = None) -> int:
        count: int = await here().run(self._handle.multi_remove_async, keys, timeout)
        return count

    async def multi_exists(self, keys: Iterable[Key], *, timeout: Timeout = None) -> list[bool]:
        exist: list[bool] = await here().run(self._handle.multi_exists_async, keys, timeout)
        return exist

    async def wait(self, keys: Iterable[Key], *, timeout: Timeout = None) -> None:
        await here().run(self._handle.wait_async, keys, timeout)

    async def multi_get(
        self, keys: Iterable[Key], *, timeout: Timeout = None
    ) -> list[bytes | None]:
        values: list[bytes | None] = await here().run(
            self._handle.multi_get_async, keys, timeout
        )
        return values

    async def multi_set(
        self,
        entries: Mapping[AnyKey, Value] | Iterable[tuple[AnyKey, Value]],
        *,
        ttl: Timeout = None,
        timeout: Timeout = None,
    ) -> None:
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        await here().run(self._handle.multi_set_async, pairs, ttl, timeout)

    async def list(
        self, prefix: Key = b"", cursor: int = 0, *, timeout: Timeout = None
    ) -> KeyPage:
        page: KeyPage = await here().run(
            self._handle.list_async, prefix, cursor, timeout,
            value_of=lambda fields: KeyPage([KeyInfo(*info) for info in fields[0]], fields[1]),
        )
        return page

    async def keys(self, prefix: Key = b"", *, timeout: Timeout = None) -> AsyncIterator[KeyInfo]:
        cursor = 0
        while True:
            page = await self.list(prefix, cursor, timeout=timeout)
            for info in page.keys:
                yield info
            cursor = page.cursor
            if cursor == 0:
                return

    async def report_dead(self, process: str, reason: str, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.report_dead_async, process, reason, timeout)

    async def drop_namespace(self, name: str, *, timeout: Timeout = None) -> int:
        count: int = await here().run(self._handle.drop_namespace_async, name, timeout)
        return count

    async def status(self, *, timeout: Timeout = None) -> dict[str, str]:
        status: dict[str, str] = await here().run(self._handle.status_async, timeout)
        return status

    async def whoami(self, *, timeout: Timeout = None) -> WhoAmI:
        loop = asyncio.get_running_loop()
        return WhoAmI(**await loop.run_in_executor(None, self._handle.whoami, timeout))

    async def inspect(self, subject: Subject, name: str = "", *, timeout: Timeout = None) -> Any:
        loop = asyncio.get_running_loop()
        asked = (self._handle, number_of(subject), name, timeout)
        return json.loads(await loop.run_in_executor(None, _core.inspect, *asked))

    @property
    def operate(self) -> Operator:
        return Operator(self._handle)

    async def reopen(self, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.reopen_async, timeout)

    def cancel(self) -> None:
        self._handle.cancel()

    def close(self) -> None:
        """Ends the session. Takes at most 100 ms, and mostly none."""
        self._handle.close()

    @property
    def limits(self) -> Limits:
        return Limits(**self._handle.limits())

    @property
    def address(self) -> str:
        return self._handle.address()

    @property
    def process(self) -> Process:
        return Process(**self._handle.process())

    @property
    def incarnation(self) -> int:
        return self._handle.incarnation()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<muster.aio.Store at {self.address}>"
