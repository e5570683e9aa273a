"""Work in turn, from Python: scopes, works, signal files; the cases of composer's test_dist."""

from __future__ import annotations

import array
import inspect
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import muster
import pytest
from conftest import variables_of
from muster.runtime import Progress, Runtime, SignalFolder, gathered_tensors

Job = Callable[..., list[Any]]


def test_c1_a_scope_without_a_world_says_so() -> None:
    job = Runtime({})
    for scope in (
        job.local_rank_zero_first(), job.fs_local_rank_zero_first(), job.rank_zero(),
        job.n_at_a_time(1),
    ):
        with pytest.raises(muster.NotInitialized, match="init"):
            with scope:
                raise AssertionError("the body does not run")


def test_c2_local_rank_zero_runs_first(in_job: Job, tmp_path: Path) -> None:
    def part(job: Runtime) -> None:
        downloaded = tmp_path / f"node{job.node_rank}"
        with job.local_rank_zero_first() as turn:
            turn.progress("downloading")
            assert downloaded.exists() == (job.local_rank != 0)
            downloaded.touch()
        job.shutdown()

    in_job(4, part, nodes=2)


def test_where_files_are_shared_one_rank_is_first(in_job: Job, tmp_path: Path) -> None:
    def part(job: Runtime) -> None:
        with job.fs_local_rank_zero_first():
            assert (tmp_path / "file").exists() == (job.rank != 0)
            (tmp_path / "file").touch()
        job.shutdown()

    in_job(4, part, nodes=2, more={"MUSTER_SHARED_FS": "1"})


def test_the_body_of_rank_zero_is_first(in_job: Job) -> None:
    entered: list[int] = []

    def part(job: Runtime) -> None:
        with job.rank_zero() as turn:
            assert turn.is_rank_zero == (job.rank == 0)
            entered.append(job.rank)
        job.shutdown()

    in_job(3, part)
    assert entered[0] == 0
    assert sorted(entered) == [0, 1, 2]


def test_o3_no_more_than_n_are_inside(in_job: Job) -> None:
    inside = most = entered = 0
    lock = threading.Lock()

    def part(job: Runtime) -> None:
        nonlocal inside, most, entered
        with job.n_at_a_time(2):
            with lock:
                inside += 1
                entered += 1
                most = max(most, inside)
            with lock:
                inside -= 1
        with pytest.raises(muster.InvalidArgument):
            with job.n_at_a_time(-1):
                pass
        job.shutdown()

    in_job(5, part)
    assert entered == 5
    assert most <= 2


def test_the_defaults_are_those_of_cpp() -> None:
    parameters = inspect.signature(muster.Server).parameters
    assert parameters["heartbeat"].default == 1.0
    assert parameters["session_timeout"].default == 15.0
    turn = inspect.signature(Runtime.rank_zero).parameters
    assert turn["silence_max"].default == 3600.0
    assert turn["limit"].default == 86400.0


