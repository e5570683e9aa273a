"""Groups, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from muster import _core
from muster._events import Events
from muster._keywords import names_keywords
from muster._objects import accepted, decoded, encoded
from muster.aio._calls import here
from muster.aio.store import Store
from muster.codecs import JSON, BytesLike, Codec
from muster.errors import MusterError
from muster.group import (
    Counters, Member, Received, Recovered, Watch, as_member, group_events, group_options,
)
from muster.store import Time, Timeout


def _decoded(codec: Codec, all_data: Sequence[bytes], operation: str) -> list[Any]:
    return [decoded(codec, data, operation, rank) for rank, data in enumerate(all_data)]


def _refuse(cancelled: Any) -> None:
    """The next ``recv_obj`` gets what a cancelled one has received."""
    if cancelled.value is not None:
        cancelled.value.refuse()
        cancelled.value = None


@names_keywords
class StatelessProcessGroup:
    """As :class:`muster.StatelessProcessGroup`; made by ``await StatelessProcessGroup.join(store,
    ...)``."""

    __slots__ = ("_events", "_handle", "__weakref__")

    _events: Events | None
    _handle: _core.Group

    def __init__(self) -> None:
        raise TypeError("use `await muster.aio.StatelessProcessGroup.join(store, ...)`")

    @classmethod
    async def join(
        cls,
        store: Store,
        name: str,
        rank: int,
        world_size: int,
        *,
        data_expiration: Time = 3600.0,
        timeout: Time = 300.0,
        standby: bool = False,
        info: BytesLike | str = b"",
        other_tenants: Sequence[str] = (),
        on_loss: Callable[[MusterError], object] | None = None,
        on_leave: Callable[[MusterError], object] | None = None,
    ) -> StatelessProcessGroup:
        """Joins the group ``name``, as ``muster.StatelessProcessGroup(store, ...)``."""
        events = group_events(on_loss, on_leave)
        handle = await here().run(
            _core.join_async, store._handle, name, rank, world_size,
            group_options(
                data_expiration=data_expiration, timeout=timeout, standby=standby, info=info,
                other_tenants=other_tenants, events=events,
            ),
        )
        return cls._of(handle, events)

    @classmethod
    def _of(cls, handle: _core.Group, events: Events | None) -> StatelessProcessGroup:
        group = cls.__new__(cls)
        group._events = events
        group._handle = handle
        return group

    async def send_obj(
        self, obj: Any, dst: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> None:
        given = encoded(codec, obj, "send_obj")
        await here().run(self._handle.send_async, dst, codec.id, given, tag, timeout)

    async def recv_obj(
        self, src: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> Any:
        """As the blocking call. One that is cancelled has received nothing: the next one gets the
        object."""
        return (await self.recv_numbered_obj(src, tag=tag, codec=codec, timeout=timeout)).object

    async def recv_numbered_obj(
        self, src: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> Received:
        try:
            delivery = await here().run(self._handle.recv_async, src, codec.id, tag, timeout)
        except asyncio.CancelledError as cancelled:
            _refuse(cancelled)
            raise
        return Received(*accepted(codec, delivery, src))

    async def broadcast_obj(
        self, obj: Any = None, src: int = 0, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> Any:
        given = encoded(codec, obj, "broadcast_obj") if src == self.rank else b""
        return await here().run(
            self._handle.broadcast_async, given, codec.id, src, timeout,
            value_of=lambda data: decoded(codec, data, "broadcast_obj", src),
        )

    async def all_gather_obj(
        self, obj: Any, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> list[Any]:
        given = encoded(codec, obj, "all_gather_obj")
        gathered: list[Any] = await here().run(
            self._handle.all_gather_async, given, codec.id, timeout,
            value_of=lambda all_data: _decoded(codec, all_data, "all_gather_obj"),
        )
        return gathered

    async def gather_obj(
        self, obj: Any, dst: int = 0, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> list[Any] | None:
        given = encoded(codec, obj, "gather_obj")
        is_destination = dst == self.rank
        gathered: list[Any] | None = await here().run(
            self._handle.gather_async, given, codec.id, dst, timeout,
            value_of=lambda all_data: (
                _decoded(codec, all_data, "gather_obj") if is_destination else None
            ),
        )
        return gathered

    async def scatter_obj(
        self,
        objs: Iterable[Any] | None = None,
        src: int = 0,
        *,
        codec: Codec = JSON,
        timeout: Timeout = None,
    ) -> Any:
        given: list[Any] = []
        if src == self.rank and objs is not None:
            given = [encoded(codec, obj, "scatter_obj") for obj in objs]
        return await here().run(
            self._handle.scatter_async, given, codec.id, src, timeout,
            value_of=lambda data: decoded(codec, data, "scatter_obj", src),
        )

    async def all_reduce_obj(
        self,
        obj: Any,
        combine: Callable[[Any, Any], Any],
        *,
        codec: Codec = JSON,
        timeout: Timeout = None,
    ) -> Any:
        return reduce(combine, await self.all_gather_obj(obj, codec=codec, timeout=timeout))

    async def barrier(self, *, timeout: Timeout = None) -> list[int]:
        unconfirmed: list[int] = await here().run(self._handle.barrier_async, timeout)
        return unconfirmed

    async def interrupt(self, reason: str, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.interrupt_async, reason, timeout)

    def watch(self, handler: Callable[[MusterError], object]) -> Watch:
        """As the other: ``handler`` runs on a thread of Muster's; ``loop.call_soon_threadsafe``
        leads back."""
        return Watch(self._handle, handler)

    async def members(self, *, timeout: Timeout = None) -> list[Member]:
        members: list[Member] = await here().run(
            self._handle.members_async, timeout,
            value_of=lambda all_fields: [as_member(fields) for fields in all_fields],
        )
        return members

    async def expire_data(self, older_than: Timeout = None, *, timeout: Timeout = None) -> int:
        count: int = await here().run(self._handle.expire_data_async, older_than, timeout)
        return count

    async def regroup(
        self,
        *,
        new_size: int = 0,
        everyone: bool = False,
        min_size: int = 0,
        timeout: Timeout = None,
    ) -> StatelessProcessGroup:
        handle = await here().run(
            self._handle.regroup_async, (new_size, everyone, min_size), timeout
        )
        return StatelessProcessGroup._of(handle, self._events)

    async def recover(self, *, timeout: Timeout = None) -> Recovered:
        recovered: Recovered = await here().run(
            self._handle.recover_async, timeout, value_of=lambda fields: Recovered(*fields)
        )
        return recovered

    async def leave(self, *, timeout: Timeout = None) -> None:
        await here().run(self._handle.leave_async, timeout)

    async def close(self, linger: Time = 10.0) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._handle.close, linger)

    def cancel(self) -> None:
        self._handle.cancel()

    @property
    def rank(self) -> int:
        return self._handle.rank()

    @property
    def world_size(self) -> int:
        return self._handle.world_size()

    @property
    def epoch(self) -> int:
        return self._handle.epoch()

    @property
    def name(self) -> str:
        return self._handle.name()

    @property
    def counters(self) -> Counters:
        return Counters(*self._handle.counters())

    @property
    def store(self) -> Store:
        return Store._of(self._handle.store())

    async def __aenter__(self) -> StatelessProcessGroup:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return (
            f"<muster.aio.StatelessProcessGroup {self.name!r}: rank {self.rank} of "
            f"{self.world_size}, epoch {self.epoch}>"
        )
