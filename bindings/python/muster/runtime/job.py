"""How a process of a job begins and ends, and the groups of its ranks. Read this module first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn

from muster import _core, gloo, nccl
from muster._handles import Handle, handle_of
from muster._keywords import names_keywords, refuse_type
from muster.codecs import JSON, BytesLike, Codec
from muster.communicator import Communicator, fields_of
from muster.errors import Forked, MusterError
from muster.group import StatelessProcessGroup, group_events, group_options
from muster.runtime.environment import Environment, FoundNumber, JobNumber, Rule
from muster.runtime.turns import Progress, Turn, run_on_rank_zero
from muster.store import Process, Store, Time, Timeout, store_options

__all__ = ["JobPlace", "Mesh", "RankGroup", "Runtime"]

NcclOptions, GlooOptions = nccl.Options, gloo.Options


class JobPlace(NamedTuple):
    """Where a process of the job is, as all of them know it."""

    rank: int
    local_rank: int
    """Among those on its node."""
    local_world_size: int
    node_rank: int
    process: Process


def as_places(places: Sequence[tuple[int, int, int, int, dict[str, Any]]]) -> list[JobPlace]:
    return [JobPlace(*place[:4], Process(**place[4])) for place in places]


class Mesh:
    """Ranks in a grid, such as data x pipeline x tensor. Nothing is sent: each rank makes its own.

    The last dimension varies fastest: of ``{"data": 2, "tensor": 3}`` the ranks 0, 1, 2 are along
    "tensor", and 0, 3 along "data".
    """

    __slots__ = ("__weakref__", "_handle")

    def __init__(self, dimensions: Mapping[str, int], ranks: Sequence[int] = ()) -> None:
        """dimensions  names and sizes, in the order of the grid
        ranks       in the order of the grid; none: 0, 1, 2, ...
        errors      InvalidArgument
        """
        self._handle = _core.Mesh(dimensions, ranks)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.dimensions, self.ranks)

    @property
    def dimensions(self) -> dict[str, int]:
        return dict(self._handle.dimensions())

    @property
    def ranks(self) -> list[int]:
        return self._handle.ranks()

    def coordinates(self, rank: int) -> list[int] | None:
        """Where a rank is, one index for each dimension; None: it is not in the mesh."""
        return self._handle.coordinates(rank)

    def ranks_along(self, dimension: str, rank: int) -> list[int]:
        """The ranks that differ from ``rank`` in this dimension alone, with itself."""
        return self._handle.ranks_along(dimension, rank)


@names_keywords
class _Turns(Handle):
    """Work in turn among ranks. See :mod:`muster.runtime.turns`."""

    __slots__ = ()

    @property
    def _ranks(self) -> _core.RankGroup:
        raise NotImplementedError

    @property
    def _is_rank_zero(self) -> bool:
        group = self._ranks.group()
        return group is None or group.rank() == 0

    def on_rank_zero(
        self,
        work: Callable[[Progress], Any],
        *,
        codec: Codec = JSON,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
    ) -> Any:
        """Runs the work on rank 0 alone, and gives all ranks what it gives, as the codec decodes
        it: also rank 0 gets a list of a tuple.

        work         called with a function that tells of progress
        silence_max  the others give up when they have heard nothing for so many seconds
        limit        they give up after so many, whatever they have heard
        """
        return run_on_rank_zero(self._ranks, work, codec, silence_max, limit)

    def rank_zero(
        self,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
    ) -> Turn:
        """A scope whose body runs on rank 0 first, then on all others: ``turn.is_rank_zero`` says
        where it is. If it fails on rank 0, the others' bodies do not begin."""
        return Turn(_core.rank_zero(self._ranks, (silence_max, limit)), self._is_rank_zero)

    def n_at_a_time(
        self,
        count: int = 0,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
    ) -> Turn:
        """A scope whose body runs on no more than ``count`` ranks at a time (0: as
        many as there are nodes). It ends when the
        bodies of all ranks have ended, with CallbackFailed if one has failed."""
        return Turn(
            _core.n_at_a_time(self._ranks, count, (silence_max, limit)), self._is_rank_zero
        )

    def local_rank_zero_first(
        self,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
    ) -> Turn:
        """A scope whose body runs on one rank of each node first, then on the other ranks of that
        node: for what the first one leaves there for the others, such as a download. If it fails
        there, the others' bodies do not begin."""
        return Turn(
            _core.local_rank_zero_first(self._ranks, (silence_max, limit)), self._is_rank_zero
        )

    def fs_local_rank_zero_first(
        self,
        *,
        silence_max: Time = _core.DEFAULTS.silence_max,
        limit: Time = _core.DEFAULTS.limit,
    ) -> Turn:
        """The same for ranks that share a file system: those of the whole job if OLMO_SHARED_FS or
        MUSTER_SHARED_FS is 1 on all ranks, else those of a node."""
        return Turn(
            _core.fs_local_rank_zero_first(self._ranks, (silence_max, limit)), self._is_rank_zero
        )

    def node_signal_file_name(self, *, timeout: Timeout = None) -> str:
        """A name for a file by which the ranks of one node signal each other: the same on all
        ranks of a node, another one on each node and at each call. Collective."""
        return _core.node_signal_file_name(self._ranks, timeout)


