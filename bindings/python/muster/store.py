"""Keys and values on a server. Read this module first, then :mod:`muster.group`."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, Union

from muster import _core
from muster._calls import BlockingCalls, Time as Time, Timeout as Timeout, shown
from muster._events import Events, as_logger
from muster._keywords import names_keywords, refuse_type
from muster.codecs import BytesLike
from muster.errors import MusterError
from muster.operate import Operator

__all__ = [
    "Compared", "IoThread", "KeyInfo", "KeyPage", "Limits", "Process", "Store", "Subject",
    "WhoAmI",
]

Key = Union[str, BytesLike]
"""1 to ``limits.key_bytes_max`` bytes; a str is UTF-8."""
AnyKey = TypeVar("AnyKey", bound=Key)
"""The keys of a mapping, which is one of str or one of bytes, and not one of any key."""
Value = Union[str, BytesLike]
Role = Literal["client", "observer", "supervisor"]

Subject = Literal[
    "status", "sessions", "groups", "waiters", "objects", "namespaces", "group", "history",
]
"""What of a server there is to look at."""
SUBJECTS: dict[Subject, int] = {
    "status": 1, "sessions": 2, "groups": 3, "waiters": 4, "objects": 5, "namespaces": 6,
    "group": 7, "history": 9,
}


def number_of(subject: Subject) -> int:
    if not isinstance(subject, str):
        raise refuse_type(subject, "subject", "a str")
    if subject not in SUBJECTS:
        raise ValueError(f"subject: one of {', '.join(SUBJECTS)}; not {subject!r}")
    return SUBJECTS[subject]


IoThread = _core.IoThread
"""A thread that does the input and output of many stores: ``IoThread(name)``."""


class Compared(NamedTuple):
    """The result of ``compare_set``. It is no condition: ask ``applied``."""

    applied: bool
    current: bytes | None
    """If it was not applied: the key's value; None: the key is absent."""


class KeyInfo(NamedTuple):
    key: bytes
    value_bytes: int
    ttl: float | None
    """Seconds left to live; None: until it is removed."""
    bound: bool
    """Whether it goes with the session that has set it."""


class KeyPage(NamedTuple):
    keys: list[KeyInfo]
    cursor: int
    """For the next page; 0: this was the last."""


class Limits(NamedTuple):
    """Limits and times of a server, in bytes and seconds; docs/semantics.md explains each."""

    key_bytes_max: int
    value_bytes_max: int
    round_bytes_max: int
    keys_per_operation_max: int
    world_size_max: int
    heartbeat: float
    session_timeout: float
    grace: float
    slack: float


class Process(NamedTuple):
    """A process, as errors at other processes show it."""

    id: str
    host: str
    pid: int
    label: str


class WhoAmI(NamedTuple):
    """Whom the server takes a store for; see ``muster/inspect.h``."""

    identity: str
    tenant: str
    namespaces: str
    not_after: str
    credential_rights: str
    rights: str


def store_options(
    *,
    namespace: str,
    role: Role,
    label: str,
    timeout: Time,
    wait_for_server: Timeout,
    credential_file: str,
    certificate_file: str,
    certificate_key_file: str,
    authorities_file: str,
    server_name: str,
    io_thread: _core.IoThread | None,
    busy_poll: Time,
    events: Events | None,
    namespace_idle_lifetime: Timeout = None,
    run: str = "",
) -> dict[str, Any]:
    """The options of a store, for muster._core."""
    return {
        "namespace": namespace,
        "namespace_idle_lifetime": namespace_idle_lifetime,
        "run": run,
        "role": role,
        "label": label,
        "timeout": timeout,
        "wait_for_server": wait_for_server,
        "credential_file": credential_file,
        "certificate_file": certificate_file,
        "certificate_key_file": certificate_key_file,
        "authorities_file": authorities_file,
        "server_name": server_name,
        "io_thread": io_thread,
        "busy_poll": busy_poll,
        "logger": as_logger(),
        "events": None if events is None else weakref.ref(events),
    }


