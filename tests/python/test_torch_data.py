"""Tensors of torch in collectives, and the order of torch's own DistributedSampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import muster
import pytest
from muster.runtime import (
    DistributedSampler,
    Runtime,
    all_gather_tensor,
    all_reduce_tensor,
    send_tensor,
)

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
Job = Callable[..., list[Any]]


def test_torchs_tensors_are_taken_and_given(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        tensor = torch.full((4,), float(job.rank), dtype=torch.bfloat16)
        all_reduce_tensor(job, tensor)
        assert tensor.tolist() == [1.0] * 4
        gathered = all_gather_tensor(job, torch.tensor([job.rank], dtype=torch.float16))
        assert [torch.from_dlpack(each).item() for each in gathered] == [0, 1]
        parameter = torch.nn.Parameter(torch.zeros(2))
        with pytest.raises(muster.InvalidArgument, match="tensor: it requires grad"):
            all_reduce_tensor(job, parameter)
        with pytest.raises(ValueError, match="requires grad"):
            send_tensor(job, 0, parameter)
        all_reduce_tensor(job, parameter.detach())
        job.shutdown()

    in_job(2, part)


def test_the_order_is_that_of_torchs_sampler() -> None:
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler as Torchs

    sized: Any
    for count, replicas, drop in ((103, 4, False), (103, 4, True), (7, 8, False)):
        for rank in range(replicas):
            sized = range(count)
            theirs: Any = Torchs(
                sized, num_replicas=replicas, rank=rank, shuffle=True, seed=5,
                drop_last=drop,
            )
            theirs.set_epoch(3)
            ours = DistributedSampler(
                count, replica_count=replicas, rank=rank, shuffle=True, seed=5,
                uneven="drop" if drop else "pad",
            )
            ours.set_epoch(3)
            assert list(ours) == list(theirs)
            assert len(ours) == len(theirs)
    sized = list(range(8))
    loader: Any = DataLoader(sized, sampler=DistributedSampler(8, replica_count=2, rank=1))
    assert [int(batch) for batch in loader] == [1, 3, 5, 7]