@names_keywords
class RankGroup(_Turns):
    """Ranks of the job that work together: the world, or some of it.

    The group leaves, and its communicators are aborted, when this is gone; the world is gone with
    ``Runtime.shutdown``.
    """

    __slots__ = ("_handle", "_kept")
    _instead = "it is one process's rank. Each process has its own, of its Runtime"

    def __init__(
        self,
        group: StatelessProcessGroup,
        environment: Environment | None = None,
        *,
        timeout: Timeout = None,
    ) -> None:
        """Of a group that was not made by a Runtime: its ranks tell each other where they are.
        Collective.

        group   goes on as a part of this; if the call fails, it has left
        errors  Mismatch (``ranks``: those that were told something else than the others),
                EnvironmentWrong, those of a collective
        """
        told = Environment() if environment is None else environment
        joined = handle_of(group)
        self._kept: Any = getattr(group, "_events", None)
        self._handle = _core.ranks_of_group(joined, handle_of(told), timeout)
        moved = self._handle.group()
        assert moved is not None
        group._handle = moved

    @classmethod
    def _of(cls, handle: _core.RankGroup, kept: Any) -> RankGroup:
        ranks = cls.__new__(cls)
        ranks._handle = handle
        ranks._kept = kept
        return ranks

    @property
    def _ranks(self) -> _core.RankGroup:
        return self._handle

    @property
    def group(self) -> StatelessProcessGroup | None:
        """For objects and barriers; None: it is of no ranks."""
        handle = self._handle.group()
        return None if handle is None else StatelessProcessGroup._of(handle, self._kept)

    @property
    def world_ranks(self) -> list[int]:
        """The world's rank of each rank of this group."""
        return self._handle.world_ranks()

    @property
    def places(self) -> list[JobPlace]:
        """Where each rank of this group is: in the world, and on its node."""
        return as_places(self._handle.places())

    def rank_of(self, world_rank: int) -> int | None:
        """This group's rank of a rank of the world; None: it is not in this group."""
        return self._handle.rank_of(world_rank)

    def communicator(self, device: Literal["cpu", "cuda"]) -> Communicator | None:
        """The communicator for a kind of device; None: none was asked for."""
        handle = self._handle.communicator(device)
        return None if handle is None else Communicator._of(handle, self._kept)


