"""Groups of processes: collectives, streams of objects, epochs. Read :mod:`muster.store` first."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple

from muster import _core
from muster._calls import BlockingCalls, shown
from muster._events import Events
from muster._handles import Handle, handle_of
from muster._keywords import names_keywords
from muster._objects import accepted, decoder, decoder_of_all, encoded, receiver
from muster.codecs import JSON, BytesLike, Codec
from muster.errors import Forked, MusterError
from muster.store import Process, Role, Store, Time, Timeout, store_options

__all__ = ["Counters", "Member", "Received", "Recovered", "StatelessProcessGroup", "Watch"]


class Counters(NamedTuple):
    """What a handle has done in its epoch so far."""

    rounds: int
    """Collectives that have an outcome."""
    objects_sent: int
    objects_received: int


class Member(NamedTuple):
    rank: int
    state: str
    """live, silent, lost, left, candidate or away."""
    process: Process
    silence: float
    """Seconds since the server received its last byte."""
    info: bytes
    previous_rank: int
    """In the epoch that has regrouped into this one; -1: it was not there."""


class Received(NamedTuple):
    object: Any
    sequence: int
    """From 0 for each source and tag."""


class Recovered(NamedTuple):
    """What became of a collective that had got no answer."""

    round: int
    """Its number; 0: none was in doubt."""
    called: bool
    """Whether it had reached the server. If not: call it again."""
    error: MusterError | None
    values: list[bytes]
    """What it has given, by rank, encoded."""


class Watch(Handle):
    """Tells of what ends an epoch, until ``close`` or until it is gone. See
    ``StatelessProcessGroup.watch``."""

    __slots__ = ("_events", "_watch")
    _instead = "it calls a function of this process. Each process watches for itself"

    def __init__(self, group: _core.Group, handler: Callable[[MusterError], object]) -> None:
        self._events: Events | None = Events(happened=handler)
        self._watch: _core.GroupWatch | None = group.watch(weakref.ref(self._events))

    def close(self) -> None:
        """The handler runs no more, but for one that runs at this moment."""
        self._watch = self._events = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def group_options(
    *,
    data_expiration: Time,
    timeout: Time,
    standby: bool,
    info: BytesLike | str,
    other_tenants: Sequence[str],
    events: Events | None,
) -> dict[str, Any]:
    """The options of a group, for muster._core."""
    return {
        "data_expiration": data_expiration,
        "timeout": timeout,
        "standby": standby,
        "info": info,
        "other_tenants": other_tenants,
        "events": None if events is None else weakref.ref(events),
    }


def group_events(
    on_loss: Callable[[MusterError], object] | None,
    on_leave: Callable[[MusterError], object] | None,
) -> Events | None:
    if on_loss is None and on_leave is None:
        return None
    return Events(rank_lost=on_loss, rank_left=on_leave)


@names_keywords
class StatelessProcessGroup(BlockingCalls):
    """This process's rank in one epoch of a group.

    There is no process-global state: a process may be in any number of groups, and groups may
    overlap. All ranks call the collectives (barrier, broadcast_obj, all_gather_obj, gather_obj,
    scatter_obj, all_reduce_obj) in the same order; each has one outcome for all ranks, and the
    earliest deadline of all ranks counts.

    Objects travel by a codec of :mod:`muster.codecs`; JSON by default.

    Errors of every call, beside its own: those of a store, RankLost, RankLeft, StaleEpoch, Closed,
    Fenced; of collectives also TimedOut (``ranks`` are missing), CollectiveMismatch, Cancelled,
    TooLarge, Busy, OutcomeUnknown (call ``recover``); of calls with objects also CodecFailure. Any
    thread may call, but one collective at a time, and one receive for each source and tag.
    """

    __slots__ = ("_events", "_handle")
    _instead = "it is one process's rank. Each process joins on a store of its own"

    def __init__(
        self,
        store: Store,
        name: str,
        rank: int,
        world_size: int,
        *,
        data_expiration: Time = _core.DEFAULTS.data_expiration,
        timeout: Time = _core.DEFAULTS.group_timeout,
        standby: bool = False,
        info: BytesLike | str = b"",
        other_tenants: Sequence[str] = (),
        on_loss: Callable[[MusterError], object] | None = None,
        on_leave: Callable[[MusterError], object] | None = None,
    ) -> None:
        """Joins the group ``name`` on a store. Waits until all ranks have joined.

        data_expiration  the server drops objects of this age that nobody has received; equal on
                         all ranks
        timeout          of joining, and of calls without one
        standby          if the group is complete: waits as a candidate for its next epoch
        info             what the other members can read, such as this rank's address
        on_loss          called for each rank that is lost, with RankLost, on a thread of Muster's
        on_leave         the same of ranks that have left, with RankLeft
        errors           TimedOut (``ranks`` are missing), RankInUse, GroupMismatch, GroupClosed,
                         Busy
        """
        self._events = group_events(on_loss, on_leave)
        self._handle: _core.Group = self._core.join(
            handle_of(store), name, rank, world_size,
            group_options(
                data_expiration=data_expiration, timeout=timeout, standby=standby, info=info,
                other_tenants=other_tenants, events=self._events,
            ),
        )

    @classmethod
    def create(
        cls,
        host: str,
        port: int,
        rank: int,
        world_size: int,
        data_expiration_seconds: Time = _core.DEFAULTS.data_expiration,
        store_timeout: Time = _core.DEFAULTS.group_timeout,
        *,
        name: str = "",
        host_server: Literal["automatic", "always", "never"] = "automatic",
        allow_unauthenticated: bool = False,
        listening_socket: int = -1,
        standby: bool = False,
        info: BytesLike | str = b"",
        other_tenants: Sequence[str] = (),
        on_loss: Callable[[MusterError], object] | None = None,
        on_leave: Callable[[MusterError], object] | None = None,
        namespace: str = "",
        role: Role = "client",
        label: str = "",
        credential_file: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        authorities_file: str = "",
        server_name: str = "",
        io_thread: _core.IoThread | None = None,
    ) -> StatelessProcessGroup:
        """Forms a group at an address: rank 0 starts a server there, and all ranks connect to it
        and join.

        The server runs in rank 0 until its handle, and all that were regrouped from it, are gone;
        to let rank 0 go last, pass a barrier or ``close``.

        host, port        a name or an address, and a port above 0; or "unix:/path" and 0
        listening_socket  a descriptor for rank 0, of which this takes ownership
        other arguments   as in ``muster::HostedGroupOptions``
        errors            TimedOut (``ranks`` are missing), RankInUse, GroupMismatch, GroupClosed,
                          AddressInUse, PermissionDenied (not loopback, and no key), Unavailable
        """
        events = group_events(on_loss, on_leave)
        options = group_options(
            data_expiration=data_expiration_seconds, timeout=store_timeout, standby=standby,
            info=info, other_tenants=other_tenants, events=events,
        )
        options |= {
            "name": name,
            "host_server": host_server,
            "allow_unauthenticated": allow_unauthenticated,
            "listening_socket": listening_socket,
        }
        of_store = store_options(
            namespace=namespace, role=role, label=label, timeout=store_timeout,
            wait_for_server=None, credential_file=credential_file,
            certificate_file=certificate_file, certificate_key_file=certificate_key_file,
            authorities_file=authorities_file, server_name=server_name, io_thread=io_thread,
            busy_poll=0.0, events=None,
        )
        return cls._then(
            cls._core.host(host, port, rank, world_size, options, of_store),
            lambda handle: cls._of(handle, events),
        )

    @classmethod
    def _of(cls, handle: _core.Group, events: Events | None) -> StatelessProcessGroup:
        group = cls.__new__(cls)
        group._events = events
        group._handle = handle
        return group

    # Objects.

    def send_obj(
        self, obj: Any, dst: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> None:
        """Sends one object to a rank. Objects with the same source, destination and tag arrive in
        order, each once.

        Waits until the server has stored the object; the receiver may ask for it later.

        obj      at most ``limits.value_bytes_max`` bytes when encoded
        errors   RankLeft, OutcomeUnknown (call ``recover``), TooLarge, ResourceExhausted
        cost     one round trip
        """
        return self._handle.send(dst, codec.id, encoded(codec, obj, "send_obj"), tag, timeout)

    def recv_obj(
        self, src: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> Any:
        """The next object of a rank. Waits until the rank has sent it; with a timeout of 0 it does
        not wait.

        A call that fails does not consume the object, except with Expired.

        errors  TimedOut, NotFound (a timeout of 0), Expired, CodecMismatch, SequenceGap,
                CodecFailure
        cost    one round trip; nothing is polled
        """
        return self._then(self._handle.recv(src, codec.id, tag, timeout), receiver(codec, src))

    def recv_numbered_obj(
        self, src: int, *, tag: int = 0, codec: Codec = JSON, timeout: Timeout = None
    ) -> Received:
        """As ``recv_obj``, with the object's number in its stream."""
        return self._then(
            self._handle.recv(src, codec.id, tag, timeout),
            lambda delivery: Received(*accepted(codec, delivery, src)),
        )

    def broadcast_obj(
        self, obj: Any = None, src: int = 0, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> Any:
        """Gives every rank the object of rank ``src``. Collective.

        The source does not wait for the others.

        obj      at rank ``src``; ignored at other ranks
        returns  the source's object, also there
        errors   TimedOut (the source is missing), Expired
        cost     one round trip; the server holds the object until the last rank has it
        """
        given = encoded(codec, obj, "broadcast_obj") if src == self.rank else b""
        return self._then(
            self._handle.broadcast(given, codec.id, src, timeout),
            decoder(codec, "broadcast_obj", src),
        )

    def all_gather_obj(
        self, obj: Any, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> list[Any]:
        """Gathers one object from every rank, on every rank. Collective.

        returns  ``world_size`` objects, element i from rank i
        cost     one round trip; the server holds all objects until the last rank has them
        """
        given = encoded(codec, obj, "all_gather_obj")
        return self._then(
            self._handle.all_gather(given, codec.id, timeout),
            decoder_of_all(codec, "all_gather_obj"),
        )

    def gather_obj(
        self, obj: Any, dst: int = 0, *, codec: Codec = JSON, timeout: Timeout = None
    ) -> list[Any] | None:
        """Gathers one object from every rank at rank ``dst``. Collective.

        returns  at rank ``dst`` ``world_size`` objects; elsewhere None
        """
        given = encoded(codec, obj, "gather_obj")
        decode = decoder_of_all(codec, "gather_obj")
        return self._then(
            self._handle.gather(given, codec.id, dst, timeout),
            lambda gathered: decode(gathered) if dst == self.rank else None,
        )

    def scatter_obj(
        self,
        objs: Iterable[Any] | None = None,
        src: int = 0,
        *,
        codec: Codec = JSON,
        timeout: Timeout = None,
    ) -> Any:
        """Gives rank i element i of the objects of rank ``src``. Collective.

        objs     at rank ``src`` ``world_size`` objects; ignored at other ranks
        errors   InvalidArgument (another number of objects), TimedOut (the source is missing),
                 Expired
        """
        given: list[Any] = []
        if src == self.rank and objs is not None:
            given = [encoded(codec, obj, "scatter_obj") for obj in objs]
        return self._then(
            self._handle.scatter(given, codec.id, src, timeout),
            decoder(codec, "scatter_obj", src),
        )

    def all_reduce_obj(
        self,
        obj: Any,
        combine: Callable[[Any, Any], Any],
        *,
        codec: Codec = JSON,
        timeout: Timeout = None,
    ) -> Any:
        """Combines the objects of all ranks, in the order of ranks, on every rank. Collective.

        combine  of two objects one; all ranks give the same function
        cost     as ``all_gather_obj``
        """
        given = encoded(codec, obj, "all_reduce_obj")
        decode = decoder_of_all(codec, "all_reduce_obj")

        def combined(gathered: list[bytes]) -> Any:
            return reduce(combine, decode(gathered))

        return self._then(self._handle.all_gather(given, codec.id, timeout), combined)

    # The group.

    def barrier(self, *, timeout: Timeout = None) -> list[int]:
        """Waits until all ranks have called it. Collective, in two phases.

        When all ranks have called it, it has succeeded for all; then each rank confirms that it
        knows so. The rank that hosts the server, else rank 0, waits for that, and so may stop the
        server afterwards.

        returns  at that rank: the ranks that did not confirm by the deadline
        cost     one round trip and a one-way frame
        """
        return self._handle.barrier(timeout)

    def interrupt(self, reason: str, *, timeout: Timeout = None) -> None:
        """Ends what the other ranks of this group wait for, with GroupInterrupted; the group goes
        on.

        errors  Busy (another one is pending)
        see     docs/semantics.md "Interruption"
        """
        return self._handle.interrupt(reason, timeout)

    def watch(self, handler: Callable[[MusterError], object]) -> Watch:
        """Calls ``handler`` when something ends this epoch or this handle, or when a rank
        interrupts the group.

        handler  called on a thread of Muster's, with RankLost, RankLeft, GroupInterrupted, Closed,
                 StaleEpoch or why the session has ended; at once if it has happened already
        returns  what to keep: when it is closed or gone, nobody is told any more
        """
        return Watch(self._handle, handler)

    def members(self, *, timeout: Timeout = None) -> list[Member]:
        """The members of this epoch by rank, then the candidates."""
        return self._then(
            self._handle.members(timeout), lambda members: [*map(as_member, members)]
        )

    def expire_data(self, older_than: Timeout = None, *, timeout: Timeout = None) -> int:
        """Drops objects that this rank has sent and nobody has received. Returns how many.

        older_than  the least age; None: the group's expiration
        """
        return self._handle.expire_data(older_than, timeout)

    def regroup(
        self,
        *,
        new_size: int = 0,
        everyone: bool = False,
        min_size: int = 0,
        timeout: Timeout = None,
    ) -> StatelessProcessGroup:
        """Forms the next epoch from the live members and, if asked for, from candidates. All live
        members call it.

        new_size  0: the survivors, renumbered in their old order; else the size, which candidates
                  fill up
        everyone  all who are there when the last live member calls it, also candidates
        min_size  if so many are there at the deadline, they go on, and the missing ones are fenced
        returns   the handle of the new epoch; this one is over
        errors    TimedOut (``ranks`` are missing), Cancelled, RankLost, RankLeft, InvalidArgument,
                  Fenced. After one that is in doubt call it again
        """
        return self._then(
            self._handle.regroup((new_size, everyone, min_size), timeout),
            lambda handle: self._of(handle, self._events),
        )

    def recover(self, *, timeout: Timeout = None) -> Recovered:
        """Asks for the outcome of a collective or send that is in doubt; until then the handle
        refuses collectives."""
        return self._then(self._handle.recover(timeout), Recovered._make)

    def leave(self, *, timeout: Timeout = None) -> None:
        """Leaves the group; collectives of the other ranks end with RankLeft."""
        return self._handle.leave(timeout)

    def close(self, linger: Time = 10.0) -> int:
        """Leaves; the process that hosts the server waits until the others have gone, and stops it.
        Ctrl-C ends the wait alone. Later calls raise Closed; another ``close`` returns 0.

        returns  the number of other sessions that had not ended
        """
        return self._handle.close(linger)

    def cancel(self) -> None:
        """Ends all pending calls of this handle with Cancelled, from any thread."""
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
        """The store that the group is on."""
        return Store._of(self._handle.store())

    def __enter__(self) -> StatelessProcessGroup:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Forked):
            self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._handle.is_closed() else ""
        return shown(self, lambda: f"{self.name!r}: rank {self.rank} of {self.world_size}, "
                                   f"epoch {self.epoch}{closed}")


def as_member(fields: dict[str, Any]) -> Member:
    process = Process(**fields.pop("process"))
    return Member(process=process, **fields)
