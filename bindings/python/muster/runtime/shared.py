"""What ranks share through memory of their host, or through a folder: states of a configuration and
tensors in host memory. docs/runtime.md "What ranks share" tells what is promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from muster import _core
from muster._handles import Handle
from muster._keywords import names_keywords, refuse_type
from muster.codecs import BytesLike
from muster.errors import MusterError
from muster.runtime._ranks import ranks_of
from muster.runtime.job import RankGroup, Runtime
from muster.runtime.turns import told_text
from muster.store import Time, Timeout

__all__ = ["State", "SharedWorkspace", "gathered_states", "gathered_tensors"]


class State(NamedTuple):
    """A configuration and tensors with names, whose order is kept."""

    config: BytesLike | str = b""
    """Any bytes, such as JSON; of a state that was read: bytes."""
    tensors: Mapping[str, Any] = {}


@names_keywords
class SharedWorkspace(Handle):
    """A folder that all ranks see, in which each rank leaves its state for the others. The names of
    files tell the rank alone: the folder is that of one job.

    A reader gets a state as it was written, or an error, also on NFS. Runs that use one folder
    again tell their states apart by the generation.

    Errors of all: NotInitialized (there is no folder), PermissionDenied, ResourceExhausted (the
    disk or the memory is full), InvalidArgument (the folder cannot be used), Unavailable (the file
    system failed).
    """

    __slots__ = ("_handle",)
    _instead = "it writes for one rank. Each process makes its own: SharedWorkspace(folder, rank)"

    def __init__(self, folder: str | None, rank: int) -> None:
        """Touches no file.

        folder  None: every call is an error
        rank    of this process; it alone writes the file of this rank
        """
        self._handle = _core.SharedWorkspace(folder, rank)

    @property
    def is_initialized(self) -> bool:
        """Whether there is a folder."""
        return self._handle.is_initialized()

    def write(
        self, generation: int, config: BytesLike | str = b"", tensors: Mapping[str, Any] = {}
    ) -> None:
        """Writes this rank's state in place of its last one. Makes the folder, if it is missing.
        Waits until the state is on the disk, or at the server of the folder.

        generation  such as a step; greater than in earlier runs in this folder
        """
        self._handle.write(generation, (config, tensors))

    def read(
        self,
        rank: int,
        *,
        generation_min: int = 0,
        generation_max: int | None = None,
        timeout: Time = 0.0,
    ) -> State:
        """Reads the state of a rank, also of this one.

        timeout  how long to wait for the file; 0: not at all
        errors   NotFound (there is none of these generations, or not in time), CodecFailure
                 (``ranks``: whose file is cut or damaged)
        """
        return State(*self._handle.read(rank, generation_min, generation_max, timeout))

    def remove(self) -> None:
        """Removes this rank's file, if there is one."""
        self._handle.remove()

    def path_of(self, rank: int) -> str:
        """Of a rank's file; empty: there is no folder."""
        return self._handle.path_of(rank)


def _options(
    group_ranks: Sequence[int],
    folder: str,
    equal_tensors: bool,
    timeout: Timeout,
    body_timeout: Time,
) -> dict[str, Any]:
    return {
        "group_ranks": group_ranks, "folder": folder, "equal_tensors": equal_tensors,
        "timeout": timeout, "body_timeout": body_timeout,
    }


@contextmanager
def _scope(gathering: _core.Gathering) -> Iterator[_core.Gathering]:
    try:
        yield gathering
    except BaseException as error:
        try:
            gathering.end(told_text(error))
        except MusterError:
            pass  # the body's own exception says it
        raise
    gathering.end(None)


@names_keywords
@contextmanager
def gathered_tensors(
    ranks: Runtime | RankGroup,
    tensor: Any,
    *,
    group_ranks: Sequence[int] = (),
    folder: str = "",
    equal_tensors: bool = True,
    timeout: Timeout = None,
    body_timeout: Time = _core.DEFAULTS.body_timeout,
) -> Iterator[list[_core.Tensor]]:
    """A scope in which one rank has one tensor in host memory of each of several ranks. All ranks
    of the group enter it, in the same order as other collectives on it.

    group_ranks    those that give one, by the group's ranks: the first one gets all, in this order;
                   none: all
    folder         that these ranks see; empty: through the memory of their host (/dev/shm)
    equal_tensors  another shape or dtype than the first one's is an error
    timeout        of each exchange before the body
    body_timeout   how long ranks wait for each other's body
    gives          on the first of the ranks its own tensor and, read-only, the others'; elsewhere
                   an empty list. The memory is there as long as these are
    errors         on all ranks, before any body runs: InvalidArgument (``ranks``: whose tensor
                   cannot be, or who shares no memory with the first one), Mismatch,
                   ResourceExhausted, PermissionDenied, Unavailable, CodecFailure; after the bodies:
                   CallbackFailed (``ranks``: whose body has failed), RankLost, TimedOut
    """
    options = _options(group_ranks, folder, equal_tensors, timeout, body_timeout)
    with _scope(_core.gather_tensors(ranks_of(ranks), tensor, options)) as gathering:
        yield gathering.tensors()


@names_keywords
@contextmanager
def gathered_states(
    ranks: Runtime | RankGroup,
    state: State | None,
    *,
    group_ranks: Sequence[int] = (),
    folder: str = "",
    timeout: Timeout = None,
    body_timeout: Time = _core.DEFAULTS.body_timeout,
) -> Iterator[list[State | None]]:
    """The same of states; a rank that gives None has its place in the list all the same."""
    options = _options(group_ranks, folder, True, timeout, body_timeout)
    if not isinstance(state, (State, type(None))):
        raise refuse_type(state, "state", "a muster.runtime.State or None")
    given = None if state is None else (state.config, state.tensors)
    with _scope(_core.gather_states(ranks_of(ranks), given, options)) as gathering:
        yield [None if each is None else State(*each) for each in gathering.states()]