def test_a_body_that_raises_hangs_nobody(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        if job.rank == 0:
            with pytest.raises(ZeroDivisionError):
                with job.local_rank_zero_first():
                    1 / 0
        else:
            with pytest.raises(muster.CallbackFailed, match="ZeroDivisionError: division") as told:
                with job.local_rank_zero_first():
                    raise AssertionError("the body does not run")
            assert told.value.rank_numbers == [0]
        with pytest.raises((KeyError, muster.CallbackFailed)) as raised:
            with job.n_at_a_time(1):
                if job.rank == 1:
                    raise KeyError("shard")
        if job.rank != 1:
            assert isinstance(raised.value, muster.CallbackFailed)
            assert raised.value.rank_numbers == [1]
        with job.rank_zero():  # it goes on
            pass
        job.shutdown()

    in_job(3, part)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


@pytest.mark.parametrize("error, told", [
    (RuntimeError("cannot read " + os.fsdecode(b"/caf\xe9")), r"RuntimeError: cannot read /caf\?"),
    (Mute(), "Mute"),
])
@pytest.mark.parametrize("scope", ["turn", "gathered", "work"])
def test_an_exception_without_a_text_passes_as_it_is(
    in_job: Job, error: Exception, told: str, scope: str
) -> None:
    def entered(job: Runtime) -> None:
        if scope == "work":
            job.on_rank_zero(lambda progress: raise_or_pass(job))
            return
        turn: Any = job.n_at_a_time(1)
        with turn if scope == "turn" else gathered_tensors(job, array.array("f", [1])):
            raise_or_pass(job)

    def raise_or_pass(job: Runtime) -> None:
        if job.rank == 0:
            raise error

    def part(job: Runtime) -> None:
        with job.n_at_a_time(1) as turn:
            turn.progress("reading " + os.fsdecode(b"caf\xe9"))
        job.on_rank_zero(lambda progress: progress("\ud800"))
        if job.rank == 0:
            with pytest.raises(type(error)) as raised:
                entered(job)
            assert raised.value is error
        else:
            with pytest.raises(muster.CallbackFailed, match=told):
                entered(job)
        job.shutdown()

    in_job(2, part)


def test_who_tells_nothing_is_given_up(in_job: Job) -> None:
    over = threading.Event()

    def part(job: Runtime) -> None:
        if job.rank == 0:
            with job.rank_zero() as turn:
                turn.progress("shard 3 of 12")
                assert over.wait(20)
        else:
            with pytest.raises(muster.TimedOut, match="shard 3 of 12") as raised:
                with job.rank_zero(silence_max=0.2):
                    pass
            over.set()
            assert raised.value.rank_numbers == [0]
        job.group.barrier()

    in_job(2, part)


def test_who_tells_of_progress_is_awaited(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        with job.rank_zero(silence_max=0.4) as turn:
            until = time.monotonic() + 1.2
            while job.rank == 0 and time.monotonic() < until:
                turn.progress("still here")
        job.shutdown()

    in_job(2, part)


def test_all_get_what_rank_zeros_work_gives(in_job: Job) -> None:
    threads: list[int] = []

    def part(job: Runtime) -> None:
        def work(progress: Progress) -> dict[str, int]:
            progress("reading")
            threads.append(threading.get_ident())
            assert threads == [threading.get_ident()]
            return {"layers": 32}

        def fails(progress: Progress) -> None:
            raise FileNotFoundError("config.json")

        assert job.on_rank_zero(work) == {"layers": 32}
        kind = FileNotFoundError if job.rank == 0 else muster.CallbackFailed
        with pytest.raises(kind, match="config.json"):
            job.on_rank_zero(fails)
        refused = muster.CodecFailure if job.rank == 0 else muster.CallbackFailed
        with pytest.raises(refused, match="no form for an object"):
            job.on_rank_zero(lambda _: {1, 2})
        assert job.on_rank_zero(lambda _: {1, 2}, codec=muster.PICKLE) == {1, 2}
        assert job.on_rank_zero(lambda _: {"shape": (1, 2)}) == {"shape": [1, 2]}  # also rank 0
        assert job.on_rank_zero(lambda _: "text", codec=muster.RAW) == b"text"
        job.shutdown()

    in_job(3, part)


def test_progress_that_outlives_its_work_does_nothing() -> None:
    kept: list[Progress] = []
    with Runtime({}) as job:
        job.init()
        job.on_rank_zero(kept.append)
        kept[0]("too late")
        with job.rank_zero() as turn:
            pass
        turn.progress("too late")


def test_a_scope_that_is_never_left_ends_with_its_object(in_job: Job) -> None:
    def part(job: Runtime) -> None:
        if job.rank == 0:
            turn = job.rank_zero()
            turn.__enter__()
            del turn
        else:
            with pytest.raises(muster.CallbackFailed, match="given up"):
                with job.rank_zero():
                    pass
        job.shutdown()

    in_job(2, part)


def test_a_scope_is_entered_once() -> None:
    with Runtime({}) as job:
        job.init()
        turn = job.rank_zero()
        with pytest.raises(RuntimeError, match="entered"):
            turn.__exit__(None, None, None)
        with turn:
            pass
        with pytest.raises(RuntimeError, match="once"):
            turn.__enter__()


def test_c3_each_node_has_a_signal_file_of_its_own(in_job: Job) -> None:
    def part(job: Runtime) -> str:
        name = job.node_signal_file_name()
        assert re.fullmatch(rf"\._signal_file_node{job.node_rank}_\w{{6}}", name)
        assert job.node_signal_file_name() != name
        job.shutdown()
        return name

    names = in_job(4, part, nodes=2)
    assert names[0] == names[1] != names[2] == names[3]


def in_folder(
    world_size: int, folder: Path, part: Callable[[int, SignalFolder], None]
) -> None:
    failures: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            variables = variables_of(rank, world_size, "")
            part(rank, SignalFolder(str(folder), variables, job="test"))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_c4_and_c5_by_files_local_rank_zero_is_first(tmp_path: Path) -> None:
    done = tmp_path / "done"
    signals = tmp_path / "signals"
    left: list[float] = []

    def part(rank: int, folder: SignalFolder) -> None:
        assert folder.folder == str(signals)
        with folder.local_rank_zero_first() as turn:
            assert done.exists() == (rank != 0)
            if rank == 0:
                turn.progress("working")
                (file,) = signals.iterdir()
                assert file.name.startswith("._signal_file_node0_")
                time.sleep(0.2)
                done.touch()
        left.append(time.monotonic())
        with folder.fs_local_rank_zero_first():
            pass

    in_folder(3, signals, part)
    assert max(left) - min(left) < 1
    assert list(signals.iterdir()) == []


def test_by_files_a_failure_ends_the_others_wait(tmp_path: Path) -> None:
    def part(rank: int, folder: SignalFolder) -> None:
        kind = OSError if rank == 0 else muster.CallbackFailed
        with pytest.raises(kind, match="no space"):
            with folder.local_rank_zero_first():
                assert rank == 0
                raise OSError("no space")

    in_folder(2, tmp_path, part)


def test_a_folder_says_what_it_misses(tmp_path: Path) -> None:
    with pytest.raises(muster.EnvironmentWrong):
        SignalFolder(str(tmp_path), {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})


@pytest.mark.parametrize("where, error", [
    ("with job.rank_zero():", "Cancelled"),
    ("job.on_rank_zero(lambda _: 1);", "Cancelled"),
    ("with muster.runtime.SignalFolder(folder, variables, job='j').local_rank_zero_first():",
     "Cancelled"),
    ("muster.runtime.FileLock(lock, timeout=60);", "Cancelled"),
    ("muster.runtime.Workspace(folder, 0).read(1, timeout=60);", "Cancelled"),
])
def test_ctrl_c_ends_what_waits_for_a_turn(
    process: Any, namespace: str, address: str, tmp_path: Path, where: str, error: str
) -> None:
    lock = muster.runtime.FileLock(str(tmp_path / "lock"))
    one = process(f"""
        import muster.runtime
        folder, lock = {str(tmp_path)!r}, {lock.path!r}
        variables = {variables_of(1, 2, address)!r}
        job = muster.runtime.Runtime(variables)
        job.init(namespace={namespace!r})
        print("ready", flush=True)
        try:
            {where.replace("Workspace", "SharedWorkspace")}
                pass
        except KeyboardInterrupt as interrupted:
            print(type(interrupted.error).__name__, flush=True)
    """.replace(";\n                pass", ""))
    job = Runtime(variables_of(0, 2, address))
    job.init(namespace=namespace)
    assert one.stdout.readline().strip() == "ready"
    time.sleep(0.2)
    sent = time.monotonic()
    one.send_signal(signal.SIGINT)
    assert one.stdout.readline().strip() == error, one.stderr.read()
    assert time.monotonic() - sent < 2
    one.communicate(timeout=30)


def test_ctrl_c_in_a_body_is_told_and_goes_on(process: Any, address: str, namespace: str) -> None:
    one = process(f"""
        import muster.runtime, time
        job = muster.runtime.Runtime({variables_of(0, 2, address)!r})
        job.init(namespace={namespace!r})
        try:
            with job.rank_zero():
                print("inside", flush=True)
                time.sleep(60)
        except KeyboardInterrupt as raised:
            print(type(raised).__name__, flush=True)
        job.shutdown()
    """)
    job = Runtime(variables_of(1, 2, address))
    job.init(namespace=namespace)
    assert one.stdout.readline().strip() == "inside"
    one.send_signal(signal.SIGINT)
    with pytest.raises(muster.CallbackFailed, match="KeyboardInterrupt"):
        with job.rank_zero():
            pass
    job.shutdown()
    assert one.stdout.readline().strip() == "KeyboardInterrupt"
    assert one.wait(30) == 0


def test_the_interpreter_ends_within_a_scope(process: Any) -> None:
    one = process("""
        import muster.runtime, threading
        job = muster.runtime.Runtime({})
        job.init()
        turn = job.rank_zero()
        turn.__enter__()
        print("ends", flush=True)
    """)
    began = time.monotonic()
    out, errors = one.communicate(timeout=60)
    assert out.strip() == "ends"
    assert one.returncode == 0, errors
    assert time.monotonic() - began < 20


def test_scopes_leave_nothing_behind() -> None:
    with Runtime({}) as job:
        job.init()

        def enter(count: int) -> None:
            for _ in range(count):
                with job.local_rank_zero_first():
                    pass

        enter(10)
        natives = len(os.listdir("/proc/self/task"))
        descriptors = len(os.listdir("/proc/self/fd"))
        enter(300)
        assert len(os.listdir("/proc/self/task")) <= natives
        assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_killed_rank_ends_the_others_wait(process: Any, address: str, namespace: str) -> None:
    one: subprocess.Popen[str] = process(f"""
        import muster.runtime, time
        job = muster.runtime.Runtime({variables_of(0, 2, address)!r})
        job.init(namespace={namespace!r})
        with job.rank_zero():
            print("inside", flush=True)
            time.sleep(60)
    """)
    job = Runtime(variables_of(1, 2, address))
    job.init(namespace=namespace)
    assert one.stdout is not None
    assert one.stdout.readline().strip() == "inside"
    one.kill()
    with pytest.raises(muster.RankLost) as raised:
        with job.rank_zero():
            pass
    assert raised.value.ranks[0].pid == one.pid
