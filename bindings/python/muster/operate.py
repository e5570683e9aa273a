"""What a running server is told to change, as ``musterctl config``, ``kill`` and ``drain`` do."""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Union

from muster import _core
from muster._calls import BlockingCalls, Timeout
from muster._keywords import names_keywords, refuse_type

__all__ = ["Operator", "Setting", "SettingKind", "SettingValue"]

SettingKind = Literal["number", "bytes", "duration", "level"]
KINDS: tuple[SettingKind, ...] = ("number", "bytes", "duration", "level")
LEVELS = ("debug", "info", "warning", "error", "silent")
SettingValue = Union[int, float, str]
"""Of a duration the seconds, of a level its name."""
RAW_MAX = 2**64 - 1


class Setting(NamedTuple):
    """A setting of a server."""

    name: str
    """As the flags of musterd: "memory-bytes-max"."""
    kind: SettingKind
    value: SettingValue
    least: SettingValue
    """That it may be set to; so is ``most``."""
    most: SettingValue
    used: int | None
    """Of what it limits; None: that is not one number."""
    fixed_because: str
    """Why it changes with a restart only; empty: it changes."""

    @property
    def changes(self) -> bool:
        """Whether it changes while the server runs."""
        return not self.fixed_because


def setting_of(raw: Sequence[Any]) -> Setting:
    """Of what muster._core gives."""
    name, number, value, least, most, used, fixed_because = raw
    kind = KINDS[number]

    def shown(value: int) -> SettingValue:
        if kind == "level":
            return LEVELS[min(value, len(LEVELS) - 1)]
        return value / 1e6 if kind == "duration" else value

    return Setting(name, kind, shown(value), shown(least), shown(most), used, fixed_because)


def raw_value(setting: Setting, value: SettingValue | timedelta) -> int:
    """The value of a setting as the server takes it.

    errors  TypeError, ValueError: the setting has no such value
    """
    if setting.kind == "level":
        if not isinstance(value, str):
            raise refuse_type(value, f"value of {setting.name}", "a str")
        if value not in LEVELS:
            raise ValueError(f"value of {setting.name}: one of {', '.join(LEVELS)}; not {value!r}")
        return LEVELS.index(value)
    if setting.kind == "duration":
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(seconds, (bool, str)) or not hasattr(type(seconds), "__float__"):
            raise refuse_type(value, f"value of {setting.name}", "seconds, or a timedelta")
        seconds = float(seconds)
        if not 0 <= seconds <= RAW_MAX / 2e6:
            raise ValueError(f"value of {setting.name}: there is no such time: {value!r}")
        return round(seconds * 1e6)
    if not hasattr(type(value), "__index__") or isinstance(value, bool):
        raise refuse_type(value, f"value of {setting.name}", "a whole number")
    number = operator.index(value)  # type: ignore[arg-type]
    if not 0 <= number <= RAW_MAX:
        raise ValueError(f"value of {setting.name}: there is no such number: {value!r}")
    return number


def time_left(timeout: Timeout, began: float) -> Timeout:
    """Of a call in two steps that began then, by time.monotonic; at least 1 ms."""
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    return max(seconds - (time.monotonic() - began), 0.001)


@names_keywords
class Operator(BlockingCalls):
    """What an operator does with a server: ``store.operate``.

    To change something, the store needs the role "supervisor"; for settings and drains also the
    right "admin", where the server asks who comes. Errors of every call, beside its own: those of
    :class:`muster.Store`.
    """

    __slots__ = ("_handle",)
    _instead = "it belongs to a store of this process. Use the store.operate of each process"

    def __init__(self, handle: _core.Store) -> None:
        self._handle = handle

    def settings(self, name: str = "", *, timeout: Timeout = None) -> list[Setting]:
        """The server's settings, those that change while it runs first.

        name    of the only one that is meant; "": all
        errors  NotFound (there is no setting of that name), PermissionDenied (its credential has
                not the right "observe")
        cost    one round trip
        """
        return self._then(
            self._handle.settings(name, timeout), lambda all_raw: [*map(setting_of, all_raw)]
        )

    def set_setting(
        self, name: str, value: SettingValue | timedelta, *, timeout: Timeout = None
    ) -> Setting:
        """Changes a setting at once, until the server ends. A limit that is below what is used
        takes nothing away: what it limits is refused until less is used.

        value    of a duration the seconds, or a timedelta; of a level its name; else a number
        returns  the setting as it is then
        errors   NotFound, InvalidArgument (out of range, or it changes with a restart
                 only), PermissionDenied; TypeError, ValueError (it has no such value)
        cost     two round trips: the first asks for its kind
        """
        began = time.monotonic()
        (setting,) = self.settings(name, timeout=timeout)
        raw = raw_value(setting, value)
        return setting_of(self._handle.set_setting(name, raw, time_left(timeout, began)))

    def end_session(self, session: int, reason: str, *, timeout: Timeout = None) -> None:
        """Ends a session of the store's namespace at once. Its groups lose its ranks; its client's
        next call fails with Fenced. Its process may begin another one.

        session  its number, of ``store.inspect("sessions")``
        reason   text for people; its client is told
        errors   NotFound, InvalidArgument (it is the store's own), PermissionDenied
        """
        return self._then(
            self._handle.end_session(session, reason, timeout), lambda _count: None
        )

    def end_sessions_of(self, process: str, reason: str, *, timeout: Timeout = None) -> int:
        """The same, of all sessions that a process has in the store's namespace.

        process  32 hexadecimal digits, as ``Store.process.id`` and errors have it
        returns  how many those were
        """
        return self._handle.end_sessions_of(process, reason, timeout)

    def drain(
        self, time_max: Timeout = None, reason: str = "", *, timeout: Timeout = None
    ) -> int:
        """Lets no client begin a session any more: it is told Unavailable with the reason. Those
        who are there go on. When the last one has ended its session, or ``time_max`` is over,
        ``musterd`` tells those who are left and ends. Asked again, the newer time and reason hold.

        time_max  None: it waits for everybody, this store included
        reason    text for people
        returns   the sessions of others that are there, without observers
        errors    PermissionDenied
        """
        return self._handle.drain(time_max, reason, timeout)

    def cancel_drain(self, *, timeout: Timeout = None) -> None:
        """Lets clients in again, if the server has not ended yet.

        errors  NotFound (it is not being drained), PermissionDenied
        """
        return self._handle.cancel_drain(timeout)
