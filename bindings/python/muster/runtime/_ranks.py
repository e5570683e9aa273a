"""What calls of the runtime take as their ranks."""

from __future__ import annotations

from typing import Union

from muster import _core
from muster._keywords import refuse_type
from muster.group import StatelessProcessGroup
from muster.runtime.job import RankGroup, Runtime

Ranks = Union[Runtime, RankGroup, StatelessProcessGroup]
"""A runtime stands for its world."""


def ranks_of(ranks: Runtime | RankGroup) -> _core.RankGroup:
    """Those that know where each of them is."""
    if not isinstance(ranks, (Runtime, RankGroup)):
        raise refuse_type(ranks, "ranks", "a muster.runtime.Runtime or RankGroup")
    return ranks._ranks


def handle_of(ranks: Ranks) -> _core.RankGroup | _core.Group:
    if isinstance(ranks, StatelessProcessGroup):
        return ranks._handle
    if not isinstance(ranks, (Runtime, RankGroup)):
        raise refuse_type(
            ranks, "ranks", "a muster.runtime.Runtime, RankGroup, or a StatelessProcessGroup"
        )
    return ranks._ranks


def group_of(ranks: Ranks) -> StatelessProcessGroup:
    """Raises NotInitialized: they are none."""
    if isinstance(ranks, StatelessProcessGroup):
        return ranks
    return StatelessProcessGroup._of(_core.group_of(ranks_of(ranks)), ranks._kept)
