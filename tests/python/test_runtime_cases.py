"""The cases of the neighbouring libraries' tests, from Python: their numbers are those of
tests/runtime. What other files here have is not repeated."""

from __future__ import annotations

import array
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muster
import pytest
from conftest import PATIENCE, in_threads, variables_of
from muster.runtime import (
    Runtime,
    SharedWorkspace,
    SignalFolder,
    all_reduce_tensor,
    gathered_tensors,
    recv_tensor,
    send_tensor,
    synchronize_over,
)

Job = Callable[..., list[Any]]


def test_v1_groups_overlap_and_a_common_rank_reaches_the_right_ones(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        if job.rank <= 2:
            three = job.subgroup([0, 1, 2])
            assert three.group is not None
            assert three.group.broadcast_obj(job.rank, 2) == 2
        assert job.group.broadcast_obj(job.rank, 3) == 3
        job.shutdown()

    in_job(4, part)


def test_v2_sums_over_groups_that_overlap(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        numbers = array.array("f", [job.rank] * 16)
        all_reduce_tensor(job, numbers)
        if job.rank < 3:
            all_reduce_tensor(job.subgroup([0, 1, 2]), numbers)
        assert numbers.tolist() == [6.0 if job.rank == 3 else 18.0] * 16
        job.shutdown()

    in_job(4, part)


def test_v3_and_v4_strings_are_broadcast_and_ranks_gathered(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        assert job.group.broadcast_obj("secret" if job.rank == 2 else "", 2) == "secret"
        assert job.group.all_gather_obj(job.rank) == [0, 1, 2, 3]
        job.shutdown()

    in_job(4, part)


def test_v5_nodes_may_differ_in_size(address: str, namespace: str) -> None:
    node_of = [0, 0, 1]

    def work(rank: int) -> None:
        job = Runtime({
            "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank % 2),
            "LOCAL_WORLD_SIZE": str(node_of.count(node_of[rank])), "NODE_RANK": str(node_of[rank]),
            "NUM_NODES": "2", "MUSTER_STORE": address,
        })
        job.init(namespace=namespace, timeout=PATIENCE)
        assert job.node_count == 2
        assert [place.node_rank for place in job.places] == node_of
        assert [place.local_rank for place in job.places] == [0, 1, 0]
        job.shutdown()

    in_threads(3, work)


def test_v5_ranks_that_nobody_has_told_of_their_nodes_find_them(
    address: str, namespace: str
) -> None:
    def work(rank: int) -> None:
        job = Runtime({"RANK": str(rank), "WORLD_SIZE": "3", "MUSTER_STORE": address})
        job.init(namespace=namespace, timeout=PATIENCE)
        assert job.node_count == 1
        assert (job.local_rank, job.local_world_size, job.node_rank) == (rank, 3, 0)
        job.shutdown()

    in_threads(3, work)


@pytest.mark.parametrize("count", [3, 500_000])
def test_v6_two_senders_to_one_receiver_keep_their_streams_apart(in_job: Job, count: int) -> None:
    def part(job: Runtime) -> None:
        for number in range(3):
            if job.rank != 0:
                send_tensor(job, 0, array.array("i", [100 * job.rank + number]) * count)
                continue
            for source in (2, 1):
                received = memoryview(recv_tensor(job, source))  # type: ignore[arg-type]
                assert received.shape == (count,)
                assert received[0] == received[count - 1] == 100 * source + number
        job.shutdown()

    in_job(3, part)


def test_o6_a_second_init_says_which_options_differ(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        with pytest.raises(muster.InvalidArgument, match="other options"):
            job.init(timeout=PATIENCE, name="another")
        assert job.is_initialized
        assert job.group.all_gather_obj(job.rank) == [0, 1]
        job.shutdown()

    in_job(2, part)


def test_m2_a_value_goes_over_several_groups_one_after_the_other(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        row = job.subgroup([0, 1] if job.rank < 2 else [2, 3])
        column = job.subgroup([0, 2] if job.rank % 2 == 0 else [1, 3])
        assert synchronize_over([row, column], 10**job.rank, sum) == 1111
        job.shutdown()

    in_job(4, part)


def test_m4_two_jobs_of_the_same_ranks_do_not_meet(address: str, namespace: str) -> None:
    np: Any = pytest.importorskip("numpy", reason="Debian: python3-numpy")

    def work(number: int) -> None:
        which, rank = divmod(number, 2)
        job = Runtime(variables_of(rank, 2, address))
        job.init(timeout=PATIENCE, namespace=f"{namespace}-{which}")
        for _ in range(20):
            with gathered_tensors(job, np.full(4, number)) as all_:
                expected = [2 * which, 2 * which + 1] if rank == 0 else []
                assert [np.asarray(each)[0] for each in all_] == expected
        job.shutdown()

    in_threads(4, work)


def test_m7_a_stale_file_of_an_earlier_run_is_never_returned(tmp_path: Path) -> None:
    earlier = SharedWorkspace(str(tmp_path), 0)
    earlier.write(5, b"old")
    reader = SharedWorkspace(str(tmp_path), 1)
    with pytest.raises(muster.NotFound):
        reader.read(0, generation_min=6, timeout=0.05)
    with pytest.raises(muster.NotFound):
        reader.read(0, generation_max=4, timeout=0.05)
    assert reader.read(0).config == b"old"


def test_there_is_a_limit_whatever_is_told(in_job: Job) -> None:
    over = threading.Event()

    def part(job: Runtime) -> None:
        if job.rank == 0:
            with job.rank_zero() as turn:
                while not over.wait(0.01):
                    turn.progress("again")
        else:
            with pytest.raises(muster.TimedOut) as raised:
                with job.rank_zero(limit=0.3):
                    raise AssertionError("the body does not run")
            over.set()
            assert raised.value.rank_numbers == [0]
        job.group.barrier()

    in_job(2, part)


def test_all_ranks_whose_body_has_failed_are_named(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        with pytest.raises((muster.CallbackFailed, ZeroDivisionError)) as raised:
            with job.n_at_a_time(1):
                if job.rank != 0:
                    1 / 0
        assert isinstance(raised.value, muster.CallbackFailed) == (job.rank == 0)
        if isinstance(raised.value, muster.CallbackFailed):
            assert raised.value.rank_numbers == [1, 2]
        job.shutdown()

    in_job(3, part)


def leading(process: Any, folder: Path) -> subprocess.Popen[str]:
    """A process that is local rank 0 of two, and stays in its body."""
    one: subprocess.Popen[str] = process(f"""
        import muster.runtime
        folder = muster.runtime.SignalFolder({str(folder)!r}, {variables_of(0, 2, "")!r}, job="j")
        with folder.local_rank_zero_first():
            print("inside", flush=True)
            sys.stdin.readline()
    """)
    assert one.stdout is not None
    assert one.stdout.readline().strip() == "inside"
    return one


def test_by_files_a_local_rank_zero_that_is_killed_is_named(process: Any, tmp_path: Path) -> None:
    one = leading(process, tmp_path)
    # It has been seen alive: a file that a dead process has left counts for nothing.
    killer = threading.Timer(0.3, one.kill)
    killer.start()
    folder = SignalFolder(str(tmp_path), variables_of(1, 2, ""), job="j")
    with pytest.raises(muster.RankLost) as raised:
        with folder.local_rank_zero_first():
            raise AssertionError("the body does not run")
    killer.join()
    assert raised.value.rank_numbers == [0]
    assert raised.value.ranks[0].pid == one.pid


def test_by_files_there_is_one_local_rank_zero(process: Any, tmp_path: Path) -> None:
    one = leading(process, tmp_path)
    with pytest.raises(muster.Busy, match=str(one.pid)):
        with SignalFolder(str(tmp_path), variables_of(0, 2, ""), job="j").local_rank_zero_first():
            raise AssertionError("the body does not run")
    assert one.stdin is not None
    one.stdin.write("\n")
    one.stdin.flush()
    ran: list[int] = []
    with SignalFolder(str(tmp_path), variables_of(1, 2, ""), job="j").local_rank_zero_first():
        ran.append(1)
    assert ran == [1]
    assert one.wait(PATIENCE) == 0
    assert list(tmp_path.iterdir()) == []


def test_by_files_other_starts_and_nodes_have_files_of_their_own(tmp_path: Path) -> None:
    def work(number: int) -> None:
        rank, attempt = number % 4, number // 4
        variables = variables_of(rank, 4, "", nodes=2)
        folder = SignalFolder(str(tmp_path), variables, job="j", attempt=str(attempt))
        done = tmp_path.with_name(f"done-{attempt}-{rank // 2}")
        with folder.local_rank_zero_first():
            assert done.exists() == (rank % 2 != 0)
            done.touch()

    in_threads(8, work)
    assert list(tmp_path.iterdir()) == []
