"""What ranks share, locks and the sampler, from Python."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muster
import pytest
from muster.runtime import (
    DistributedSampler,
    FileLock,
    Runtime,
    SharedWorkspace,
    State,
    gathered_states,
    gathered_tensors,
)

Job = Callable[..., list[Any]]
np = pytest.importorskip("numpy", reason="Debian: python3-numpy")


def test_m3_the_first_rank_has_what_all_gave(in_job: Job, tmp_path: Path) -> None:
    def part(job: Runtime) -> None:
        own = np.full(4, job.rank, dtype=np.float32)
        for folder in ("", str(tmp_path)):
            with gathered_tensors(job, own, group_ranks=[2, 0, 1], folder=folder) as all_:
                if job.rank != 2:
                    assert all_ == []
                else:
                    assert [np.asarray(each)[0] for each in all_] == [2, 0, 1]
                    assert [each.is_read_only for each in all_] == [False, True, True]
                    assert not np.asarray(all_[1]).flags.writeable
        kept = [np.asarray(each) for each in all_]
        del all_
        gc.collect()
        assert [each[0] for each in kept] == ([2, 0, 1] if job.rank == 2 else [])
        job.shutdown()

    in_job(3, part)
    assert list(tmp_path.iterdir()) == []


def test_m3_a_body_that_raises_is_told_to_all(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        kind = ZeroDivisionError if job.rank == 0 else muster.CallbackFailed
        with pytest.raises(kind, match="division"):
            with gathered_tensors(job.world, np.zeros(1)):
                if job.rank == 0:
                    1 / 0
        with gathered_tensors(job, np.zeros(1)):  # it goes on
            pass
        job.shutdown()

    in_job(2, part)


def test_what_one_rank_cannot_give_is_an_error_of_all(in_job: Job) -> None:
    bad: Any = [1.0]
    ways: list[Callable[[Runtime], Any]] = [
        lambda job: gathered_tensors(job, bad if job.rank == 1 else np.zeros(1)),
        lambda job: gathered_states(job, State(bad if job.rank == 1 else "", {})),
        lambda job: gathered_states(job, State("", {"a": bad} if job.rank == 1 else {})),
        lambda job: gathered_tensors(job, np.zeros(1), body_timeout=-1.0 if job.rank == 1 else 9),
    ]

    def part(job: Runtime) -> None:
        for way in ways:
            own = (TypeError, ValueError)
            with pytest.raises(own if job.rank == 1 else muster.InvalidArgument) as raised:
                with way(job):
                    raise AssertionError("no body runs")
            if job.rank == 0:
                assert isinstance(raised.value, muster.InvalidArgument)
                assert raised.value.rank_numbers == [1]
        job.shutdown()

    in_job(2, part)


def test_m5_unequal_tensors_are_an_error_on_all(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        own = np.zeros(job.rank + 1)
        with pytest.raises(muster.Mismatch) as raised:
            with gathered_tensors(job, own):
                raise AssertionError("no body runs")
        assert raised.value.rank_numbers == [1]
        with gathered_tensors(job, own, equal_tensors=False) as all_:
            assert [each.shape for each in all_] == ([(1,), (2,)] if job.rank == 0 else [])
        job.shutdown()

    in_job(2, part)


def test_m7_an_empty_place_stays_empty(in_job: Job, tmp_path: Path) -> None:
    def part(job: Runtime) -> None:
        own = None
        if job.rank != 1:
            own = State(f'{{"rank": {job.rank}}}', {"w": np.full(2, job.rank), "b": np.zeros(())})
        for folder in ("", str(tmp_path)):
            with gathered_states(job, own, folder=folder) as states:
                if job.rank != 0:
                    assert states == []
                    continue
                first, nothing, last = states
                assert nothing is None
                assert first is not None and last is not None
                assert last.config == b'{"rank": 2}'
                assert list(last.tensors) == ["w", "b"]
                assert np.asarray(last.tensors["w"]).tolist() == [2, 2]
        job.shutdown()

    in_job(3, part)


def test_what_was_gathered_lives_as_long_as_its_tensors() -> None:
    with Runtime({}) as job:
        job.init()
        own = np.full(4, 7.0)
        gone = weakref.ref(own)
        with gathered_tensors(job, own) as all_:
            for version in (None, (1, 0)):
                all_[0].__dlpack__(max_version=version)  # a capsule that nobody takes
        (kept,) = all_
        del own, all_
        gc.collect()
        assert gone() is not None
        assert np.asarray(kept).tolist() == [7] * 4
        del kept
        gc.collect()
        assert gone() is None


def test_a_tensor_with_gaps_is_no_bytes(tmp_path: Path) -> None:
    with Runtime({}) as job:
        job.init()
        with gathered_tensors(job, np.arange(6).reshape(2, 3).T) as (own,):
            across: Any = own
            with pytest.raises(BufferError, match="contiguous"):
                SharedWorkspace(str(tmp_path), 0).write(1, across, {})


def test_a_gathering_without_a_world_says_so() -> None:
    with pytest.raises(muster.NotInitialized):
        with gathered_tensors(Runtime({}), np.zeros(1)):
            pass


def test_a_workspace_keeps_states_of_ranks(tmp_path: Path) -> None:
    folder = str(tmp_path / "made")
    mine, theirs = SharedWorkspace(folder, 0), SharedWorkspace(folder, 1)
    with pytest.raises(muster.NotFound):
        theirs.read(0)
    mine.write(7, b"config", {"w": np.arange(6).reshape(2, 3)})
    state = theirs.read(0)
    assert state.config == b"config"
    assert (np.asarray(state.tensors["w"]) == np.arange(6).reshape(2, 3)).all()
    with pytest.raises(muster.NotFound):
        theirs.read(0, generation_min=8, timeout=0.05)
    assert theirs.read(0, generation_min=7, generation_max=7).config == b"config"
    waiting: list[State] = []
    reader = threading.Thread(
        target=lambda: waiting.append(theirs.read(0, generation_min=8, timeout=20))
    )
    reader.start()
    mine.write(8, "later")
    reader.join(30)
    assert waiting[0].config == b"later"
    path = Path(mine.path_of(0))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(muster.CodecFailure) as raised:
        theirs.read(0)
    assert raised.value.rank_numbers == [0]
    mine.remove()
    assert list((tmp_path / "made").iterdir()) == []
    nowhere = SharedWorkspace(None, 0)
    assert not nowhere.is_initialized
    with pytest.raises(muster.NotInitialized):
        nowhere.write(1)


def test_m8_one_has_the_lock(tmp_path: Path, process: Any) -> None:
    path = str(tmp_path / "lock")
    with FileLock(path, label="the test") as lock:
        assert lock.is_held
        assert lock.path == path
        owner = FileLock.owner_of(path)
        assert owner is not None
        assert (owner.pid, owner.label) == (os.getpid(), "the test")
        with pytest.raises(muster.Busy, match="the test"):
            FileLock(path)
        with pytest.raises(muster.TimedOut):
            FileLock(path, timeout=0.05)
        assert os.path.exists(path)
    assert not lock.is_held
    assert FileLock.owner_of(path) is None
    with pytest.raises(muster.Closed, match="acquire by another"), lock:
        pass
    assert not os.path.exists(path)
    one: subprocess.Popen[str] = process(f"""
        import muster.runtime, time
        lock = muster.runtime.FileLock({path!r}, label="the victim")
        print("has it", flush=True)
        time.sleep(60)
    """)
    assert one.stdout is not None
    assert one.stdout.readline().strip() == "has it"
    one.kill()
    with FileLock(path, timeout=20) as lock:
        assert lock.taken_over_from is not None
        assert lock.taken_over_from.label == "the victim"


@pytest.mark.parametrize("count, replicas, rank, shuffle, seed, epoch, expected", [
    (10, 1, 0, True, 0, 0, [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),  # torch 1.13 to 2.15
    (10, 1, 0, True, 0, 1, [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]),
    (10, 2, 1, True, 1, 0, [6, 2, 8, 3, 4]),
    (5, 2, 1, False, 0, 0, [1, 3, 0]),
    (1, 4, 3, False, 0, 0, [0]),
    (0, 1, 0, True, 0, 0, []),
])
def test_the_order_is_torchs(
    count: int, replicas: int, rank: int, shuffle: bool, seed: int, epoch: int, expected: list[int]
) -> None:
    sampler = DistributedSampler(
        count, replica_count=replicas, rank=rank, shuffle=shuffle, seed=seed
    )
    sampler.set_epoch(epoch)
    assert sampler.epoch == epoch
    assert list(sampler) == expected
    assert len(sampler) == len(expected)
    assert list(DistributedSampler(range(count), replica_count=replicas, rank=rank)) is not None


def test_a_long_order_is_torchs() -> None:
    order = list(DistributedSampler(1000, shuffle=True, seed=7))
    assert order[:8] == [615, 284, 599, 580, 347, 92, 383, 891]
    assert sum(element * place for place, element in enumerate(order, 1)) == 251546465


def test_rank_and_size_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(DistributedSampler(4)) == [0, 1, 2, 3]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert list(DistributedSampler(4)) == [1, 3]
    assert list(DistributedSampler(4, rank=0)) == [0, 2]


def test_elements_that_do_not_divide() -> None:
    def shared(uneven: Any) -> list[list[int]]:
        samplers = [
            DistributedSampler(range(5), replica_count=2, rank=rank, uneven=uneven)
            for rank in range(2)
        ]
        return [list(sampler) for sampler in samplers]

    assert shared("pad") == [[0, 2, 4], [1, 3, 0]]
    assert shared("drop") == [[0, 2], [1, 3]]
    assert shared("exact") == [[0, 2, 4], [1, 3]]
    assert DistributedSampler(5, replica_count=2).padded_count == 1
    assert DistributedSampler(5, replica_count=2, uneven="drop").dropped_count == 1
    with pytest.raises(muster.InvalidArgument):
        DistributedSampler(5, replica_count=2, rank=2)
    with pytest.raises(ValueError, match="uneven"):
        DistributedSampler(5, uneven="some")  # type: ignore[arg-type]
