"""Which elements of a data set each rank takes."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Literal

from muster import _core
from muster._handles import Handle
from muster._keywords import names_keywords, refuse_type
from muster.runtime.environment import Environment

__all__ = ["DistributedSampler"]


@names_keywords
class DistributedSampler(Handle):
    """Shares the elements of a data set among ranks, as torch's DistributedSampler: with the same
    numbers each rank gets the same elements in the same order, also shuffled. From 214,748,364
    elements on the shuffled order is that of torch 2.6 and later; older versions give another. It
    needs neither group nor torch, and is a ``sampler`` for ``torch.utils.data.DataLoader``.

    Iterating gives the elements of the epoch that is set then. Shuffled, it takes 4 bytes for each
    element of the data set, from 2^32 elements on 8; and 8 bytes for each that is given.
    """

    __slots__ = ("_handle",)
    _instead = "make another one of the same arguments, and set its epoch"

    def __init__(
        self,
        dataset: Sized | int,
        *,
        replica_count: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        uneven: Literal["pad", "drop", "exact"] = "pad",
    ) -> None:
        """dataset        the number of its elements, or what has a ``len``
        replica_count  of ranks that share them; None: the environment's world size, else 1
        rank           of this one among them; None: the environment's, else 0
        shuffle        torch's own default is True, composer's False
        seed           the same on all ranks
        uneven         of elements that do not divide evenly: "pad" takes the first ones again, as
                       torch does; "drop" leaves the last ones out; "exact" takes each once, some
                       ranks take one more
        errors         InvalidArgument, EnvironmentWrong
        """
        count: object = dataset
        if hasattr(type(dataset), "__len__"):
            count = len(dataset)  # type: ignore[arg-type]
        elif not hasattr(type(dataset), "__index__"):
            raise refuse_type(dataset, "dataset", "an int, or an object with a len")
        if replica_count is None:
            replica_count = Environment().number("world_size", "environment_first").value
        if rank is None:
            rank = Environment().number("rank", "environment_first").value
        self._handle = _core.DistributedSampler(
            count, replica_count, rank, shuffle, seed, uneven
        )

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order is given; from 0."""
        self._handle.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        return self._handle.epoch()

    @property
    def padded_count(self) -> int:
        """How many elements all ranks together take a second time."""
        return self._handle.padded_count()

    @property
    def dropped_count(self) -> int:
        """How many elements nobody takes."""
        return self._handle.dropped_count()

    def __iter__(self) -> Iterator[int]:
        return iter(memoryview(self._handle.indices()))

    def __len__(self) -> int:
        """The number of elements that this rank takes."""
        return self._handle.size()
