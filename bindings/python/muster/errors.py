"""What goes wrong, as exceptions.

Every failed call raises a :class:`MusterError` with all that is known: each code has a class of
its own, such as :class:`RankLost`. Compare classes and fields; ``str(error)`` is one line for
people. docs/errors.md lists which fields each code sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "MusterError", "RankReport", "StreamPosition",
    "Aborted", "AddressInUse", "Busy", "CallbackFailed", "Cancelled", "Closed", "CodecFailure",
    "CodecMismatch", "CollectiveMismatch", "DuplicateDevice", "EnvironmentWrong", "Expired",
    "Fenced", "Forked", "GlooFailed", "GroupClosed", "GroupInterrupted", "GroupMismatch",
    "InternalError", "InvalidArgument", "LibraryMissing", "Mismatch", "NcclFailed", "NoDevice",
    "NotANumber", "NotFound", "NotInitialized", "OutOfRange", "OutcomeUnknown", "PermissionDenied",
    "ProtocolBroken", "RankInUse", "RankLeft", "RankLost", "ResourceExhausted", "SequenceGap",
    "ServerRestarted", "SessionExpired", "StaleEpoch", "Suspended", "TimedOut", "TooLarge",
    "Unavailable", "Unsupported", "WayMissing", "WouldDeadlock",
]

Happened = Literal["", "no", "maybe"]


@dataclass(frozen=True, slots=True)
class RankReport:
    """What an error says about one rank."""

    rank: int
    """-1: no rank, the process that hosts the server."""
    joined: bool
    """False: it never joined, and the other fields are empty."""
    host: str
    pid: int
    label: str
    process: str
    """Its process id, 32 hexadecimal digits, as ``Store.report_dead`` takes it."""
    silence: float | None
    """Seconds from its last byte until the error was made."""
    called: str
    """What it called instead, or the timeout that it gave."""
    cause: str
    """How its loss was noticed: closed, heartbeat, restarted, reported or revoked."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where in a stream a call was."""

    source: int
    destination: int
    tag: int
    sequence: int


class MusterError(Exception):
    """A call has failed. ``code`` is the name in docs/errors.md, such as "timed_out"."""

    code: str = "unknown"
    number: int = 0
    operation: str = ""
    group: str = ""
    epoch: int = 0
    round: int = 0
    stream: StreamPosition | None = None
    elapsed: float = 0.0
    decided_by: str = ""
    decided_by_rank: int = -1
    decided_by_timeout: float = 0.0
    where: str = ""
    ranks: list[RankReport]
    """The first 64 ranks at fault, in full."""
    rank_numbers: list[int]
    """All ranks at fault."""
    cause: str = ""
    expected: int = 0
    actual: int = 0
    limit: int = 0
    happened: Happened = ""
    """Of a call that was to change something: "no", surely not; "maybe", it is in doubt."""
    detail: str = ""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.ranks = []
        self.rank_numbers = []
        self.__dict__.update(fields)

    @property
    def in_doubt(self) -> bool:
        """Whether the call may have changed what it was to change: look before you repeat it."""
        return self.happened == "maybe"

    @property
    def fields(self) -> dict[str, Any]:
        """Everything but the message, as a dict."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), dict(self.__dict__))


def _again(kind: type[MusterError], message: str, fields: dict[str, Any]) -> MusterError:
    return kind(message, **fields)


class InvalidArgument(MusterError, ValueError):
    """An argument breaks its documented rule; nothing was done."""


class TooLarge(MusterError, ValueError):
    """A key, value, list or round is over its limit; nothing was done."""


class NotANumber(MusterError, ValueError):
    """``add`` found a value that is no decimal 64-bit number."""


class OutOfRange(MusterError, OverflowError):
    """``add`` would overflow 64 bits."""


class Unsupported(MusterError):
    """The other side does not know this operation or version."""


class CodecFailure(MusterError, ValueError):
    """The codec refused the object or the bytes."""


class Busy(MusterError):
    """Another call of this kind is pending, or the server is full."""


class WouldDeadlock(MusterError):
    """A blocking call where it would wait for itself."""


class Forked(MusterError):
    """The calling process is a forked child of the owner."""


class NotFound(MusterError, LookupError):
    """Absent, and the call was not to wait."""


class TimedOut(MusterError, TimeoutError):
    """Decided by the server at the deadline; ``ranks`` are missing."""


class Cancelled(MusterError):
    """The call was cancelled; of collectives ``ranks`` says by whom."""


class Closed(MusterError):
    """The store or group was closed by its owner."""


class OutcomeUnknown(MusterError):
    """No answer came by the deadline."""


class ResourceExhausted(MusterError):
    """A named limit is reached, or memory is out."""


class Unavailable(MusterError, ConnectionError):
    """No server answers at the address, or it is stopping."""


class Suspended(MusterError, ConnectionError):
    """Cut off for most of the session timeout; ends on reconnect."""


class SessionExpired(MusterError, ConnectionError):
    """Cut off past the session timeout; ``reopen()`` begins a new session."""


class ServerRestarted(MusterError, ConnectionError):
    """Another incarnation of the server answers; the state of the old one is gone."""


class Fenced(MusterError, ConnectionError):
    """This process was declared dead while alive."""


class ProtocolBroken(MusterError, ConnectionError):
    """The other side broke the protocol, or is no Muster server."""


class AddressInUse(MusterError, OSError):
    """Another program listens on the address."""


class PermissionDenied(MusterError, PermissionError):
    """The caller may not do that."""


class RankLost(MusterError):
    """``ranks`` died; ``cause`` says how the server noticed."""


class RankLeft(MusterError):
    """``ranks`` have left the group."""


class RankInUse(MusterError):
    """A live process holds the rank."""


class GroupMismatch(MusterError):
    """The group forms with other values than this rank's."""