@names_keywords
class Store(BlockingCalls):
    """One session with a server, and the connection that carries it.

    Every call blocks until it is done or its timeout has passed, without the GIL; many threads may
    use one store. The timeout covers the whole call. While the connection is down, calls wait for
    the reconnect; the server applies each call once, even if it is sent again. Ctrl-C ends a call
    of the main thread with KeyboardInterrupt, whose ``error``, ``value`` and ``in_doubt`` tell how
    the call has ended. :mod:`muster.aio` has the same for asyncio.

    Errors of every call, beside its own: InvalidArgument, TooLarge, ResourceExhausted, TimedOut,
    Cancelled, Closed, Unavailable, Suspended, OutcomeUnknown, SessionExpired, ServerRestarted,
    Fenced, Forked, ProtocolBroken, WouldDeadlock. ``error.in_doubt`` tells whether a change may
    have happened.

    After ``os.fork`` every call in the child raises Forked; the parent is not affected. The
    session ends with ``close``, as a context manager, or when the store and all groups on it are
    gone.
    """

    __slots__ = ("_events", "_handle", "_is_closed")
    _instead = "it is one process's session. Each process connects its own: muster.Store(address)"

    _is_closed: bool

    def __init__(
        self,
        address: str,
        *,
        namespace: str = "",
        role: Role = "client",
        label: str = "",
        connect_timeout: Time = 30.0,
        timeout: Time = _core.DEFAULTS.timeout,
        wait_for_server: Timeout = None,
        credential_file: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        authorities_file: str = "",
        server_name: str = "",
        io_thread: _core.IoThread | None = None,
        busy_poll: Time = _core.DEFAULTS.busy_poll,
        on_session_end: Callable[[MusterError], object] | None = None,
        namespace_idle_lifetime: Timeout = None,
        run: str = "",
    ) -> None:
        """Connects to a server and begins a session there. Tries again after each failed attempt.

        address          "host:port", "[ipv6]:port", "unix:/path" or "unix:@name"
        connect_timeout  of the whole call: name look-up, all attempts, hello
        timeout          of calls without one
        wait_for_server  how long it tries on while nobody listens; None: until
                         ``connect_timeout``; 0: the first attempt that finds nobody ends it
        on_session_end   called once, on a thread of Muster's, when a session has ended; ``reopen``
                         begins a new one
        namespace_idle_lifetime
                         how long the server keeps the namespace, with its keys, when no session is
                         left in it; 0: it is removed with its last session. The longest time that
                         a session of it has asked for counts, for all keys in it: also those of
                         stores that ask for nothing, and those that were there before. More than
                         a year counts as a year. None: this
                         store asks for nothing; if no other one does, as long as the server says
        run              the name of the run, the same at all of its processes and another one for
                         each run: it waits until another run in the namespace is over, at most a
                         session timeout. ``namespace_idle_lifetime`` None is 0 then
        errors           Unavailable, Busy, Closed (another run goes on, or this one has ended),
                         ProtocolBroken, Unsupported, PermissionDenied, TimedOut, InvalidArgument
        other arguments  as in ``muster::StoreOptions``
        """
        self._is_closed = False
        self._events = None if on_session_end is None else Events(session_ended=on_session_end)
        self._handle: _core.Store = self._core.connect(
            address,
            store_options(
                namespace=namespace, role=role, label=label, timeout=timeout,
                wait_for_server=wait_for_server, credential_file=credential_file,
                certificate_file=certificate_file, certificate_key_file=certificate_key_file,
                authorities_file=authorities_file, server_name=server_name, io_thread=io_thread,
                busy_poll=busy_poll, events=self._events,
                namespace_idle_lifetime=namespace_idle_lifetime, run=run,
            ),
            connect_timeout,
        )

    @classmethod
    def _of(cls, handle: _core.Store) -> Store:
        store = cls.__new__(cls)
        store._events = None
        store._is_closed = False
        store._handle = handle
        return store

    def set(
        self,
        key: Key,
        value: Value,
        *,
        ttl: Timeout = None,
        only_if_absent: bool = False,
        bind_to_session: bool = False,
        timeout: Timeout = None,
    ) -> bool:
        """Sets ``key``, and removes its time to live unless ``ttl`` gives a new one.

        value            0 to ``limits.value_bytes_max`` bytes, without a copy
        bind_to_session  the server removes the key when this session ends
        returns          False if ``only_if_absent`` and the key exists; else True
        cost             one round trip
        """
        return self._handle.set(key, value, (ttl, only_if_absent, bind_to_session), timeout)

    def get(self, key: Key, *, timeout: Timeout = None) -> bytes:
        """The value of ``key``. Waits until it exists; with a timeout of 0 it does not wait.

        errors  TimedOut, NotFound (a timeout of 0)
        cost    one round trip; nothing is polled
        """
        return self._handle.get(key, timeout)

    def take(self, key: Key, *, timeout: Timeout = None) -> bytes:
        """As ``get``, and removes the key. Of several that wait exactly one gets the value. When it
        is interrupted, it gives back a value that has come, unless the key was set again since."""
        return self._handle.take(key, timeout)

    def queue_push(self, key: Key, item: Value, *, timeout: Timeout = None) -> int:
        """Puts ``item`` behind the others in the queue of ``key``, which is beside its value:
        neither knows of the other.

        returns  how many items there are then, before those who wait have popped one
        """
        return self._handle.queue_push(key, item, timeout)

    def queue_pop(self, key: Key, *, timeout: Timeout = None) -> bytes:
        """Removes the first item from the queue of ``key`` and returns it. Waits until there is
        one; with a timeout of 0 it does not wait. Of several that wait exactly one gets the item.
        When it is interrupted, it gives back an item that has come, to its place.

        errors  TimedOut, NotFound (a timeout of 0)
        cost    one round trip; nothing is polled
        """
        return self._handle.queue_pop(key, timeout)

    def queue_length(self, key: Key, *, timeout: Timeout = None) -> int:
        """How many items are in the queue of ``key``."""
        return self._handle.queue_length(key, timeout)

    def add(self, key: Key, delta: int = 1, *, timeout: Timeout = None) -> int:
        """Adds to the value, a signed 64-bit number in decimal digits; a missing key counts as 0.

        returns  the new number
        errors   NotANumber, OutOfRange; the value does not change then
        """
        return self._handle.add(key, delta, timeout)

    def compare_set(
        self,
        key: Key,
        expected: Value | None,
        desired: Value,
        *,
        ttl: Timeout = None,
        timeout: Timeout = None,
    ) -> Compared:
        """Sets ``key`` to ``desired`` if its value is ``expected``; None: if it is absent."""
        return self._then(
            self._handle.compare_set(key, expected, desired, ttl, timeout), Compared._make
        )

    def append(self, key: Key, suffix: Value, *, timeout: Timeout = None) -> int:
        """Appends to the value; a missing key counts as empty. Returns the new length in bytes."""
        return self._handle.append(key, suffix, timeout)

    def touch(self, key: Key, ttl: Timeout, *, timeout: Timeout = None) -> None:
        """Gives the key a new time to live; None: until it is removed. Errors: NotFound."""
        return self._handle.touch(key, ttl, timeout)

    def remove(self, key: Key, *, timeout: Timeout = None) -> bool:
        """Removes the key. Returns whether it existed."""
        return self._handle.remove(key, timeout)

    def exists(self, key: Key, *, timeout: Timeout = None) -> bool:
        """Whether the key exists now."""
        return self._handle.exists(key, timeout)

    def multi_remove(self, keys: Iterable[Key], *, timeout: Timeout = None) -> int:
        """Removes the keys. Returns how many existed."""
        return self._handle.multi_remove(keys, timeout)

    def multi_exists(self, keys: Iterable[Key], *, timeout: Timeout = None) -> list[bool]:
        """Whether each key exists now, in the order of ``keys``."""
        return self._handle.multi_exists(keys, timeout)

    def wait(self, keys: Iterable[Key], *, timeout: Timeout = None) -> None:
        """Waits until all keys exist at the same instant. Errors: TimedOut, NotFound."""
        return self._handle.wait(keys, timeout)

    def multi_get(self, keys: Iterable[Key], *, timeout: Timeout = None) -> list[bytes | None]:
        """The current values, all read at the same instant; None: the key is absent."""
        return self._handle.multi_get(keys, timeout)

    def multi_set(
        self,
        entries: Mapping[AnyKey, Value] | Iterable[tuple[AnyKey, Value]],
        *,
        ttl: Timeout = None,
        timeout: Timeout = None,
    ) -> None:
        """Sets all keys at the same instant, or none."""
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        return self._handle.multi_set(pairs, ttl, timeout)

    def list(self, prefix: Key = b"", cursor: int = 0, *, timeout: Timeout = None) -> KeyPage:
        """One page of the keys that begin with ``prefix``, in no order; a page may be empty and
        not the last.

        cursor  0 for the first page, then that of the page before
        """
        return self._then(
            self._handle.list(prefix, cursor, timeout),
            lambda page: KeyPage([KeyInfo(*info) for info in page[0]], page[1]),
        )

    def keys(self, prefix: Key = b"", *, timeout: Timeout = None) -> Iterator[KeyInfo]:
        """All keys that begin with ``prefix``, page by page. A key that exists all the time comes
        once."""
        cursor = 0
        while True:
            page = self.list(prefix, cursor, timeout=timeout)
            yield from page.keys
            cursor = page.cursor
            if cursor == 0:
                return

    def report_dead(self, process: str, reason: str, *, timeout: Timeout = None) -> None:
        """Ends the sessions of a process that has died, at once. Needs the role "supervisor".

        process  32 hexadecimal digits, as ``Store.process.id`` and errors have it
        errors   NotFound (it has no session), PermissionDenied
        """
        return self._handle.report_dead(process, reason, timeout)

    def drop_namespace(self, name: str, *, timeout: Timeout = None) -> int:
        """Removes a namespace that nobody is in, with its keys. Needs the role "supervisor".

        returns  how many keys it had
        errors   NotFound, Busy (somebody is in it), PermissionDenied, InvalidArgument (the store's
                 own)
        """
        return self._handle.drop_namespace(name, timeout)

    def status(self, *, timeout: Timeout = None) -> dict[str, str]:
        """The server's state as names and values, see docs/operations.md."""
        return self._handle.status(timeout)

    def whoami(self, *, timeout: Timeout = None) -> WhoAmI:
        """Whom the server takes this store for, and what it may."""
        return self._then(self._handle.whoami(timeout), lambda fields: WhoAmI(**fields))

    def inspect(self, subject: Subject, name: str = "", *, timeout: Timeout = None) -> Any:
        """What the server knows, as ``musterctl --json`` prints it: lists and dicts.

        subject  "group": who is in one, who is missing, and who waits for whom. "history": what
                 happened to groups, also to those that are over
        name     of the group; of "objects": the beginning of their paths; of "history": of one
                 group, or "": all
        returns  docs/c.md lists the fields
        errors   NotFound (no such group)
        cost     a round trip for each page of a list
        """
        number = number_of(subject)
        return self._then(self._core.inspect(self._handle, number, name, timeout), json.loads)

    @property
    def operate(self) -> Operator:
        """What operators change on the server: its settings, the end of sessions, its own end."""
        return Operator(self._handle)

    def cancel(self) -> None:
        """Ends all pending calls of this store with Cancelled, from any thread."""
        self._handle.cancel()

    def close(self) -> None:
        """Ends the session; pending and later calls end with Closed. Takes at most 100 ms. It may
        be called again."""
        self._handle.close()
        self._is_closed = True

    def reopen(self, *, timeout: Timeout = None) -> None:
        """Begins a new session after SessionExpired, Fenced or ServerRestarted."""
        return self._handle.reopen(timeout)

    @property
    def limits(self) -> Limits:
        """The server's limits, from its last hello."""
        return Limits(**self._handle.limits())

    @property
    def address(self) -> str:
        return self._handle.address()

    @property
    def process(self) -> Process:
        """This process, as errors at other processes show it."""
        return Process(**self._handle.process())

    @property
    def incarnation(self) -> int:
        """The server's, from its last hello: a number that changes when it restarts."""
        return self._handle.incarnation()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return shown(self, lambda: f"at {self.address}{', closed' * self._is_closed}")
