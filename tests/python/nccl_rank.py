"""A rank of a communicator of NCCL, in a process of its own: for test_nccl_processes.py.

    nccl_rank.py CASE RANK WORLD_SIZE ADDRESS NAMESPACE   address and namespace of a server

The tensors are torch's, on a GPU; or, where NCCL_DOUBLE and CUDA_DOUBLE name libraries, of a
library that nobody knows, in memory of the double of CUDA's driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import muster
from foreign import Cuda, Foreign
from muster import nccl
from muster.communicator import Communicator

PATIENCE = 60.0
LOST_RANK = 2
LATE_CYCLES = 200_000_000  # of the GPU: some 0.1 s


class OfDoubles:
    def __init__(self, rank: int) -> None:
        self.cuda = Cuda(os.environ["CUDA_DOUBLE"], rank)
        self.device = rank
        self.library = os.environ["NCCL_DOUBLE"]
        self.options = {"nccl_library": self.library, "cuda_library": os.environ["CUDA_DOUBLE"]}
        self.stream, self.synchronize = self.cuda.stream, self.cuda.synchronize
        self.tensor, self.numbers = self.cuda.tensor, self.cuda.numbers

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        self.cuda.call("cuCtxPushCurrent_v2", self.cuda.context)
        yield
        self.cuda.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def refused(self) -> Iterator[tuple[Any, str]]:
        yield self.tensor([1.0], requires_grad=True), "requires grad"
        yield self.tensor([1.0], read_only=True), "read-only"
        yield Foreign(1 << 20, (2, 2), device=(2, self.device), strides=(1, 2)), "not contiguous"
        yield Foreign(1 << 20, (1,)), "it is on cpu"

    def late_tensor(self, numbers: list[float]) -> Any:
        return self.tensor(numbers)


class OfTorch:
    """Of torch, whose libnccl is the one that is used."""

    def __init__(self, rank: int) -> None:
        import torch

        self.torch = torch
        self.device = rank % torch.cuda.device_count()
        torch.cuda.set_device(self.device)
        self.library = ""
        self.options: dict[str, str] = {}

    def tensor(self, numbers: list[float]) -> Any:
        return self.torch.tensor(numbers, dtype=self.torch.float32, device="cuda")

    def late_tensor(self, numbers: list[float]) -> Any:
        """One that is there when what is before it on torch's stream is done."""
        given = self.tensor(numbers)
        late = self.torch.zeros_like(given)
        self.torch.cuda.synchronize()
        self.torch.cuda._sleep(LATE_CYCLES)
        late.copy_(given)
        return late

    def numbers(self, tensor: Any) -> list[float]:
        return list(tensor.tolist())

    def stream(self) -> Any:
        return self.torch.cuda.Stream()

    def synchronize(self, stream: Any) -> None:
        stream.synchronize()

    def current(self) -> Any:
        return self.torch.cuda.device(self.device)

    def refused(self) -> Iterator[tuple[Any, str]]:
        zeros = self.torch.zeros
        yield zeros(2, device="cuda", requires_grad=True), "requires grad"
        one = self.tensor([1.0])
        yield Foreign(
            one.data_ptr(), (1,), device=(2, self.device), read_only=True, keeps=one
        ), "read-only"
        yield zeros(2, 2, device="cuda").t(), "not contiguous"
        yield zeros(2), "it is on cpu"


class Rank(NamedTuple):
    group: muster.StatelessProcessGroup
    of: Any

    def create(self, group: muster.StatelessProcessGroup, **more: Any) -> Communicator:
        options = nccl.Options(timeout=PATIENCE, **self.of.options, **more)
        return nccl.create(group, self.of.device, options)

    def expect(self, tensor: Any, numbers: list[float]) -> None:
        found = self.of.numbers(tensor)
        assert found == numbers, f"{found} instead of {numbers}"