class GroupClosed(MusterError):
    """The group is complete and accepts no more ranks."""


class StaleEpoch(MusterError):
    """The handle belongs to an epoch that is over."""


class CollectiveMismatch(MusterError):
    """Ranks called different collectives in one round."""


class CodecMismatch(MusterError):
    """Sender and receiver use different codecs or types."""


class SequenceGap(MusterError):
    """A stream's counters disagree."""


class Expired(MusterError):
    """The object was older than the group's data expiration."""


class GroupInterrupted(MusterError):
    """``ranks`` have interrupted the group, for the reason in ``detail``."""


class LibraryMissing(MusterError, ImportError):
    """libnccl or libcuda cannot be loaded, or cannot be used."""


class NcclFailed(MusterError):
    """NCCL failed: ``actual`` is its ncclResult_t."""


class Mismatch(MusterError):
    """``ranks`` gave another value than the others; all must be equal."""


class DuplicateDevice(MusterError):
    """``ranks`` share one CUDA device."""


class NoDevice(MusterError):
    """The CUDA driver does not work, or has no such device."""


class Aborted(MusterError):
    """The communicator was aborted."""


class GlooFailed(MusterError):
    """Gloo failed."""


class EnvironmentWrong(MusterError):
    """A variable is missing, wrong, or contradicts another one."""


class NotInitialized(MusterError, RuntimeError):
    """``Runtime.init`` comes first, or has failed."""


class CallbackFailed(MusterError, RuntimeError):
    """A function of the host's own failed at ``ranks``: see ``detail``."""


class WayMissing(MusterError):
    """Tensors cannot go that way in this group."""


class InternalError(MusterError, RuntimeError):
    """A defect of Muster; please report it."""


_CLASSES: dict[str, type[MusterError]] = {
    "invalid_argument": InvalidArgument,
    "too_large": TooLarge,
    "not_a_number": NotANumber,
    "out_of_range": OutOfRange,
    "unsupported": Unsupported,
    "codec_failure": CodecFailure,
    "busy": Busy,
    "would_deadlock": WouldDeadlock,
    "forked": Forked,
    "not_found": NotFound,
    "timed_out": TimedOut,
    "cancelled": Cancelled,
    "closed": Closed,
    "outcome_unknown": OutcomeUnknown,
    "resource_exhausted": ResourceExhausted,
    "unavailable": Unavailable,
    "suspended": Suspended,
    "session_expired": SessionExpired,
    "server_restarted": ServerRestarted,
    "fenced": Fenced,
    "protocol_error": ProtocolBroken,
    "address_in_use": AddressInUse,
    "permission_denied": PermissionDenied,
    "rank_lost": RankLost,
    "rank_left": RankLeft,
    "rank_in_use": RankInUse,
    "group_mismatch": GroupMismatch,
    "group_closed": GroupClosed,
    "stale_epoch": StaleEpoch,
    "collective_mismatch": CollectiveMismatch,
    "codec_mismatch": CodecMismatch,
    "sequence_gap": SequenceGap,
    "expired": Expired,
    "interrupted": GroupInterrupted,
    "library_missing": LibraryMissing,
    "nccl": NcclFailed,
    "mismatch": Mismatch,
    "duplicate_device": DuplicateDevice,
    "no_device": NoDevice,
    "aborted": Aborted,
    "gloo": GlooFailed,
    "environment": EnvironmentWrong,
    "not_initialized": NotInitialized,
    "callback_failed": CallbackFailed,
    "way_missing": WayMissing,
    "internal": InternalError,
}


class _InterpreterEnds(Closed):
    """Refuses a call that an ``atexit`` function makes after Muster's own. muster._core raises it
    without running Python code, so its fields are attributes of the class."""

    __init__ = Exception.__init__  # type: ignore[assignment]
    code = "closed"
    number = 23
    decided_by = "client"
    ranks: list[RankReport] = []
    rank_numbers: list[int] = []
    happened: Happened = "no"
    detail = "the interpreter ends: no call begins any more"


def _from_fields(fields: dict[str, Any]) -> MusterError:
    """The exception of a failed call. For muster._core."""
    message = fields.pop("message")
    kind = _CLASSES.get(fields["code"], MusterError)
    fields["ranks"] = [RankReport(**report) for report in fields["ranks"]]
    if fields["stream"] is not None:
        fields["stream"] = StreamPosition(*fields["stream"])
    return kind(message, **fields)


def _interrupted(raised: BaseException, error: MusterError | None, value: Any) -> BaseException:
    """What is raised where the handler of a signal has raised. For muster._core."""
    if type(raised) is KeyboardInterrupt:
        # Of this very class: Python ends by SIGINT only then.
        told: Any = raised
        told.error = error
        told.value = value
        told.in_doubt = error is not None and error.in_doubt
    elif error is not None and raised.__context__ is None:
        raised.__context__ = error
    if error is not None:
        raised.add_note(f"meanwhile a call of Muster was cancelled: {error}")
    return raised
