"""Values on which all ranks of a group agree. Objects are exchanged by the group's own calls
(:mod:`muster.group`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from muster import _core
from muster._keywords import iterable_of, names_keywords, refuse_type
from muster.codecs import JSON, Codec
from muster.errors import Mismatch, RankReport
from muster.group import StatelessProcessGroup
from muster.runtime._ranks import Ranks, group_of, handle_of
from muster.runtime.tensors import ReduceOp
from muster.store import Timeout

__all__ = [
    "all_reduce_value", "broadcast_list", "synchronize_flag", "synchronize_over",
    "synchronize_value",
]

_MISMATCH = 82  # of ErrorCode
Number = TypeVar("Number", bool, int, float)


@names_keywords
def synchronize_value(
    ranks: Ranks, value: Number, root: int = 0, *, timeout: Timeout = None
) -> Number:
    """Gives all ranks the root's value. Collective.

    value   a bool, an int of 64 bits or a float
    errors  Mismatch (``ranks``: the root, whose value is of another type, or was refused there);
            TypeError, ValueError, OverflowError (this rank's arguments); those of a collective
    cost    one round trip
    """
    given: Number = _core.synchronize_value(handle_of(ranks), value, root, timeout)
    return given


@names_keywords
def synchronize_flag(ranks: Ranks, flag: bool, root: int = 0, *, timeout: Timeout = None) -> bool:
    """Gives all ranks the root's flag. Collective."""
    return synchronize_value(ranks, bool(flag), root, timeout=timeout)


@names_keywords
def all_reduce_value(
    ranks: Ranks, value: Number, op: ReduceOp = "sum", *, timeout: Timeout = None
) -> Number:
    """Combines one value of every rank into one, the same on all ranks to the last bit: every rank
    computes in the order of ranks. Collective.

    op      of floats all but those on bits; of ints all but "average"; of bools "max" (one is
            true), "min" (all are) and those on bits
    errors  the same on all ranks: OutOfRange (the sum or product of all ints does not fit 64
            bits), InvalidArgument (the op of all), Mismatch (``ranks``: with another type or op
            than most, or with an argument that was refused: there it is TypeError, ValueError or
            OverflowError); those of a collective
    cost    one round trip
    """
    given: Number = _core.all_reduce_value(handle_of(ranks), value, op, timeout)
    return given


@names_keywords
def broadcast_list(
    ranks: Ranks,
    objs: Sequence[Any],
    root: int = 0,
    *,
    codec: Codec = JSON,
    timeout: Timeout = None,
) -> list[Any]:
    """Gives all ranks the root's list. Collective.

    objs    at the root: the list; at other ranks one of the same length
    errors  Mismatch (``ranks``: the root, whose list has another length), those of
            ``broadcast_obj``
    """
    group = group_of(ranks)
    own = list(iterable_of(objs, "objs"))
    if not hasattr(type(root), "__index__"):
        raise refuse_type(root, "root", "an int")
    if not 0 <= root < group.world_size:
        raise ValueError(f"root: an int from 0 to {group.world_size - 1}, not {root}")
    given = list(group.broadcast_obj(own, root, codec=codec, timeout=timeout))
    if len(given) == len(own):
        return given
    detail = f"the root's list has {len(given)} objects, this rank's {len(own)}"
    raise Mismatch(
        f"broadcast_list: {detail}", code="mismatch", number=_MISMATCH,
        operation="broadcast_list", group=group.name, epoch=group.epoch, expected=len(own),
        actual=len(given), detail=detail, decided_by="client", rank_numbers=[root],
        ranks=[RankReport(root, True, "", 0, "", "", None, "", "")],
    )


@names_keywords
def synchronize_over(
    groups: Iterable[Ranks | None],
    obj: Any,
    combine: Callable[[list[Any]], Any],
    *,
    codec: Codec = JSON,
    timeout: Timeout = None,
) -> Any:
    """Combines an object over several groups, one after the other: what comes of the first goes
    into the second. For a value that is to be the same along each dimension of a mesh. All ranks of
    each group call it; None is left out.

    combine  of one object of each rank, in the order of ranks, one
    """
    for ranks in iterable_of(groups, "groups"):
        if ranks is None:
            continue
        group: StatelessProcessGroup = group_of(ranks)
        obj = combine(group.all_gather_obj(obj, codec=codec, timeout=timeout))
    return obj
