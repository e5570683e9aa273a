"""NCCL communicators, for device memory, and the ids with which hosts open theirs themselves.
Neither CUDA nor NCCL is needed to import this: both are loaded when they are first used.
docs/nccl.md tells what holds, and which versions of NCCL it was tried with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from muster import _core
from muster._handles import Handle, handle_of
from muster._keywords import iterable_of, names_keywords, refuse_type
from muster.codecs import BytesLike
from muster.communicator import (
    Communicator, CommunicatorOptions, Reduction, fields_of, scaled_sum,
)
from muster.errors import MusterError
from muster.group import StatelessProcessGroup
from muster.store import Time

__all__ = [
    "Communicator", "Communicators", "Options", "Reduction", "Request", "create", "device",
    "failed_attempts", "forgive_attempts", "give_up", "given_up_handles", "native_handle",
    "release_issuer", "scaled_sum", "unique_id",
]


@names_keywords
@dataclass(frozen=True, kw_only=True)
class Options(CommunicatorOptions):
    """Options of NCCL communicators."""

    mode: Literal["nonblocking", "blocking"] = "nonblocking"
    """Where NCCL works on a call: on a thread of its own; or on the caller's, which takes less of
    the host's time, and where Ctrl-C waits for it."""
    warm_up: bool = True
    """Runs one small collective before ``create`` returns. The same on all ranks."""
    ctas_max: int = 0
    """The most CTAs that NCCL may use for one operation; 0: NCCL decides. The same on all ranks."""
    nccl_library: str = ""
    """The path of libnccl. Empty: the libnccl.so.2 that is loaded already (by torch), else the one
    that the dynamic linker finds."""
    cuda_library: str = ""
    """The path of the driver's libcuda. Empty: libcuda.so.1."""


def create(
    group: StatelessProcessGroup, device: int, options: Options = Options()
) -> Communicator:
    """Makes the communicator of a group's epoch. Collective: all ranks of the group call it, and
    all have it when it returns, or none will.

    device  the CUDA ordinal of this rank's device
    errors  TimedOut (``ranks``: those that did not come), RankLost, RankLeft, LibraryMissing and
            NoDevice (``ranks``: where), DuplicateDevice (``ranks``: those that share one), Mismatch
            (``ranks``: with another NCCL or other options), NcclFailed (``ranks``: where),
            ResourceExhausted (8 attempts of this process have failed: see ``failed_attempts``)
    cost    three round trips and the time that NCCL needs
    see     docs/nccl.md
    """
    fields = fields_of(options, Options, "options")
    handle = _core.nccl_create(handle_of(group), device, fields)
    return Communicator._of(handle, (group, options))


class Request(NamedTuple):
    """One of several communicators that are made at once."""

    group: StatelessProcessGroup
    device: int
    options: Options = Options()


def _checked(request: Any) -> Request:
    if not isinstance(request, Request):
        raise refuse_type(request, "requests", "several muster.nccl.Request")
    return request


