"""Communicators of Gloo's, from Python, and what those of all kinds share."""

from __future__ import annotations

import array
import gc
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import foreign
import muster
import pytest
from conftest import variables_of
from foreign import Foreign, host_tensor
from muster import gloo
from muster.communicator import Communicator, scaled_sum
from muster.runtime import Runtime

Ranks = Callable[..., list[Any]]
needs_gloo = pytest.mark.skipif(not gloo.is_available(), reason="this build has no Gloo")
Group = muster.StatelessProcessGroup


def numbers(*given: float) -> array.array[float]:
    return array.array("f", given)


@needs_gloo
def test_gloo_has_all_operations(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        rank = group.rank
        with_it = gloo.create(group, gloo.Options(timeout=20))
        assert (with_it.kind, with_it.rank, with_it.world_size) == ("gloo", rank, 3)
        assert with_it.group_name == group.name
        assert with_it.epoch == group.epoch
        assert with_it.creation_times.total >= with_it.creation_times.library > 0
        assert with_it.error is None

        one, out = numbers(rank + 1), numbers(0)
        with_it.all_reduce(one, out=out)
        assert (one.tolist(), out.tolist()) == ([rank + 1], [6])
        with_it.all_reduce(out, "max")
        assert out.tolist() == [6]
        with_it.all_reduce(one, scaled_sum(0.5), out=out)
        assert out.tolist() == [3]
        with_it.broadcast(one, 2)
        assert one.tolist() == [3]
        with_it.reduce(numbers(rank), 1, "product", out=out if rank == 1 else None)
        assert rank != 1 or out.tolist() == [0]
        three = numbers(0, 0, 0)
        with_it.all_gather(numbers(rank), three)
        assert three.tolist() == [0, 1, 2]
        with_it.reduce_scatter(three, out)
        assert out.tolist() == [3 * rank]
        crossed = numbers(0, 0, 0)
        with_it.all_to_all(numbers(*(10 * rank + to for to in range(3))), crossed)
        assert crossed.tolist() == [rank, 10 + rank, 20 + rank]
        with_it.gather(numbers(rank), three if rank == 0 else None)
        with_it.scatter(three if rank == 0 else None, out, 0)
        assert out.tolist() == [rank]
        with_it.close()
        with pytest.raises(muster.Closed):
            with_it.all_reduce(one)

    in_ranks(3, part)


@needs_gloo
def test_parts_may_differ_in_size(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        rank, counts = group.rank, [2, 0, 1]
        with_it = gloo.create(group)
        own = numbers(*[rank + 1] * counts[rank])
        all_ = numbers(0, 0, 0)
        with_it.all_gather_v(own, all_, counts)
        assert all_.tolist() == [1, 1, 3]
        with_it.reduce_scatter_v(all_, own, counts)
        assert own.tolist() == [[3, 3], [], [9]][rank]
        with_it.gather_v(own, all_ if rank == 1 else None, counts, 1)
        with_it.scatter_v(all_ if rank == 1 else None, own, counts, 1)
        assert own.tolist() == [[3, 3], [], [9]][rank]
        with pytest.raises(muster.InvalidArgument, match="counts: one for each"):
            with_it.all_gather_v(own, all_, [3])
        with pytest.raises(muster.InvalidArgument, match="out: by counts it has 3"):
            with_it.all_gather_v(own, numbers(1), counts)
        with_it.close()

    in_ranks(3, part)


@needs_gloo
def test_sends_and_receives_begin_together(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        tensor, received, other = numbers(group.rank, 1), numbers(0, 0), 1 - group.rank
        with_it = gloo.create(group)  # or nccl.create(group, device)
        with_it.all_reduce(tensor, "average")
        with with_it.grouped():  # alone, both ranks would wait for each other
            with_it.send(tensor, other)
            with_it.recv(received, other)
        assert received.tolist() == tensor.tolist() == [0.5, 1]
        got = numbers(0)
        with with_it.grouped(timeout=20):
            with_it.send(numbers(group.rank), other)  # alone both would wait for each other
            with with_it.grouped():
                with_it.recv(got, other)
            assert got.tolist() == [0]
        assert got.tolist() == [other]
        with pytest.raises(ZeroDivisionError):
            with with_it.grouped():
                with_it.send(numbers(7), other)
                1 / 0
        with with_it.grouped():
            with_it.send(numbers(8), other)
            with_it.recv(got, other)
        assert got.tolist() == [8]
        with_it.close()

    in_ranks(2, part)


@needs_gloo
def test_what_only_moves_may_be_of_any_dtype(in_ranks: Ranks) -> None:
    np = pytest.importorskip("numpy", reason="Debian: python3-numpy")

    def part(group: Group) -> None:
        with_it = gloo.create(group)
        whole = np.zeros((2, 2), dtype=np.complex64)
        with_it.all_gather(np.array([1j * group.rank, 2]), np.zeros((2, 2), dtype=complex))
        with_it.all_gather(np.full(2, 1j * group.rank, dtype=np.complex64), whole)
        assert whole.tolist() == [[0, 0], [1j, 1j]]
        flags = np.array([group.rank == 0])
        with_it.broadcast(flags)
        assert flags.tolist() == [True]
        with pytest.raises(muster.InvalidArgument, match="tensor: no reduction takes complex64"):
            with_it.all_reduce(whole)
        with_it.close()

    in_ranks(2, part)


@needs_gloo
def test_tensors_are_refused_by_name_and_nothing_was_done(in_ranks: Ranks) -> None:
    np = pytest.importorskip("numpy", reason="Debian: python3-numpy")

    def part(group: Group) -> None:
        with_it = gloo.create(group)
        read_only = np.zeros(2, dtype=np.float32)
        read_only.flags.writeable = False
        grad, _ = host_tensor([1, 2], requires_grad=True)
        strided = np.zeros(4, dtype=np.float32)[::2]
        on_gpu = Foreign(1 << 20, (2,), device=(2, 0))
        fine = np.zeros(2, dtype=np.float32)
        refusals: list[tuple[Callable[[], None], str]] = [
            (lambda: with_it.all_reduce(read_only), "tensor: it is read-only"),
            (lambda: with_it.all_reduce(fine, out=read_only), "out: it is read-only"),
            (lambda: with_it.all_reduce(grad), "tensor: it requires grad"),
            (lambda: with_it.send(grad, 1), "tensor: it requires grad"),
            (lambda: with_it.all_reduce(strided), "tensor: it is not contiguous"),
            (lambda: with_it.all_gather(fine, strided), "out: it is not contiguous"),
            (lambda: with_it.all_reduce(on_gpu), "tensor: it is on cuda:0, and Gloo takes host"),
            (lambda: with_it.all_gather(fine, fine), "out: it has 2 elements, and would have 4"),
            (lambda: with_it.all_gather(fine, np.zeros(6, dtype=np.float32)), "would have 4"),
            (lambda: with_it.all_reduce(fine, out=np.zeros(2)), "out: its dtype is float64"),
            (lambda: with_it.reduce_scatter(np.zeros(3), np.zeros(1)), "tensor: it has 3"),
            (lambda: with_it.scatter(None, None), "tensor: "),
            (lambda: with_it.all_reduce(fine, stream=1), "stream"),
            (lambda: with_it.broadcast(fine, 7), "rank 7"),
        ]
        for call, text in refusals:
            with pytest.raises(muster.InvalidArgument, match=text):
                call()
        with pytest.raises(ValueError, match="op: "):
            with_it.all_reduce(fine, "mean")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="tensor: "):
            with_it.all_reduce([1.0])
        with_it.all_reduce(fine)  # it goes on
        if group.rank == 0:
            with_it.send(read_only, 1)  # what is only read may be
        else:
            with_it.recv(fine, 0)
        with_it.close()

    in_ranks(2, part)
    gc.collect()
    assert foreign.lent_count() == 0


@needs_gloo
def test_a_lost_rank_ends_it_and_the_host_is_told(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        told: list[muster.MusterError] = []
        heard = threading.Event()

        def ended(error: muster.MusterError) -> None:
            told.append(error)
            heard.set()

        with_it = gloo.create(group, gloo.Options(on_end=ended))
        group.barrier()
        if group.rank == 1:
            group.leave()
            return
        with pytest.raises(muster.RankLeft) as raised:
            with_it.all_reduce(numbers(1))
        assert raised.value.rank_numbers == [1]
        assert heard.wait(20)
        assert isinstance(told[0], muster.RankLeft)
        assert isinstance(with_it.error, muster.RankLeft)

    in_ranks(2, part)


@needs_gloo
def test_an_abort_ends_calls_of_other_threads(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        with_it = gloo.create(group)
        group.barrier()
        if group.rank == 1:
            group.recv_obj(0)
            return
        threading.Timer(0.1, with_it.abort).start()
        with pytest.raises(muster.Aborted):
            with_it.all_reduce(numbers(1))
        Communicator.abort_all([with_it])
        group.send_obj("over", 1)

    in_ranks(2, part)


@needs_gloo
def test_close_may_be_called_again(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        with gloo.create(group) as with_it:
            assert repr(with_it) == (
                f"<muster.Communicator of gloo, group 'g': rank {group.rank} of 2>"
            )
        aborted = gloo.create(group)
        group.barrier()  # the other rank has it, too
        aborted.abort()
        group.barrier()  # and has not left before
        for one in (with_it, aborted):
            one.close()
            one.abort()
            assert repr(one).endswith(" of 2, closed>")
        assert (type(with_it.error), type(aborted.error)) == (muster.Closed, muster.Aborted)

    in_ranks(2, part)


@needs_gloo
def test_a_with_block_that_raises_aborts(in_ranks: Ranks) -> None:
    def part(group: Group) -> None:
        with pytest.raises(ZeroDivisionError), gloo.create(group) as with_it:
            1 / 0  # the other ranks of a group never come to `close`
        assert type(with_it.error) is muster.Aborted

    in_ranks(1, part)


@needs_gloo
def test_what_goes_with_its_runtime_is_closed(in_job: Callable[..., list[Any]]) -> None:
    def part(job: Runtime) -> None:
        with_it = job.world.communicator("cpu")
        assert with_it is not None
        gone: list[Any] = [with_it, job.group, job.store]
        job.shutdown()
        Communicator.abort_all([with_it])
        with_it.abort()
        for one in gone:
            with one:
                assert repr(one).endswith(", closed>")
            one.close()

    in_job(1, part, communicators="gloo")


@needs_gloo
def test_a_forked_child_leaves_with_blocks(process: Any) -> None:
    one = process("""
        import muster.runtime, os
        with muster.runtime.Runtime({}) as job:
            job.init(communicators="gloo")
            with job.world.communicator("cpu"):
                if child := os.fork():
                    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        sys.exit(0 if child else 5)
    """)
    out, errors = one.communicate(timeout=60)
    assert (one.returncode, out, errors) == (0, "5\n", "")


@needs_gloo
def test_the_runtime_makes_communicators(in_job: Callable[..., list[Any]]) -> None:
    def part(job: Runtime) -> None:
        with_it = job.world.communicator("cpu")
        assert with_it is not None
        assert job.world.communicator("cuda") is None
        got = numbers(job.rank)
        with_it.all_reduce(got)
        assert got.tolist() == [1]
        two = job.subgroup([0, 1], communicators="cpu:gloo")
        of_two = two.communicator("cpu")
        assert of_two is not None
        of_two.all_reduce(got)
        assert got.tolist() == [2]
        job.shutdown()
        with pytest.raises(muster.Closed):
            with_it.all_reduce(got)

    in_job(2, part, communicators="gloo", gloo=gloo.Options(abort_timeout=5))


@needs_gloo
@pytest.mark.parametrize("call", ["all_reduce(numbers)", "recv(numbers, 0)", "close()"])
def test_ctrl_c_ends_a_call_and_the_communicator(
    process: Any, address: str, namespace: str, call: str
) -> None:
    one = process(f"""
        import array, muster.runtime
        job = muster.runtime.Runtime({variables_of(1, 2, address)!r})
        job.init(namespace={namespace!r}, communicators="gloo")
        numbers = array.array("f", [1.0])
        with_it = job.world.communicator("cpu")
        print("ready", flush=True)
        try:
            with_it.{call}
        except KeyboardInterrupt as interrupted:
            print(type(interrupted.error).__name__, with_it.error is not None, flush=True)
    """)
    job = Runtime(variables_of(0, 2, address))
    job.init(namespace=namespace, communicators="gloo")
    assert one.stdout.readline().strip() == "ready"
    time.sleep(0.2)
    sent = time.monotonic()
    one.send_signal(signal.SIGINT)
    assert one.stdout.readline().strip() == "Aborted True", one.stderr.read()
    assert time.monotonic() - sent < 2
    one.communicate(timeout=30)


@needs_gloo
def test_the_interpreter_ends_while_a_call_waits(
    process: Any, address: str, namespace: str
) -> None:
    one = process(f"""
        import array, muster.runtime, threading
        job = muster.runtime.Runtime({variables_of(1, 2, address)!r})
        job.init(namespace={namespace!r}, communicators="gloo")
        numbers = array.array("f", [1.0])
        threads = [
            threading.Thread(target=call, args=arguments, daemon=True) for call, *arguments in (
                (job.world.communicator("cpu").all_reduce, numbers),
                (muster.runtime.Runtime({{}}).init,),
            )
        ]
        for thread in threads:
            thread.start()
        threads[0].join(0.2)
        print("ends", flush=True)
    """)
    job = Runtime(variables_of(0, 2, address))
    job.init(namespace=namespace, communicators="gloo")
    began = time.monotonic()
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "ends"
    assert one.returncode == 0, errors
    assert time.monotonic() - began < 20


@needs_gloo
def test_a_forked_child_is_told(process: Any, address: str) -> None:
    one = process("""
        import array, muster.runtime, os
        job = muster.runtime.Runtime({})
        job.init(communicators="gloo")
        with_it = job.world.communicator("cpu")
        numbers = array.array("f", [1.0])
        lock = muster.runtime.FileLock(f"/tmp/muster-fork-{os.getpid()}")
        if (child := os.fork()) == 0:
            calls = (job.group.barrier, lambda: with_it.all_reduce(numbers), lock.release)
            for place, call in enumerate(calls, 1):
                try:
                    call()
                    os._exit(place)
                except muster.Forked:
                    pass
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        with_it.all_reduce(numbers)
        lock.release()
        job.shutdown()
        print(os.waitstatus_to_exitcode(status), flush=True)
    """)
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "0", errors


def test_without_gloo_its_module_says_so(monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
    monkeypatch.setattr(gloo, "is_available", lambda: False)
    with pytest.raises(muster.Unsupported, match="no Gloo"):
        gloo.create(Group(store, "g", 0, 1))
