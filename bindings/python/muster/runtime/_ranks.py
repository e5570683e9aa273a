"""What calls of the runtime take as their ranks."""

from __future__ import annotations

from typing import Union

from muster import _core
from muster.group import StatelessProcessGroup
from muster.runtime.job import RankGroup, Runtime

Ranks = Union[Runtime, RankGroup, StatelessProcessGroup]
"""A runtime stands for its world."""


def ranks_of(ranks: Runtime | RankGroup) -> _core.RankGroup:
    """Those that know where each of them is."""
    if not isinstance(ranks, (Runtime, RankGroup)):
        raise TypeError(f"a Runtime or a RankGroup, not {type(ranks).__name__}")
    return ranks._ranks


def handle_of(ranks: Ranks) -> _core.RankGroup | _core.Group:
    return ranks._handle if isinstance(ranks, StatelessProcessGroup) else ranks_of(ranks)


def group_of(ranks: Ranks) -> StatelessProcessGroup:
    """Raises NotInitialized: they are none."""
    if isinstance(ranks, StatelessProcessGroup):
        return ranks
    return StatelessProcessGroup._of(_core.group_of(ranks_of(ranks)), ranks._kept)
