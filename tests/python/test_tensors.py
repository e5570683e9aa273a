"""Tensors between ranks, from Python: of NumPy, of a library that nobody knows, and plain buffers.
Those of torch are in test_torch_data.py."""

from __future__ import annotations

import array
import ctypes
import gc
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import foreign
import muster
import pytest
from conftest import PATIENCE, variables_of
from muster import gloo
from muster.runtime import (
    Runtime,
    Tensor,
    all_gather_tensor,
    all_reduce_tensor,
    broadcast_state_dict,
    broadcast_tensor,
    recv_tensor,
    recv_tensor_into,
    reduce_scatter_tensor,
    send_tensor,
)

Job = Callable[..., list[Any]]
WAYS = ["shared_memory", "store"]
ROOM = {"timeout": 30}


def numpy() -> types.ModuleType:
    module: types.ModuleType = pytest.importorskip("numpy", reason="Debian: python3-numpy")
    return module


@pytest.mark.parametrize("way", WAYS)
def test_an_all_reduce_is_in_place(in_job: Job, way: Any) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        tensor = np.full((2, 3), job.rank + 1, dtype=np.float32)
        all_reduce_tensor(job, tensor, way=way)
        assert (tensor == 6).all()
        all_reduce_tensor(job.world, tensor, "average", way=way)
        assert (tensor == 6).all()
        strided = np.arange(10, dtype=np.int64)[::2]
        all_reduce_tensor(job, strided, "max", way=way)
        assert strided.tolist() == [0, 2, 4, 6, 8]
        flags = np.array([job.rank == 1, True, False])
        all_reduce_tensor(job, flags, "min", way=way)
        assert flags.tolist() == [False, True, False]
        job.shutdown()

    in_job(3, part)


def test_a_group_alone_goes_through_the_store(in_ranks: Callable[..., list[Any]]) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        numbers = array.array("d", [1.5, 2.5])
        all_reduce_tensor(group, numbers, "product")
        assert numbers.tolist() == [1.5**2, 2.5**2]
        group.barrier()

    in_ranks(2, part)


