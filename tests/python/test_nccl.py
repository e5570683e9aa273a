"""Communicators and ids of NCCL, from Python, on doubles of NCCL and of CUDA's driver."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import foreign
import muster
import pytest
from foreign import Cuda, Foreign, host_tensor
from muster import nccl
from muster.communicator import Communicator
from muster.runtime import Runtime, all_reduce_tensor

Ranks = Callable[..., list[Any]]
needs_doubles = pytest.mark.skipif(
    "NCCL_DOUBLE" not in os.environ, reason="NCCL_DOUBLE and CUDA_DOUBLE name no libraries"
)
Group = muster.StatelessProcessGroup


def options(**more: Any) -> nccl.Options:
    return nccl.Options(
        timeout=20, nccl_library=os.environ["NCCL_DOUBLE"],
        cuda_library=os.environ["CUDA_DOUBLE"], **more,
    )


@pytest.fixture
def in_devices(in_ranks: Ranks) -> Ranks:
    """Runs `part(group, cuda)` for each rank, with a device of its own."""

    def run(world_size: int, part: Callable[[Group, Cuda], Any]) -> list[Any]:
        return in_ranks(
            world_size, lambda group: part(group, Cuda(os.environ["CUDA_DOUBLE"], group.rank))
        )

    return run


@needs_doubles
@pytest.mark.parametrize("mode", ["nonblocking", "blocking"])
def test_nccl_reduces_on_the_stream_that_is_given(in_devices: Ranks, mode: Any) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        with_it = nccl.create(group, cuda.device, options(mode=mode))
        assert with_it.kind == "nccl"
        assert nccl.device(with_it) == cuda.device
        stream = cuda.stream()
        tensor = cuda.tensor([group.rank + 1.0, 2.0])
        with_it.all_reduce(tensor, stream=stream)
        cuda.synchronize(stream)
        assert cuda.numbers(tensor) == [3, 4]
        assert tensor.asked[-1]["stream"] == stream
        out = cuda.tensor([0, 0, 0, 0])
        with_it.all_gather(tensor, out, stream=stream)
        cuda.synchronize(stream)
        assert cuda.numbers(out) == [3, 4, 3, 4]
        assert out.asked[-1]["stream"] == stream
        other = 1 - group.rank
        with with_it.grouped():
            with_it.send(cuda.tensor([group.rank]), other, stream=stream)
            got = cuda.tensor([7])
            with_it.recv(got, other, stream=stream)
        cuda.synchronize(stream)
        assert cuda.numbers(got) == [other]
        group.barrier()
        with_it.close()
        group.barrier()

    in_devices(2, part)


@needs_doubles
def test_close_may_be_called_again(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        with nccl.create(group, cuda.device, options()) as with_it:
            assert repr(with_it).endswith(f"rank {group.rank} of 2>")
            group.barrier()
        group.barrier()
        with_it.close()
        assert repr(with_it).endswith(f"rank {group.rank} of 2, closed>")

    in_devices(2, part)


class OfTorch:
    def __init__(self, stream: int) -> None:
        self.cuda_stream = stream


class OfCudaPython:
    def __init__(self, stream: int) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.stream)


@needs_doubles
def test_streams_are_numbers_or_objects(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        with_it = nccl.create(group, cuda.device, options())
        number = cuda.stream()
        tensor = cuda.tensor([1.0])
        for stream in (number, OfTorch(number), OfCudaPython(number)):
            with_it.all_reduce(tensor, stream=stream)
            assert tensor.asked[-1]["stream"] == number
        with_it.all_reduce(tensor)
        assert tensor.asked[-1]["stream"] == 1  # as DLPack calls the default one
        with pytest.raises(TypeError, match="stream"):
            with_it.all_reduce(tensor, stream="0")
        cuda.synchronize(number)
        assert cuda.numbers(tensor) == [1]

    in_devices(1, part)


@needs_doubles
def test_nccl_refuses_tensors_by_name(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        with_it = nccl.create(group, cuda.device, options())
        host, _ = host_tensor([1])
        refusals = [
            (host, "it is on cpu, and NCCL takes device memory"),
            (Foreign(1 << 20, (1,), device=(2, 3)), "it is on cuda:3, and the communicator is"),
            (cuda.tensor([1.0], requires_grad=True), "requires grad"),
            (cuda.tensor([1.0], read_only=True), "read-only"),
            (Foreign(1 << 20, (2, 2), device=(2, 0), strides=(1, 2)), "not contiguous"),
        ]
        for tensor, text in refusals:
            with pytest.raises(muster.InvalidArgument, match=f"tensor: .*{text}"):
                with_it.all_reduce(tensor)
        assert with_it.error is None

    in_devices(1, part)


@needs_doubles
def test_tensors_on_devices_go_by_nccl(in_job: Callable[..., list[Any]]) -> None:
    def part(job: Runtime) -> None:
        cuda = Cuda(os.environ["CUDA_DOUBLE"], job.local_rank)
        stream = cuda.stream()
        tensor = cuda.tensor([job.rank + 1.0])
        all_reduce_tensor(job, tensor, stream=stream)
        cuda.synchronize(stream)
        assert cuda.numbers(tensor) == [3]
        job.shutdown()

    in_job(2, part, communicators="nccl", nccl=options())


@needs_doubles
def test_several_are_made_at_once(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        ring = Group(group.store, "other", group.rank, 2)
        kept = nccl.Communicators()
        one, other = kept.create_all([
            nccl.Request(group, cuda.device, options()), nccl.Request(ring, cuda.device, options()),
        ])
        assert isinstance(one, Communicator) and isinstance(other, Communicator)
        assert len(kept) == 2
        assert len(kept.all()) == 2
        found = kept.find(group)
        assert found is not None and found.group_name == group.name
        kept.drop(ring)
        assert kept.find(ring) is None
        assert kept.drop_ended() == 0
        kept.abort_all()
        with pytest.raises(muster.Aborted):
            one.all_reduce(cuda.tensor([1.0]))
        group.barrier()

    in_devices(2, part)


@needs_doubles
def test_another_thread_may_issue_when_this_one_has_handed_over(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        with_it = nccl.create(group, cuda.device, options())
        tensor = cuda.tensor([1.0])
        with_it.all_reduce(tensor)
        outcomes: list[type[BaseException] | None] = []

        def call() -> None:
            try:
                with_it.all_reduce(tensor)
                outcomes.append(None)
            except muster.MusterError as error:
                outcomes.append(type(error))

        for hands_over in (False, True):
            if hands_over:
                nccl.release_issuer(with_it)
            thread = threading.Thread(target=call)
            thread.start()
            thread.join(30)
        assert outcomes == [muster.WouldDeadlock, None]
        with pytest.raises(muster.InvalidArgument):
            nccl.native_handle(with_it)

    in_devices(1, part)


@needs_doubles
def test_an_id_is_the_same_on_all_ranks(in_ranks: Ranks) -> None:
    def part(group: Group) -> bytes:
        library = os.environ["NCCL_DOUBLE"]
        made = nccl.unique_id(group, 20, library=library)
        assert len(made) == 128
        given = bytes(range(128))
        assert nccl.unique_id(group, 20, id=given if group.rank == 1 else None) == given
        with pytest.raises(ValueError, match="128 bytes"):
            nccl.unique_id(group, 20, id=b"short")
        with pytest.raises(muster.InvalidArgument):
            nccl.unique_id(group, 20, id=bytes(128))
        group.barrier()
        if group.rank == 0:
            assert nccl.give_up(made)
            assert not nccl.give_up(made)
        return made

    first, second = in_ranks(2, part)
    assert first == second


def test_a_library_that_is_missing_is_named(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        with pytest.raises(muster.LibraryMissing, match="/nowhere/libnccl.so.2"):
            nccl.unique_id(group, 20, library="/nowhere/libnccl.so.2")
        with pytest.raises(muster.LibraryMissing):
            nccl.create(
                group, 0,
                nccl.Options(nccl_library="/nowhere/nccl", cuda_library="/nowhere/cuda"),
            )
        assert nccl.failed_attempts() >= 0
        nccl.forgive_attempts()

    in_ranks(1, part)


@needs_doubles
def test_communicators_leave_nothing_behind(in_devices: Ranks) -> None:
    def part(group: Group, cuda: Cuda) -> None:
        def make(count: int) -> None:
            for _ in range(count):
                with_it = nccl.create(group, cuda.device, options(on_end=print))
                with_it.all_reduce(cuda.tensor([1.0]))
                with_it.close()

        make(2)
        gc.collect()
        objects = len(gc.get_objects())
        lent = foreign.lent_count()
        make(30)
        gc.collect()
        assert len(gc.get_objects()) <= objects + 30
        assert foreign.lent_count() == lent

    in_devices(1, part)
