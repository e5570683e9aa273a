"""What a process is told about its job by whoever has started it: torchrun, composer, Slurm, Open
MPI, Kubernetes, musterrun, or a person. docs/runtime.md has the variables of each number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypedDict

from muster import _core
from muster._handles import Handle

__all__ = ["Environment", "FormedGroup", "FoundNumber", "JobNumber", "Rule"]

JobNumber = Literal[
    "world_size", "rank", "local_world_size", "local_rank", "node_count", "node_rank",
    "replica_rank", "fs_local_rank",
]
Rule = Literal["environment_first", "group_first"]
"""What counts: the environment, as for composer and Databricks; or the group that was formed, as
for OLMo-core, where a process is alone before."""


class FoundNumber(NamedTuple):
    """A number, and who says it."""

    value: int
    source: str
    """The variables that it comes from, such as "LOCAL_RANK"; "group": the group that was formed;
    empty: nobody says it, so it is that of a single process."""
    is_computed: bool
    """No variable says the number itself: it follows from others."""


class FormedGroup(TypedDict, total=False):
    """What is known of a group that was formed; ``rank`` and ``world_size`` are there."""

    rank: int
    world_size: int
    local_world_size: int
    local_rank: int
    node_count: int
    node_rank: int


class Environment(Handle):
    """The variables of a process, read once: later changes do not count.

    Errors of what returns a number: EnvironmentWrong (a variable is no number, is missing, or
    contradicts another one; ``detail`` names each with its value).
    """

    __slots__ = ("_handle",)
    _instead = "it is what one process was told. Each process reads its own: Environment()"

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        """variables  None: those of this process, as they are now"""
        self._handle = _core.Environment(variables, "variables")

    @classmethod
    def _of(cls, handle: _core.Environment) -> Environment:
        environment = cls.__new__(cls)
        environment._handle = handle
        return environment

    @classmethod
    def _given(cls, environment: Environment | Mapping[str, str] | None) -> Environment:
        """Of an argument of that name."""
        if isinstance(environment, Environment):
            return environment
        return cls._of(_core.Environment(environment, "environment"))

    def find(self, number: JobNumber) -> FoundNumber | None:
        """The number, if a variable says it, or others say what it must be; else None."""
        found = self._handle.find(number)
        return None if found is None else FoundNumber(*found)

    def number(
        self, number: JobNumber, rule: Rule = "environment_first", formed: FormedGroup | None = None
    ) -> FoundNumber:
        """The number by a rule; that of a single process (sizes 1, ranks 0) where nobody says it.

        formed  the group that was formed; None: none yet
        """
        return FoundNumber(*self._handle.number(number, rule, formed))

    @property
    def is_single_process(self) -> bool:
        """Whether this is the only process of its job: nothing says otherwise."""
        return self._handle.is_single_process()

    def validate(self, how: Literal["complete", "contradictions"] = "complete") -> None:
        """Raises EnvironmentWrong unless all that is there can be read and fits together.

        how  "complete": also, a job of several processes says where each of them is
        """
        self._handle.validate(how)

    @property
    def host_name(self) -> str:
        """BEAKER_NODE_HOSTNAME, else the system's name of this host."""
        return self._handle.host_name()

    def variable(self, name: str) -> str | None:
        """A variable's value; None: it is not set, or empty."""
        return self._handle.variable(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Environment) and self._handle == other._handle

    __hash__ = None  # type: ignore[assignment]