def test_a_buffer_of_two_dimensions_is_a_tensor(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        numbers = array.array("f", range(6))
        all_reduce_tensor(job, memoryview(numbers).cast("B").cast("f", (2, 3)))
        assert numbers.tolist() == [0, 2, 4, 6, 8, 10]
        job.shutdown()

    in_job(2, part)


def test_results_are_tensors_that_others_take(in_job: Job) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        given = np.arange(job.rank + 2, dtype=np.float32).reshape(1, -1)
        all_ = all_gather_tensor(job, given)
        assert [each.shape for each in all_] == [(1, 2), (1, 3)]
        for rank, each in enumerate(all_):
            assert isinstance(each, Tensor)
            assert (each.dtype, each.device, each.nbytes) == ("float32", "cpu", 4 * (rank + 2))
            assert each.__dlpack_device__() == (1, 0)
            expected = np.arange(rank + 2, dtype=np.float32).reshape(1, -1)
            assert (np.from_dlpack(each) == expected).all()
            view = np.asarray(each)
            assert (view == expected).all()
            view[0, 0] = 7  # the same memory
            assert np.from_dlpack(each)[0, 0] == 7
            buffer: Any = each
            assert memoryview(buffer).format == "f"
        all_reduce_tensor(job, all_[0])  # they are tensors themselves
        assert np.asarray(all_[0])[0, 0] == 14
        kept = np.from_dlpack(all_[1])
        del all_, each, view, buffer
        gc.collect()
        assert kept[0, 1] == 1
        job.shutdown()

    in_job(2, part)


def test_a_broadcast_fills_and_a_reduce_scatter_shares(in_job: Job) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        tensor = np.full(3, job.rank)
        if job.rank == 1:
            tensor.flags.writeable = False  # the root only reads
        broadcast_tensor(job, tensor, 1)
        assert tensor.tolist() == [1, 1, 1]
        whole = np.arange(4, dtype=np.int32) + job.rank
        part_ = np.zeros(2, dtype=np.int32)
        reduce_scatter_tensor(job, whole, part_)
        assert part_.tolist() == ([1, 3] if job.rank == 0 else [5, 7])
        job.shutdown()

    in_job(2, part)


def test_what_a_rank_refuses_is_told_by_the_tensors_name(in_job: Job) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        read_only = np.zeros(2)
        read_only.flags.writeable = False
        with pytest.raises(muster.InvalidArgument, match="tensor: it is read-only") as raised:
            all_reduce_tensor(job, read_only)
        assert raised.value.happened == "no"
        with pytest.raises(muster.InvalidArgument, match="receive: it is read-only"):
            reduce_scatter_tensor(job, np.zeros(2), read_only)
        with pytest.raises(TypeError, match="tensor: a tensor with __dlpack__"):
            all_reduce_tensor(job, [1.0])
        with pytest.raises(muster.InvalidArgument, match="tensors.'w'.: its library"):
            refuses = types.SimpleNamespace(
                __dlpack__=lambda **_: 1 / 0, __dlpack_device__=lambda: (1, 0)
            )
            broadcast_state_dict(job, {"w": refuses}, job.rank)
        with pytest.raises(muster.Mismatch) as mismatch:
            all_reduce_tensor(job, np.zeros(2 + job.rank))
        assert mismatch.value.rank_numbers == [1]
        with pytest.raises(ValueError, match="way"):
            all_reduce_tensor(job, np.zeros(1), way="carrier pigeon")  # type: ignore[arg-type]
        all_gather_tensor(job, read_only)  # what is only read may be
        job.shutdown()

    in_job(2, part)


Refused = tuple[type[Exception], Callable[[Runtime], Any], Callable[[Runtime], Any]]


def test_what_one_rank_refuses_is_an_error_of_all_at_once(in_job: Job) -> None:
    """Its own error here, and the reason elsewhere; the next call finds all ranks together."""
    np = numpy()
    read_only = np.zeros(2)
    read_only.flags.writeable = False

    def reduced(tensor: Any = None, op: Any = "sum", **options: Any) -> Callable[[Runtime], Any]:
        given = np.zeros(2) if tensor is None else tensor
        return lambda job: all_reduce_tensor(job, given, op, **options)

    def stated(tensors: Any, root: Any = 0) -> Callable[[Runtime], Any]:
        return lambda job: broadcast_state_dict(job, tensors, root)

    none: Any = (1, 2)  # is no tensor
    good = stated(None)
    cases: list[Refused] = [
        *((error, reduced(bad), reduced()) for error, bad in (
            (TypeError, none), (muster.InvalidArgument, read_only), (TypeError, object()),
            (muster.InvalidArgument, np.array([None])), (ValueError, np.zeros(1, "M8[s]")),
        )),
        (ValueError, reduced(op="carrier"), reduced()), (TypeError, reduced(op=None), reduced()),
        (ValueError, reduced(way="carrier"), reduced()), (TypeError, reduced(way=None), reduced()),
        (ValueError, reduced(timeout=-1), reduced()), (TypeError, reduced(stream="x"), reduced()),
        (TypeError, reduced(store_bytes_max="1"), reduced()),
        (TypeError, lambda job: broadcast_tensor(job, np.zeros(2), none),
         lambda job: broadcast_tensor(job, np.zeros(2))),
        (TypeError, lambda job: reduce_scatter_tensor(job, none, np.zeros(1)),
         lambda job: reduce_scatter_tensor(job, np.zeros(2), np.zeros(1))),
        (TypeError, lambda job: all_gather_tensor(job, none),
         lambda job: all_gather_tensor(job, np.zeros(2))),
        (muster.InvalidArgument, stated({1: np.zeros(2)}), good), (TypeError, stated([1]), good),
        (ValueError, stated({"\ud800": np.zeros(2)}), good), (TypeError, stated({}, None), good),
        (TypeError, stated({"a": None}), good),
    ]

    def part(job: Runtime) -> None:
        for error, bad, well in cases:
            for ranks in (job, job.group):
                began = time.monotonic()
                with pytest.raises(error if job.rank == 0 else muster.InvalidArgument) as raised:
                    (bad if job.rank == 0 else well)(ranks)  # type: ignore[arg-type]
                assert time.monotonic() - began < PATIENCE
                if job.rank == 1:
                    assert isinstance(raised.value, muster.InvalidArgument)
                    assert raised.value.rank_numbers == [0]
        all_reduce_tensor(job, np.zeros(2))
        job.shutdown()

    in_job(2, part)


@pytest.mark.parametrize("knows_versions", [True, False])
def test_an_unknown_library_is_asked_as_dlpack_says(
    in_job: Job, knows_versions: bool
) -> None:
    def part(job: Runtime) -> None:
        tensor, memory = foreign.host_tensor([1, 2, 3], knows_versions=knows_versions)
        all_reduce_tensor(job, tensor)
        assert list(memory) == [2, 4, 6]
        assert tensor.asked == [{"max_version": (1, 1)} if knows_versions else {}]
        read_only, _ = foreign.host_tensor([1], read_only=True)
        with pytest.raises(muster.InvalidArgument, match="read-only"):
            all_reduce_tensor(job, read_only)
        job.shutdown()

    in_job(2, part)
    gc.collect()
    assert foreign.lent_count() == 0  # each was ended


def test_what_describes_no_tensor_is_refused(in_job: Job) -> None:
    with Runtime({}) as job:
        job.init()
        for wrong in (
            foreign.Foreign(0, (3,)),
            foreign.Foreign(1 << 20, (-1,)),
            foreign.Foreign(1 << 20, (1 << 62, 4)),
            types.SimpleNamespace(__dlpack__=lambda **_: 1, __dlpack_device__=lambda: (1, 0)),
        ):
            with pytest.raises(muster.InvalidArgument, match="tensor: "):
                all_reduce_tensor(job, wrong)
    gc.collect()
    assert foreign.lent_count() == 0


def test_streams_of_tensors_go_from_rank_to_rank(in_job: Job) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        other = 1 - job.rank
        send_tensor(job, other, np.full((2, 2), job.rank, dtype=np.int16))
        send_tensor(job, other, np.array([2.5 + job.rank]), tag=9)
        job.group.send_obj("an object", other, tag=3)
        tagged = recv_tensor(job, other, tag=9)
        assert np.asarray(tagged)[0] == 2.5 + other
        place = np.zeros((2, 2), dtype=np.int16)
        recv_tensor_into(job, other, place)
        assert (place == other).all()
        with pytest.raises(muster.CodecMismatch):
            recv_tensor(job, other, tag=3)
        send_tensor(job, other, np.zeros(3))
        with pytest.raises(muster.Mismatch) as raised:
            recv_tensor_into(job, other, np.zeros(4))
        assert raised.value.rank_numbers == [other]
        job.shutdown()

    in_job(2, part)


def test_memory_is_given_by_a_function(in_job: Job) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        given: list[tuple[str, str, tuple[int, ...]]] = []
        arrays: list[Any] = []

        def allocate(device: str, dtype: str, shape: tuple[int, ...]) -> Any:
            given.append((device, dtype, shape))
            arrays.append(np.empty(shape, dtype=dtype))
            return arrays[-1]

        def fails(device: str, dtype: str, shape: tuple[int, ...]) -> Any:
            raise MemoryError("the pool is empty")

        tensor = np.array([job.rank], dtype=np.float64)
        all_gather_tensor(job, tensor, allocate=allocate)
        assert given == [("cpu", "float64", (1,))] * 2
        assert [each[0] for each in arrays] == [0, 1]
        if job.rank == 0:
            with pytest.raises(MemoryError, match="pool"):
                all_gather_tensor(job, tensor, allocate=fails)
        else:
            with pytest.raises(muster.CallbackFailed, match="MemoryError: the pool is empty"):
                all_gather_tensor(job, tensor)
        job.shutdown()

    in_job(2, part)


@pytest.mark.parametrize("way", WAYS)
def test_m1_a_state_dict_comes_to_all(in_job: Job, way: Any) -> None:
    np = numpy()

    def part(job: Runtime) -> None:
        for root in range(3):
            own = None
            if job.rank == root:
                own = {"w": np.full((300, 300), root, dtype=np.float32), "b": np.array([root])}
            state = broadcast_state_dict(job, own, root, way=way, bucket_bytes=4096)
            assert list(state) == ["w", "b"]
            assert (np.asarray(state["w"]) == root).all()
            assert np.asarray(state["b"]).tolist() == [root]
        with pytest.raises(muster.InvalidArgument) as raised:
            broadcast_state_dict(job, None, 1)
        assert raised.value.rank_numbers == [1]
        for key in (b"w", 1, None):
            wrong: Any = {key: np.zeros(1), "w": np.ones(1)}
            with pytest.raises(muster.InvalidArgument, match="a name is a str"):
                broadcast_state_dict(job, wrong, job.rank)
        job.shutdown()

    in_job(3, part)


def test_dtypes_without_a_format_show_their_bytes(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        memory = bytearray(8)
        address = ctypes.addressof((ctypes.c_char * 8).from_buffer(memory))
        tensor = foreign.Foreign(address, (4,), dtype=(4, 16), keeps=memory)
        given: Any = all_gather_tensor(job, tensor)[0]
        assert given.dtype == "bfloat16"
        assert memoryview(given).tolist() == [0] * 8
        job.shutdown()

    in_job(2, part)


def test_gloo_carries_what_is_large_between_hosts(in_job: Job) -> None:
    np = numpy()
    if not gloo.is_available():
        pytest.skip("this build has no Gloo")

    def part(job: Runtime) -> None:
        tensor = np.full(200_000, job.rank + 1.0)
        all_reduce_tensor(job, tensor, way="gloo")
        assert (tensor == 3).all()
        with pytest.raises(muster.InvalidArgument, match="NCCL takes memory of a CUDA device"):
            all_reduce_tensor(job, tensor, way="nccl")
        with pytest.raises(muster.WayMissing):
            all_reduce_tensor(job.group, tensor, way="shared_memory")
        job.shutdown()

    in_job(2, part, communicators="gloo")


@pytest.mark.parametrize("way", ["shared_memory", "store", "gloo"])
def test_ctrl_c_ends_a_call_on_tensors(
    process: Any, address: str, namespace: str, way: str
) -> None:
    if way == "gloo" and not gloo.is_available():
        pytest.skip("this build has no Gloo")
    communicators = "gloo" if way == "gloo" else ""
    one = process(f"""
        import array, muster.runtime
        job = muster.runtime.Runtime({variables_of(1, 2, address)!r})
        job.init(namespace={namespace!r}, communicators={communicators!r})
        numbers = array.array("f", [1.0] * 1000)
        muster.runtime.all_reduce_tensor(job, numbers, way={way!r})
        print("ready", flush=True)
        try:
            muster.runtime.all_reduce_tensor(job, numbers, way={way!r})
        except KeyboardInterrupt as interrupted:
            print(type(interrupted.error).__name__, flush=True)
    """)
    job = Runtime(variables_of(0, 2, address))
    job.init(namespace=namespace, communicators=communicators)
    all_reduce_tensor(job, array.array("f", [1.0] * 1000), way=way)  # type: ignore[arg-type]
    assert one.stdout.readline().strip() == "ready"
    time.sleep(0.2)
    sent = time.monotonic()
    one.send_signal(signal.SIGINT)
    line = one.stdout.readline().strip()
    assert line in ("Cancelled", "Aborted"), one.stderr.read()
    assert time.monotonic() - sent < 2
    one.communicate(timeout=30)


def test_the_gil_is_free_while_tensors_wait(in_job: Job) -> None:
    """A rank in a call, and one that has to run Python before it comes, share one interpreter."""
    np = numpy()
    ran = threading.Event()

    def part(job: Runtime) -> None:
        if job.rank == 1:
            assert sum(range(1_000_000)) > 0
            ran.set()
        tensor = np.zeros(10)
        all_reduce_tensor(job, tensor)
        assert ran.is_set()
        job.shutdown()

    in_job(2, part)


def test_no_library_of_tensors_is_imported(process: Any) -> None:
    one = process("""
        import muster.runtime, muster.nccl, muster.gloo
        print(sorted({"numpy", "torch"} & set(sys.modules)))
    """)
    assert one.communicate(timeout=60)[0].strip() == "[]"


def test_calls_keep_no_tensor(in_job: Job) -> None:
    with Runtime({}) as job:
        job.init()
        numbers = array.array("f", [1.0])
        before = sys.getrefcount(numbers)
        for _ in range(100):
            all_reduce_tensor(job, numbers)
            all_gather_tensor(job, numbers)
        assert sys.getrefcount(numbers) == before
        numbers.append(2.0)  # its buffer is free
