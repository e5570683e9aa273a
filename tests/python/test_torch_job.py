"""Jobs of torch whose store is Muster's: process groups, device meshes, and torchrun."""

from __future__ import annotations

import configparser
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import muster
import pytest

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
dist = torch.distributed

PATIENCE = 150.0
ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
Start = Callable[..., "subprocess.Popen[str]"]

BEGIN = """
import ctypes, gc, os, sys
from datetime import timedelta
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch
import torch.distributed as dist
from muster.torch import Store
address, namespace, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group(
    "gloo", rank=rank, world_size=size, timeout=timedelta(seconds=60),
    store=Store(address, namespace=namespace, rank=rank, world_size=size, timeout=60))
gc.collect()
"""


@pytest.fixture
def job(address: str, namespace: str, tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Runs a program in each rank, and gives what they have said."""
    started: list[subprocess.Popen[str]] = []

    def run(size: int, program: str, *, ends: int = 0, **environment: str) -> list[str]:
        text = BEGIN + textwrap.dedent(program)
        started.clear()
        for rank in range(size):
            started.append(subprocess.Popen(
                [sys.executable, "-c", text, address, namespace, str(rank), str(size)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            ))
        said = [one.communicate(timeout=PATIENCE)[0] for one in started]
        assert [one.returncode for one in started] == [ends] * size, "\n".join(said)
        return said

    yield run
    for one in started:
        if one.poll() is None:
            one.kill()
        one.communicate(timeout=PATIENCE)


def test_a_process_group_and_groups_within_it(job: Callable[..., list[str]]) -> None:
    said = job(4, """
        total = torch.ones(1) * (rank + 1)
        dist.all_reduce(total)
        halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        half = torch.ones(1) * (rank + 1)
        dist.all_reduce(half, group=halves[rank // 2])
        everybody = [None] * size
        dist.all_gather_object(everybody, rank)
        dist.barrier()
        print("said", int(total), int(half), everybody)
        dist.destroy_process_group()
    """)
    for rank, text in enumerate(said):
        assert f"said 10 {3 if rank < 2 else 7} [0, 1, 2, 3]" in text


def test_the_next_run_of_a_job_whose_ranks_were_killed(job: Callable[..., list[str]]) -> None:
    """It waits for the end of the last one, whose addresses it does not read."""
    job(2, "dist.barrier(); os.kill(os.getpid(), 9)", ends=-signal.SIGKILL)
    said = job(2, """
        total = torch.ones(1)
        dist.all_reduce(total)
        print("said", int(total))
        dist.destroy_process_group()
    """)
    assert all("said 2" in text for text in said)


def test_the_backends_threads_reach_the_store_while_the_main_thread_holds_the_gil(
    job: Callable[..., list[str]]
) -> None:
    """From 2.8 or so on Gloo connects within the first call, on a thread of its own."""
    said = job(2, """
        total = torch.ones(1)
        work = dist.all_reduce(total, async_op=True)
        ctypes.PyDLL(None).usleep(500_000)  # without releasing the GIL
        work.wait()
        print("said", int(total))
        dist.destroy_process_group()
    """, TORCH_GLOO_LAZY_INIT="1")
    assert all("said 2" in text for text in said)


@pytest.mark.skipif(VERSION < (2, 2), reason="this torch has no init_device_mesh")
def test_a_device_mesh(job: Callable[..., list[str]]) -> None:
    said = job(4, """
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        total = torch.ones(1) * (rank + 1)
        dist.all_reduce(total, group=mesh.get_group("tp"))
        print("said", list(mesh.get_coordinate()), int(total))
        dist.destroy_process_group()
    """)
    for rank, text in enumerate(said):
        assert f"said [{rank // 2}, {rank % 2}] {3 if rank < 2 else 7}" in text


def test_a_rank_that_does_not_come_is_named(job: Callable[..., list[str]]) -> None:
    (said,) = job(1, """
        from muster.torch import Store
        other = Store(address, namespace=namespace + "/other", rank=0, world_size=2, timeout=1)
        dist.destroy_process_group()
        try:
            dist.init_process_group(
                "gloo", store=other, rank=0, world_size=2, timeout=timedelta(seconds=1))
        except Exception as error:
            print("said", str(error).splitlines()[0])
    """)
    assert "rank 1 has not come" in said


# torchrun.

WORKER = """
import os, sys, time
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
from datetime import timedelta
import torch
import torch.distributed as dist
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.ones(1)
dist.all_reduce(total)
name = f"{sys.argv[1]}/{size}-{rank}"
with open(name + ".new", "w") as file:
    file.write(f"{os.getpid()} {os.getppid()} {int(total)}")
os.rename(name + ".new", name)
while size == 4:  # until the others are gone
    dist.all_reduce(total)
    time.sleep(0.01)
"""


@pytest.fixture
def torchrun(address: str, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts an agent with two ranks. From 2.5 on torchrun has found Muster by its entry point."""
    started: list[subprocess.Popen[str]] = []
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    (tmp_path / "ranks").mkdir()
    module = "torch.distributed.run" if has_entry_points() else "muster.torch.run"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if has_entry_points():
        installed = as_installed(tmp_path / "installed")
        environment["PYTHONPATH"] = f"{installed}:{environment['PYTHONPATH']}"

    def start(nodes: str) -> subprocess.Popen[str]:
        log = open(tmp_path / f"agent{len(started)}.log", "w")
        one = subprocess.Popen(
            [sys.executable, "-m", module, f"--nnodes={nodes}", "--nproc_per_node=2",
             "--rdzv_backend=muster", f"--rdzv_endpoint={address}", f"--rdzv_id={namespace}",
             "--rdzv_conf=last_call_timeout=1,join_timeout=60", "--max_restarts=3",
             "--monitor_interval=0.1", "--tee=1", "--redirects=1",
             f"--log_dir={tmp_path / 'logs'}", str(script), str(tmp_path / "ranks")],
            stdout=log, stderr=subprocess.STDOUT, text=True, env=environment,
        )
        started.append(one)
        return one

    yield start
    for one in started:
        if one.poll() is None:
            one.terminate()
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait(PATIENCE)
    for file in (tmp_path / "ranks").iterdir():  # what an agent that was killed has left
        end_worker(file)


def has_entry_points() -> bool:
    from torch.distributed.elastic.rendezvous import registry

    return hasattr(registry, "_register_out_of_tree_handlers")


def as_installed(folder: Path) -> Path:
    """What tells importlib of the package's entry points, as a wheel's installation does."""
    import tomllib

    with open(ROOT / "pyproject.toml", "rb") as file:
        groups = tomllib.load(file)["project"]["entry-points"]
    info = folder / "muster-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: muster\nVersion: 0\n")
    told = configparser.ConfigParser()
    told.read_dict(groups)
    with open(info / "entry_points.txt", "w") as written:
        told.write(written)
    return folder


def end_worker(file: Path) -> None:
    pid = int(file.read_text().split()[0])
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if str(file.parent).encode() in command:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended


def wait_for_ranks(folder: Path, size: int, agents: list[subprocess.Popen[str]]) -> list[Path]:
    files = [folder / "ranks" / f"{size}-{rank}" for rank in range(size)]
    until = time.monotonic() + PATIENCE
    while not all(file.exists() for file in files):
        logs = "\n".join(log.read_text()[-4000:] for log in sorted(folder.glob("agent*.log")))
        assert time.monotonic() < until and agents[0].poll() in (None, 0), logs
        time.sleep(0.05)
    return files


def test_two_agents_of_torchrun_with_two_ranks_each_and_one_is_killed(
    torchrun: Start, tmp_path: Path
) -> None:
    agents = [torchrun("1:2"), torchrun("1:2")]
    files = wait_for_ranks(tmp_path, 4, agents)
    parents = [int(file.read_text().split()[1]) for file in files]
    assert sorted(set(parents)) == sorted(agent.pid for agent in agents)
    assert [int(file.read_text().split()[2]) for file in files] == [4] * 4
    survivor, killed = agents
    killed.kill()
    for file, parent in zip(files, parents):
        if parent == killed.pid:
            end_worker(file)
    wait_for_ranks(tmp_path, 2, [survivor])
    assert survivor.wait(PATIENCE) == 0
    late = torchrun("1:2")
    assert late.wait(PATIENCE) != 0
    assert "RendezvousClosedError" in (tmp_path / "agent2.log").read_text()


def test_runs_of_a_job_of_torchrun(address: str, namespace: str) -> None:
    """A job that has ended is closed to its late agents, but not to its next run. It leaves nothing
    behind."""
    from torch.distributed.elastic.rendezvous import RendezvousClosedError, RendezvousParameters

    from muster.torch.rendezvous import create_handler

    def agent(**options: str) -> Any:
        return create_handler(RendezvousParameters(
            "muster", address, options.pop("id", namespace), 1, 1, **options))

    def namespaces() -> list[str]:
        with muster.Store(address) as looks:
            return [one["namespace"] for one in looks.inspect("namespaces")]

    own = f"torchrun/{namespace}"
    for run in ("1", "2"):
        handler = agent(run=run)
        handler.next_rendezvous()
        assert handler.shutdown()
        with pytest.raises(RendezvousClosedError, match="--rdzv-conf run=NAME"):
            for _ in range(20):  # its session may have to end first
                agent(run=run).shutdown()
    assert own in namespaces()
    agent(run="3", stays_closed="0").shutdown()
    until = time.monotonic() + PATIENCE
    while own in namespaces():
        assert time.monotonic() < until


def test_torchrun_needs_an_address_and_an_id() -> None:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    from muster.torch.rendezvous import create_handler, with_port

    with pytest.raises(ValueError, match="--rdzv-endpoint"):
        create_handler(RendezvousParameters("muster", "", "id", 1, 1))
    with pytest.raises(ValueError, match="--rdzv-id"):
        create_handler(RendezvousParameters("muster", "127.0.0.1:1", "none", 1, 1))
    assert [with_port(one) for one in ("h:1", "h", "[::1]:2", "unix:/s")] == [
        "h:1", "h:29400", "[::1]:2", "unix:/s",
    ]
