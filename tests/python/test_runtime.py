"""How a job begins and ends, its groups and its values, from Python."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import muster
import pytest
from muster.runtime import (
    Environment,
    Mesh,
    RankGroup,
    Runtime,
    all_reduce_value,
    broadcast_list,
    synchronize_flag,
    synchronize_over,
    synchronize_value,
)

Job = Callable[..., list[Any]]


@pytest.mark.parametrize("variables, number, found", [
    ({}, "world_size", (1, "", False)),
    ({"WORLD_SIZE": "4", "RANK": "3"}, "rank", (3, "RANK", False)),
    ({"WORLD_SIZE": "4", "RANK": "3", "LOCAL_WORLD_SIZE": "2"}, "node_rank",
     (1, "RANK, LOCAL_WORLD_SIZE", True)),
])
def test_numbers_come_from_variables(
    variables: dict[str, str], number: Any, found: tuple[int, str, bool]
) -> None:
    assert Environment(variables).number(number) == found


def test_c7_an_environment_says_what_is_wrong_with_it() -> None:
    lonely: list[dict[str, str]] = [{}, {"LOCAL_RANK": "0"}, {"LOCAL_WORLD_SIZE": "1"}]
    for alone in lonely:
        assert Environment(alone).is_single_process
    with pytest.raises(muster.EnvironmentWrong, match="RANK"):
        Environment({"RANK": "1"}).validate()
    with pytest.raises(muster.EnvironmentWrong) as raised:
        Environment({"RANK": "x", "WORLD_SIZE": "2"}).number("rank")
    assert "RANK" in raised.value.detail
    formed = {"rank": 0, "world_size": 1}
    with pytest.raises(muster.EnvironmentWrong):
        Environment({"WORLD_SIZE": "2", "RANK": "0"}).number(
            "world_size", "environment_first", formed,  # type: ignore[arg-type]
        )
    assert Environment({"WORLD_SIZE": "2", "RANK": "1"}).number("rank", "group_first").value == 0
    assert Environment({}).find("rank") is None
    assert Environment({"A": "1"}) == Environment({"A": "1"}) != Environment({"A": "2"})
    assert Environment({"A": ""}).variable("A") is None
    with pytest.raises(ValueError, match="replica_rank"):
        Environment({}).find("size")  # type: ignore[arg-type]


def test_before_init_a_process_is_alone() -> None:
    job = Runtime({})
    assert not job.is_initialized
    assert (job.rank, job.world_size, job.local_rank, job.node_count) == (0, 1, 0, 1)
    assert job.places == []
    assert job.store is None
    assert job.world.group is None
    calls: list[Callable[[], object]] = [
        lambda: job.group, lambda: job.shutdown(), lambda: job.subgroup([0]),
        lambda: job.local_rank_zero_first().__enter__(),
        lambda: job.on_rank_zero(lambda _: 1), lambda: synchronize_value(job, 1),
    ]
    for call in calls:
        with pytest.raises(muster.NotInitialized):
            call()


def test_a_single_process_needs_no_address() -> None:
    with Runtime({}) as job:
        job.init()
        assert job.group.all_gather_obj("alone") == ["alone"]
        assert job.store is not None
        job.store.set("k", "v")
        world = job.world
        job.init()
        with pytest.raises(muster.InvalidArgument, match="other options"):
            job.init(name="another")
    assert not job.is_initialized
    with pytest.raises(muster.Closed, match="shut down"):
        world.places
    job.init()  # once more
    assert job.group.all_gather_obj(1) == [1]


def test_ranks_meet_and_know_where_each_is(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        assert job.world_size == 4
        assert [place.node_rank for place in job.places] == [0, 0, 1, 1]
        assert [place.local_rank for place in job.world.places] == [0, 1, 0, 1]
        assert job.places[job.rank].process.pid > 0
        assert job.node_count == 2
        assert job.number("local_rank").value == job.rank % 2
        assert job.group.all_gather_obj(job.rank) == [0, 1, 2, 3]
        job.shutdown()

    in_job(4, part, nodes=2)


def test_who_does_not_come_is_named(address: str, namespace: str) -> None:
    job = Runtime({"RANK": "0", "WORLD_SIZE": "2", "MUSTER_STORE": address})
    with pytest.raises(muster.TimedOut) as raised:
        job.init(timeout=0.2, namespace=namespace)
    assert raised.value.rank_numbers == [1]
    assert not job.is_initialized


def test_subgroups_are_of_the_ranks_that_were_named(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        mesh = Mesh({"data": 2, "tensor": 2})
        assert mesh.coordinates(3) == [1, 1]
        assert mesh.coordinates(4) is None
        assert mesh.dimensions == {"data": 2, "tensor": 2}
        along = job.subgroup(mesh, "tensor")
        assert along.world_ranks == mesh.ranks_along("tensor", job.rank)
        assert along.rank_of(job.rank) == along.world_ranks.index(job.rank)
        assert along.rank_of(3 - job.rank) is None
        assert along.group is not None
        assert along.group.all_gather_obj(job.rank) == along.world_ranks
        if job.rank in (2, 0):
            two = job.subgroup([2, 0], name="reversed")
            assert two.group is not None
            assert two.group.all_gather_obj(job.rank) == [2, 0]
        with pytest.raises(muster.InvalidArgument, match="only members"):
            job.subgroup([(job.rank + 1) % 4])
        with pytest.raises(muster.InvalidArgument):
            Mesh({"data": 0})
        job.shutdown()

    in_job(4, part)


def test_dimensions_of_size_1_and_repeated_calls_have_groups_of_their_own(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        mesh = Mesh({"data": 2, "tensor": 1, "pipeline": 1})
        groups = [job.subgroup(mesh, name) for name in ("tensor", "pipeline", "data", "tensor")]
        groups += [job.subgroup([0, 1]), job.subgroup([0, 1])]
        for ranks in groups:
            assert ranks.group is not None
            assert ranks.group.all_gather_obj(job.rank) == ranks.world_ranks
        assert len({ranks.group.name for ranks in groups if ranks.group}) == len(groups)
        job.shutdown()

    in_job(2, part)


def test_a_group_of_ones_own_gets_places(in_ranks: Callable[..., list[Any]]) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        ranks = RankGroup(group, Environment({}))
        assert group.all_gather_obj(group.rank) == [0, 1]  # it goes on
        assert ranks.world_ranks == [0, 1]
        assert [place.local_rank for place in ranks.places] == [0, 1]
        with ranks.n_at_a_time(1):
            pass
        group.barrier()

    in_ranks(2, part)


def test_values_are_agreed_on(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        assert synchronize_value(job, job.rank + 7, root=1) == 8
        assert synchronize_flag(job, job.rank == 0) is True
        assert synchronize_value(job.world, 0.5 * job.rank, root=2) == 1.0
        assert all_reduce_value(job.group, job.rank) == 3
        assert all_reduce_value(job, 0.25, "average") == 0.25
        assert all_reduce_value(job, 2, "SUM") == 2 * job.world_size  # torch's name
        assert all_reduce_value(job, job.rank == 1, "max") is True
        assert all_reduce_value(job, 1 << job.rank, "bit_or") == 7
        with pytest.raises(muster.OutOfRange):
            all_reduce_value(job, 2**62)
        with pytest.raises(OverflowError):
            synchronize_value(job, 2**64)
        with pytest.raises(muster.Mismatch) as raised:
            mixed: Any = 1 if job.rank == 0 else 1.0
            synchronize_value(job, mixed)
            raise raised.value if job.rank else muster.Mismatch("the root has its own")
        with pytest.raises(muster.InvalidArgument, match="none of sum"):
            all_reduce_value(job, 1, "concatenate")  # type: ignore[arg-type]
        with pytest.raises(muster.Mismatch) as alone:
            op: Any = "concatenate" if job.rank == 1 else "sum"
            all_reduce_value(job, 1, op)
        assert [report.rank for report in alone.value.ranks] == [1]
        with pytest.raises(TypeError, match="value"):
            synchronize_value(job, "text")  # type: ignore[type-var]
        job.shutdown()

    in_job(3, part)


def test_a_value_that_one_rank_refuses_is_a_mismatch_of_the_others(in_job: Job) -> None:
    bad: list[tuple[type[Exception], Any, Any, Any]] = [
        (TypeError, "text", "sum", None), (TypeError, Decimal(1), "sum", None),
        (OverflowError, 2**63, "sum", None), (TypeError, 1, None, None),
        (TypeError, 1, "sum", "soon"), (ValueError, 1, "sum", -1),
    ]

    def part(job: Runtime) -> None:
        for error, value, op, timeout in bad:
            with pytest.raises(error if job.rank == 1 else muster.Mismatch) as raised:
                if job.rank == 1:
                    all_reduce_value(job, value, op, timeout=timeout)
                else:
                    all_reduce_value(job, 1)
            if isinstance(raised.value, muster.Mismatch):
                assert raised.value.rank_numbers == [1]
            if op is None:
                continue
            with pytest.raises(error if job.rank == 1 else muster.Mismatch):
                if job.rank == 1:
                    synchronize_value(job, value, 1, timeout=timeout)
                else:
                    synchronize_value(job, 1, 1)
        root: Any = Decimal(1) if job.rank == 1 else 1
        with pytest.raises(TypeError if job.rank == 1 else muster.CollectiveMismatch):
            synchronize_value(job, 1, root)
        job.shutdown()

    in_job(3, part)


def test_o1_and_m2_objects_are_agreed_on(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        mine = ["abc", "abc"] if job.rank else ["abc", "def"]
        assert broadcast_list(job, mine) == ["abc", "def"]
        if job.rank == 0:
            broadcast_list(job, [1, 2])
        else:
            with pytest.raises(muster.Mismatch) as raised:
                broadcast_list(job, [1])
            assert (raised.value.expected, raised.value.actual) == (1, 2)
            assert raised.value.rank_numbers == [0]
        given = "first" if job.rank == 0 else None
        assert synchronize_over([job, None], given, lambda all: all[0]) == "first"
        job.shutdown()

    in_job(2, part)


def test_shutdown_says_who_is_missing(in_job: Job) -> None:
    over = threading.Event()

    def part(job: Runtime) -> None:
        if job.rank == 1:
            over.wait(20)
            return
        with pytest.raises(muster.TimedOut) as raised:
            job.shutdown(timeout=0.3)
        over.set()
        assert raised.value.rank_numbers == [1]
        assert not job.is_initialized

    in_job(2, part)


def test_shutdown_may_be_called_again() -> None:
    with Runtime({}) as job:
        job.init()
        lent: list[Any] = [job.store, job.group]
        for _ in range(2):
            job.shutdown()
            assert repr(job).endswith(" on node 0, shut down>")
        for gone in lent:
            gone.cancel()
            gone.close()
            assert repr(gone).endswith(", closed>")
    job.init()
    assert repr(job).endswith(" on node 0>")
    job.shutdown()


def test_an_exception_leaves_the_job_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        with Runtime({}) as job:
            job.init()
            1 / 0
    assert job.is_initialized


def test_abort_tells_the_others_why(process: Any, address: str, namespace: str) -> None:
    other = process(f"""
        import muster.runtime
        job = muster.runtime.Runtime(
            {{"RANK": "1", "WORLD_SIZE": "2", "MUSTER_STORE": address}})
        job.init(namespace={namespace!r}, timeout=30)
        try:
            job.abort(7, "the loss is not a number")
        finally:
            print("never", flush=True)
    """)
    job = Runtime({"RANK": "0", "WORLD_SIZE": "2", "MUSTER_STORE": address})
    job.init(namespace=namespace, timeout=30)
    with pytest.raises(muster.GroupInterrupted, match="not a number"):
        job.group.barrier()
    out, errors = other.communicate(timeout=30)
    assert out == "", errors
    assert other.returncode == 7


def test_places_that_contradict_each_other_are_named(address: str, namespace: str) -> None:
    failures: list[muster.MusterError] = []

    def work(rank: int) -> None:
        job = Runtime({
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2",
            "NODE_RANK": "0", "NUM_NODES": "1", "MUSTER_STORE": address,
        })
        try:
            job.init(namespace=namespace, timeout=30)
        except muster.MusterError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [type(error) for error in failures] == [muster.Mismatch, muster.Mismatch]


def test_the_runtime_is_not_part_of_the_import(process: Any) -> None:
    one = process("print([name for name in sys.modules if name.startswith('muster.runtime')])")
    assert one.communicate(timeout=60)[0].strip() == "[]"


def test_ctrl_c_ends_init_and_the_job_may_begin_again(process: Any, address: str) -> None:
    import signal

    one = process("""
        import muster.runtime
        job = muster.runtime.Runtime({"RANK": "0", "WORLD_SIZE": "2", "MUSTER_STORE": address})
        print("ready", flush=True)
        try:
            job.init(namespace="ctrl-c-init")
        except KeyboardInterrupt as interrupted:
            print(type(interrupted.error).__name__, job.is_initialized, flush=True)
    """)
    assert one.stdout.readline().strip() == "ready"
    time.sleep(0.2)
    one.send_signal(signal.SIGINT)
    out, errors = one.communicate(timeout=30)
    assert out.strip() == "Cancelled False", errors
