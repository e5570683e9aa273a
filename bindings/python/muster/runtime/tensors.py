"""How ranks exchange tensors: those of NumPy, torch, JAX, CuPy and every other library that has
DLPack's protocol, or a buffer. No library is needed, and none is imported.

A tensor that a call gives is a :class:`Tensor`, which ``numpy.from_dlpack``, ``numpy.asarray``,
``torch.from_dlpack`` and ``memoryview`` take without a copy. Tensors that are written are written
in place. Each call names in its error the tensor that it refuses (InvalidArgument): one that
requires grad; one that is read-only, where it would be written.

All but send and recv are collectives: all ranks call them in the same order as other collectives of
the group. What one rank refuses, and what does not fit together, is an error on all ranks that
names those ranks: InvalidArgument, Mismatch, WayMissing, ResourceExhausted, TooLarge; and those of
a collective. The rank whose argument was refused may raise another exception, such as TypeError.
After TimedOut and errors of a lost rank in shared memory, the tensors that were to be written may
be partly written. Ctrl-C ends a call of the main thread; where it goes through Gloo or NCCL that
ends the communicator. docs/runtime.md "Tensors" tells the ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from muster import _core
from muster._keywords import names_keywords
from muster.runtime._ranks import Ranks, handle_of
from muster.store import Time

__all__ = [
    "Allocate", "ReduceOp", "Tensor", "Way", "all_gather_tensor", "all_reduce_tensor",
    "broadcast_state_dict", "broadcast_tensor", "recv_tensor", "recv_tensor_into",
    "reduce_scatter_tensor", "send_tensor",
]

ReduceOp = Literal[
    "sum", "product", "max", "min", "average", "bit_and", "bit_or", "bit_xor",
    "SUM", "PRODUCT", "MAX", "MIN", "AVG", "BAND", "BOR", "BXOR",
]
"""torch's names in capitals mean the same."""
Way = Literal["automatic", "store", "shared_memory", "gloo", "nccl"]
Allocate = Callable[[str, str, tuple[int, ...]], Any]
"""Gives a tensor to be written, of a device ("cpu", "cuda:0"), a dtype ("float32") and a shape."""

Tensor = _core.Tensor
"""A tensor that a call has given: ``shape``, ``dtype``, ``device``, ``nbytes``, ``__dlpack__``; in
host memory a buffer, too (of dtypes that buffers have not, such as bfloat16, its bytes)."""


def _options(
    *,
    way: Way,
    store_bytes_max: int,
    stream: Any,
    timeout: Time,
    tag: int = 0,
    allocate: Allocate | None = None,
    bucket_bytes: int = 16 << 20,
) -> dict[str, Any]:
    return {
        "way": way, "store_bytes_max": store_bytes_max, "stream": stream, "timeout": timeout,
        "tag": tag, "allocate": allocate, "bucket_bytes": bucket_bytes,
    }