@contextlib.contextmanager
def refusal(kind: type[muster.MusterError], text: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        assert text in str(error), f"{error}, without {text!r}"
    else:
        raise AssertionError(f"nothing was refused: {kind.__name__}, {text!r}")


def operations(self: Rank, mode: Any) -> None:
    """All of them on a stream beside the default one, and one on that."""
    of, rank, size = self.of, self.group.rank, self.group.world_size
    communicator = self.create(self.group, mode=mode)
    stream = of.stream()
    tensor = of.late_tensor([rank + 1.0, 2.0])
    communicator.all_reduce(tensor, stream=stream)
    of.synchronize(stream)
    self.expect(tensor, [size * (size + 1) / 2, 2.0 * size])
    own = of.late_tensor([float(rank)])
    communicator.broadcast(own, size - 1, stream=stream)
    of.synchronize(stream)
    self.expect(own, [size - 1.0])
    every = of.tensor([0.0] * size)
    sent = of.late_tensor([float(rank)])
    communicator.all_gather(sent, every, stream=stream)
    of.synchronize(stream)
    self.expect(every, [float(one) for one in range(size)])
    got = of.tensor([7.0])
    with communicator.grouped():
        communicator.send(sent, (rank + 1) % size, stream=stream)
        communicator.recv(got, (rank - 1) % size, stream=stream)
    of.synchronize(stream)
    self.expect(got, [float((rank - 1) % size)])
    communicator.all_reduce(got, "max")
    self.expect(got, [size - 1.0])  # read on the default stream, behind it
    self.group.barrier()
    communicator.close()
    with refusal(muster.Closed, ""):
        communicator.all_reduce(got)
    self.group.barrier()


def refusals(self: Rank) -> None:
    """By name, and before anything is done: the communicator goes on."""
    communicator = self.create(self.group)
    for tensor, text in self.of.refused():
        with refusal(muster.InvalidArgument, text):
            communicator.all_reduce(tensor)
    assert communicator.error is None
    tensor = self.of.tensor([1.0])
    communicator.all_reduce(tensor)
    self.expect(tensor, [float(self.group.world_size)])
    communicator.close()
    self.group.barrier()


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def ids(self: Rank) -> None:
    """NCCL itself takes the id that the group has agreed on."""
    made = nccl.unique_id(self.group, PATIENCE, library=self.of.library)
    assert self.group.all_gather_obj(made.hex()) == [made.hex()] * self.group.world_size
    library = ctypes.CDLL(self.of.library or "libnccl.so.2")
    handle = ctypes.c_void_p()
    with self.of.current():
        failed = library.ncclCommInitRank(
            ctypes.byref(handle), self.group.world_size, UniqueId.from_buffer_copy(made),
            self.group.rank,
        )
        assert failed == 0, f"ncclCommInitRank gives {failed}"
        count = ctypes.c_int()
        assert library.ncclCommCount(handle, ctypes.byref(count)) == 0
        assert count.value == self.group.world_size
        assert library.ncclCommDestroy(handle) == 0
    self.group.barrier()


def loss(self: Rank) -> None:
    """A rank is killed while the others are in a collective: they hear who, their streams become
    idle, and they go on without it."""
    group, of = self.group, self.of
    communicator = self.create(group)
    stream, tensor = of.stream(), of.tensor([1.0] * 1024)
    communicator.all_reduce(tensor, stream=stream)  # connects all for what NCCL does by this size
    of.synchronize(stream)
    if group.rank == LOST_RANK:
        for other in set(range(group.world_size)) - {LOST_RANK}:
            group.store.get(f"issued by {other}")
        os.kill(os.getpid(), signal.SIGKILL)
    communicator.all_reduce(tensor, stream=stream)  # waits for that rank, on the device
    group.store.set(f"issued by {group.rank}", "")
    until = time.monotonic() + PATIENCE
    while (error := communicator.error) is None:
        assert time.monotonic() < until, "nobody was lost"
        time.sleep(0.001)
    assert isinstance(error, muster.RankLost), error
    assert [one.rank for one in error.ranks] == [LOST_RANK]
    of.synchronize(stream)
    with refusal(muster.RankLost, ""):
        communicator.all_reduce(tensor, stream=stream)
    left = group.regroup(timeout=PATIENCE)
    assert left.world_size == group.world_size - 1
    again = self.create(left)
    tensor = of.tensor([1.0])
    again.all_reduce(tensor, stream=stream)
    of.synchronize(stream)
    self.expect(tensor, [float(left.world_size)])
    again.close()
    left.barrier()


CASES: dict[str, Callable[[Rank], None]] = {
    "operations": lambda self: operations(self, "nonblocking"),
    "operations, blocking": lambda self: operations(self, "blocking"),
    "refusals": refusals,
    "ids": ids,
    "loss": loss,
}


def main() -> None:
    case, rank, world_size, address, namespace = sys.argv[1:]
    of = OfDoubles(int(rank)) if "NCCL_DOUBLE" in os.environ else OfTorch(int(rank))
    with muster.Store(address, namespace=namespace, timeout=PATIENCE) as store:
        group = muster.StatelessProcessGroup(
            store, "g", int(rank), int(world_size), timeout=PATIENCE
        )
        CASES[case](Rank(group, of))
    print("done", flush=True)
    os._exit(0)  # an abort may go on for a while, in which a process that ends by exit may crash


if __name__ == "__main__":
    main()