class Communicators(Handle):
    """The NCCL communicators of a host, by group, epoch and rank, which keep the order of their
    calls on one device. Aborts all when it is gone."""

    __slots__ = ("_handle", "_kept")
    _instead = "they have connections and memory of this process. Each rank makes its own"

    def __init__(self) -> None:
        self._handle = _core.NcclCommunicators()
        self._kept: list[object] = []  # options, whose events are referred to weakly

    def create(
        self, group: StatelessProcessGroup, device: int, options: Options = Options()
    ) -> Communicator:
        """As ``nccl.create``. This object keeps the communicator."""
        fields = fields_of(options, Options, "options")
        self._kept.append(options)
        handle = self._handle.create(handle_of(group), device, fields)
        return Communicator._of(handle, (group, options))

    def create_all(self, requests: Iterable[Request]) -> list[Communicator | MusterError]:
        """Makes all at once, each on its own thread: groups that overlap in a ring cannot wait for
        each other.

        returns  for each request, in the same order, the communicator or the error
        """
        wanted = [_checked(each) for each in iterable_of(requests, "requests")]
        self._kept.extend(request.options for request in wanted)
        made = self._handle.create_all([
            (handle_of(each.group), each.device, fields_of(each.options, Options, "options"))
            for each in wanted
        ])
        return [
            one if isinstance(one, MusterError) else Communicator._of(one, request)
            for one, request in zip(made, wanted, strict=True)
        ]

    def find(self, group: StatelessProcessGroup) -> Communicator | None:
        """The communicator of the group's current epoch; None: there is none."""
        handle = self._handle.find(handle_of(group))
        return None if handle is None else Communicator._of(handle, (group, self._kept))

    def all(self) -> list[Communicator]:
        """All that are kept, in no order."""
        return [Communicator._of(handle, self._kept) for handle in self._handle.all()]

    def drop(self, group: StatelessProcessGroup) -> None:
        """Forgets the communicator of the group's current epoch. It is aborted when nobody else has
        it."""
        self._handle.drop(handle_of(group))

    def drop_ended(self) -> int:
        """Forgets those that have ended, and returns how many."""
        return self._handle.drop_ended()

    def abort_all(self) -> None:
        """Ends all now, together, without waiting, from any thread."""
        self._handle.abort_all()

    def __len__(self) -> int:
        return self._handle.count()


@names_keywords
def unique_id(
    group: StatelessProcessGroup,
    timeout: Time,
    *,
    id: BytesLike | None = None,
    library: str = "",
) -> bytes:
    """Agrees on the id of one new communicator for the ranks of this epoch. Collective.

    Waits until all ranks have called it. Rank 0 makes the id with libnccl's ncclGetUniqueId, where
    NCCL listens for the ranks until all have used the id, or ``give_up`` was called.

    timeout  of the whole call, above 0
    id       one that was made elsewhere, to use instead
    library  the path of libnccl; empty: the one that is loaded already, or that the linker finds
    returns  the same 128 bytes on every rank: an ncclUniqueId. They let take part in the
             communicator, so give them to members only
    errors   TimedOut (``ranks``: missing), RankLost, LibraryMissing and NcclFailed (``ranks``: 0),
             Mismatch and InvalidArgument (``ranks``: those that gave another id, or zeros)
    cost     two round trips; one if an id is given
    """
    return _core.nccl_unique_id(handle_of(group), timeout, id, library)


def give_up(id: BytesLike) -> bool:
    """Ends an id that nobody will use any more, in the process that made it: NCCL's thread and
    socket end.

    returns  whether it was done
    """
    return _core.nccl_give_up(id)


def device(communicator: Communicator) -> int:
    """The CUDA ordinal of its device. Raises InvalidArgument: it is none of NCCL's."""
    return _core.nccl_device(handle_of(communicator))


def native_handle(communicator: Communicator) -> int:
    """The ncclComm_t, for kernels and graphs that use it on their own, as an address. The host
    stops them before it aborts or closes the communicator.

    errors  InvalidArgument (not with ``on_loss="notify"``: a loss would destroy the handle)
    """
    return _core.nccl_native_handle(handle_of(communicator))


def release_issuer(communicator: Communicator) -> None:
    """From now on another thread may be the one that issues operations to the communicator's
    device: for pools whose tasks run on any thread, at the end of each task.

    errors  WouldDeadlock (another thread has issued since), InvalidArgument
    """
    _core.nccl_release_issuer(handle_of(communicator))


def failed_attempts() -> int:
    """How many attempts of this process to make a communicator have failed inside NCCL, each of
    which leaves a thread and about 1 MB that NCCL does not free. After 8 ``create`` refuses."""
    return _core.nccl_failed_attempts()


def forgive_attempts() -> None:
    """Forgets the attempts that have failed, so that ``create`` tries again."""
    _core.nccl_forgive_attempts()


def given_up_handles() -> int:
    """How many handles were given up because NCCL did not return from their abort."""
    return _core.nccl_given_up_handles()