@names_keywords
class Runtime(_Turns):
    """This process's part in a job. Nothing is global to the process: several may be in one.

    As a context manager it is shut down at the end of a body that has ended well. An exception
    leaves the job as it is: the others learn of it when the process ends, or by ``abort``.

    Any thread may ask; of other calls one at a time.
    """

    __slots__ = ("_handle", "_is_shut_down", "_kept")
    _instead = "it is one process's part in a job. Each process makes its own: Runtime()"

    def __init__(self, environment: Environment | Mapping[str, str] | None = None) -> None:
        """environment  None: that of this process"""
        self._handle = _core.Runtime(Environment._given(environment)._handle)
        self._is_shut_down = False
        self._kept: Any = None

    def init(
        self,
        *,
        store: str = "",
        host: str = "",
        host_at_master_address: bool = False,
        communicators: str = "",
        device: int | None = None,
        nccl: nccl.Options | None = None,
        gloo: gloo.Options | None = None,
        timeout: Time = _core.DEFAULTS.group_timeout,
        name: str = "",
        info: BytesLike | str = b"",
        data_expiration: Time = _core.DEFAULTS.data_expiration,
        other_tenants: Sequence[str] = (),
        on_loss: Callable[[MusterError], object] | None = None,
        on_leave: Callable[[MusterError], object] | None = None,
        host_server: Literal["automatic", "always", "never"] = "automatic",
        allow_unauthenticated: bool = False,
        listening_socket: int = -1,
        namespace: str = "",
        label: str = "",
        credential_file: str = "",
        certificate_file: str = "",
        certificate_key_file: str = "",
        authorities_file: str = "",
        server_name: str = "",
        io_thread: _core.IoThread | None = None,
    ) -> None:
        """Meets the other processes of the job: connects to the server (or hosts it), forms the
        world, checks that what the ranks were told of their nodes fits together, makes the
        communicators, and passes a barrier. Logs one line for each node.

        A single process needs no address. A second call with equal options does nothing.

        store            the address of a server that runs already; empty: that of MUSTER_STORE
        host             if no server is named: where rank 0 hosts one, "host:port" or "unix:/path"
        host_at_master_address  the same at MASTER_ADDR and MASTER_PORT, which belong to torch
        communicators    of the world, by device, such as "cpu:gloo,cuda:nccl"; "gloo"; "nccl"
        device           the ordinal of this rank's CUDA device; None: its local rank
        timeout          of this call, and of calls on the world without one
        name, namespace  empty: "world", and that of MUSTER_NAMESPACE
        other arguments  as of ``StatelessProcessGroup.create``
        errors           EnvironmentWrong (a variable is missing, wrong or contradicts another one,
                         or no server is named), Mismatch (``ranks``: those that were told
                         something else than the others), InvalidArgument, TimedOut (``ranks`` are
                         missing), those of ``StatelessProcessGroup.create`` and of communicators
        see              docs/runtime.md "How a job begins"
        """
        events = group_events(on_loss, on_leave)
        of_group = group_options(
            data_expiration=data_expiration, timeout=timeout, standby=False, info=info,
            other_tenants=other_tenants, events=events,
        )
        of_group |= {
            "name": name,
            "host_server": host_server,
            "allow_unauthenticated": allow_unauthenticated,
            "listening_socket": listening_socket,
        }
        options = {
            "store": store,
            "host": host,
            "host_at_master_address": host_at_master_address,
            "communicators": communicators,
            "device": device,
            "nccl": None if nccl is None else fields_of(nccl, NcclOptions, "nccl"),
            "gloo": None if gloo is None else fields_of(gloo, GlooOptions, "gloo"),
            "group": of_group,
            "of_store": store_options(
                namespace=namespace, role="client", label=label, timeout=timeout,
                wait_for_server=None, credential_file=credential_file,
                certificate_file=certificate_file, certificate_key_file=certificate_key_file,
                authorities_file=authorities_file, server_name=server_name, io_thread=io_thread,
                busy_poll=0.0, events=None,
            ),
        }
        self._kept = (self._kept, events, nccl, gloo)  # referred to weakly there
        self._handle.init(options)

    @property
    def is_initialized(self) -> bool:
        return self._handle.is_initialized()

    @property
    def environment(self) -> Environment:
        return Environment._of(self._handle.environment())

    def number(self, number: JobNumber, rule: Rule = "environment_first") -> FoundNumber:
        """A number of this process: after ``init`` that of the world, before as the rule says."""
        return FoundNumber(*self._handle.number(number, rule))

    # Of the world. Before init: rank 0 of 1, as a single process.

    @property
    def rank(self) -> int:
        return self._handle.rank()

    @property
    def world_size(self) -> int:
        return self._handle.world_size()

    @property
    def local_rank(self) -> int:
        return self._handle.local_rank()

    @property
    def local_world_size(self) -> int:
        return self._handle.local_world_size()

    @property
    def node_rank(self) -> int:
        return self._handle.node_rank()

    @property
    def node_count(self) -> int:
        return self._handle.node_count()

    @property
    def places(self) -> list[JobPlace]:
        """Where each rank is; empty before ``init``."""
        return as_places(self._handle.places())

    @property
    def world(self) -> RankGroup:
        """All ranks; before ``init`` of none. Gone after ``shutdown``."""
        return RankGroup._of(self._handle.world(), self._kept)

    @property
    def _ranks(self) -> _core.RankGroup:
        return self._handle.world()

    @property
    def group(self) -> StatelessProcessGroup:
        """The world's group, for objects and barriers. Raises NotInitialized before ``init``."""
        return StatelessProcessGroup._of(_core.group_of(self._ranks), self._kept)

    @property
    def store(self) -> Store | None:
        """The store that the world is on; None before ``init``."""
        handle = self._handle.store()
        return None if handle is None else Store._of(handle)

    def subgroup(
        self,
        ranks: Sequence[int] | Mesh,
        dimension: str = "",
        *,
        name: str = "",
        communicators: str = "",
        timeout: Timeout = None,
    ) -> RankGroup:
        """Forms a group of some ranks of the world. Only these ranks call it, and it waits for all
        of them. Each calls it as often as the others: every call makes another group.

        ranks      in the order of their ranks in the new group, with this process's own; or a mesh
        dimension  of a mesh: the group of the ranks along it
        name       tells groups of the same ranks apart; the same on all of its members
        errors     InvalidArgument, those of joining a group and of communicators
        """
        if isinstance(ranks, Mesh):
            handle = self._handle.subgroup_along(
                ranks._handle, dimension, name, communicators, timeout)
        else:
            if not isinstance(dimension, str):
                raise refuse_type(dimension, "dimension", "a str")
            if dimension:
                raise ValueError(f"dimension: only of a mesh, not of ranks: {dimension!r}")
            handle = self._handle.subgroup(ranks, name, communicators, timeout)
        return RankGroup._of(handle, self._kept)

    def shutdown(self, *, timeout: Time = 60.0) -> None:
        """Ends this process's part in order: waits for the others, ends the communicators, leaves
        (in any case). What was of the world raises Closed afterwards. It may be called again.

        errors  TimedOut (``ranks`` are missing), RankLost, RankLeft, NotInitialized (before
                ``init``)
        """
        if self._is_shut_down and not self.is_initialized:
            return
        self._is_shut_down = self.is_initialized
        self._handle.shutdown(timeout)

    def abort(self, code: int, reason: str) -> NoReturn:
        """Ends this process, for a failure after which the job cannot go on: tells the others why,
        so that what they wait for raises GroupInterrupted with the reason, aborts the
        communicators, and calls ``os._exit``: no ``finally`` and no handler of atexit runs. Takes
        at most two seconds.

        code  the exit status
        """
        self._handle.abort(code, reason)
        raise AssertionError("the process has ended")

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self.is_initialized:
            with contextlib.suppress(Forked):
                self.shutdown()

    def __repr__(self) -> str:
        end = ", shut down" if self._is_shut_down and not self.is_initialized else ""
        return (
            f"<muster.runtime.Runtime: rank {self.rank} of {self.world_size}, local rank "
            f"{self.local_rank} on node {self.node_rank}{end}>"
        )