@names_keywords
def all_reduce_tensor(
    ranks: Ranks,
    tensor: Any,
    op: ReduceOp = "sum",
    *,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    stream: Any = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> None:
    """Combines the ranks' tensors element by element, in place. Every rank gets the same to the
    last bit, through every way but NCCL.

    way              "automatic": NCCL for tensors on CUDA devices; for those in host memory shared
                     memory, if all ranks share one, else the store up to ``store_bytes_max`` bytes
                     of one rank's tensor, then Gloo
    stream           with NCCL: an int, an object with ``cuda_stream`` or ``__cuda_stream__``, or
                     None for the default one; the call returns when its work is on it
    """
    options = _options(way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout)
    _core.all_reduce_tensor(handle_of(ranks), tensor, op, options)


@names_keywords
def broadcast_tensor(
    ranks: Ranks,
    tensor: Any,
    root: int = 0,
    *,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    stream: Any = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> None:
    """Gives all ranks the root's tensor, into tensors that are there."""
    options = _options(way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout)
    _core.broadcast_tensor(handle_of(ranks), tensor, root, options)


@names_keywords
def all_gather_tensor(
    ranks: Ranks,
    tensor: Any,
    *,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    stream: Any = None,
    allocate: Allocate | None = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> list[Tensor]:
    """Gathers one tensor from every rank, on every rank. Shapes may differ; dtypes and kinds of
    devices may not.

    allocate  gives the memory of what is returned; without it that is host memory
    returns   ``world_size`` tensors, element i from rank i
    """
    options = _options(
        way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout,
        allocate=allocate,
    )
    return _core.all_gather_tensor(handle_of(ranks), tensor, options)


@names_keywords
def reduce_scatter_tensor(
    ranks: Ranks,
    send: Any,
    receive: Any,
    op: ReduceOp = "sum",
    *,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    stream: Any = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> None:
    """Combines the ranks' tensors, of which each rank gets its slice along the first dimension.

    send     [n * world_size, ...]
    receive  [n, ...]; it may not overlap ``send``
    """
    options = _options(way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout)
    _core.reduce_scatter_tensor(handle_of(ranks), send, receive, op, options)


@names_keywords
def send_tensor(
    ranks: Ranks,
    dst: int,
    tensor: Any,
    *,
    tag: int = 0,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    stream: Any = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> None:
    """Sends a tensor to another rank, on the same streams as objects. Not collective.

    Waits until the tensor is stored, by the server or in shared memory; with Gloo until it is
    received; with NCCL until the receiver has called and it is on the stream.
    """
    options = _options(
        way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout, tag=tag
    )
    _core.send_tensor(handle_of(ranks), dst, tensor, options)


@names_keywords
def recv_tensor(
    ranks: Ranks,
    src: int,
    *,
    tag: int = 0,
    device: str = "cpu",
    stream: Any = None,
    allocate: Allocate | None = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> Tensor:
    """Receives the next tensor from a rank; the sender has chosen the way. Not collective.

    device    where it is to be; another one than host memory needs ``allocate``
    returns   the tensor: what ``allocate`` has given for it has it, too
    errors    CodecMismatch (the next one is no tensor), those of ``recv_obj``
    """
    options = _options(
        way="automatic", store_bytes_max=256 << 10, stream=stream, timeout=timeout, tag=tag,
        allocate=allocate,
    )
    return _core.recv_tensor(handle_of(ranks), src, device, options)


@names_keywords
def recv_tensor_into(
    ranks: Ranks,
    src: int,
    tensor: Any,
    *,
    tag: int = 0,
    stream: Any = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> None:
    """The same into a tensor that is there.

    errors  also Mismatch (``ranks``: the source, whose tensor has another shape or dtype); it is
            received then
    """
    options = _options(
        way="automatic", store_bytes_max=256 << 10, stream=stream, timeout=timeout, tag=tag
    )
    _core.recv_tensor_into(handle_of(ranks), src, tensor, options)


@names_keywords
def broadcast_state_dict(
    ranks: Ranks,
    tensors: Mapping[str, Any] | None = None,
    root: int = 0,
    *,
    way: Way = "automatic",
    store_bytes_max: int = 256 << 10,
    bucket_bytes: int = 16 << 20,
    stream: Any = None,
    allocate: Allocate | None = None,
    timeout: Time = _core.DEFAULTS.tensor_timeout,
) -> dict[str, Any]:
    """Gives all ranks the root's tensors: first their names, shapes and dtypes in one object, then
    their bytes.

    tensors       at the root; other ranks give None
    bucket_bytes  so many bytes in host memory travel together
    returns       the tensors, in the root's order; at the root those that it gave
    errors        also InvalidArgument (``ranks``: the root, which gave none, or others, which gave
                  some)
    """
    options = _options(
        way=way, store_bytes_max=store_bytes_max, stream=stream, timeout=timeout,
        allocate=allocate, bucket_bytes=bucket_bytes,
    )
    received: dict[str, Any] = _core.broadcast_state_dict(handle_of(ranks), tensors, root, options)
    return received if tensors is None else dict(tensors)
