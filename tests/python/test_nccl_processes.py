"""Communicators and ids of NCCL whose ranks are processes: on doubles, and with torch on a GPU.

Where there are fewer GPUs than ranks, several share one: for NCCL each is a host of its own.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RANK = Path(__file__).with_name("nccl_rank.py")
LIMIT_S = 100.0
Run = Callable[..., list[int]]
OF_DOUBLES = ("NCCL_DOUBLE", "CUDA_DOUBLE")
# Of ranks that share a GPU, where all of them wait: small kernels, and sockets alone.
SHARED = {
    "NCCL_DEBUG": "WARN", "NCCL_MAX_CTAS": "2", "NCCL_MNNVL_ENABLE": "0", "NCCL_NET": "Socket",
    "NCCL_NVLS_ENABLE": "0", "NCCL_RAS_ENABLE": "0", "NCCL_SOCKET_IFNAME": "lo",
}


@functools.cache
def gpu_count() -> int:
    """As torch sees them, in another process."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    if importlib.util.find_spec("torch") is None:
        return 0
    count = "import torch\nprint(torch.cuda.device_count())"
    told = subprocess.run(
        [sys.executable, "-c", count], capture_output=True, text=True, timeout=LIMIT_S
    )
    return int(told.stdout or 0)


@pytest.fixture(params=["on doubles", "on a GPU"])
def ranks(request: pytest.FixtureRequest, address: str, namespace: str) -> Iterator[Run]:
    """Runs a case of nccl_rank.py in so many processes, and gives their exit codes."""
    environment = dict(os.environ)
    if request.param == "on doubles":
        if not set(OF_DOUBLES) <= environment.keys():
            pytest.skip("NCCL_DOUBLE and CUDA_DOUBLE name no libraries")
    elif gpu_count() == 0:
        pytest.skip("there is no driver of CUDA, or no torch that sees a GPU")
    else:
        for name in OF_DOUBLES:
            environment.pop(name, None)
        environment = {**SHARED, **environment}
    started: list[subprocess.Popen[bytes]] = []

    def run(case: str, world_size: int) -> list[int]:
        for rank in range(world_size):
            if request.param == "on a GPU" and world_size > gpu_count():
                environment["NCCL_HOSTID"] = f"rank {rank}"
            command = [sys.executable, str(RANK), case, str(rank), str(world_size), address]
            started.append(subprocess.Popen([*command, namespace], env=environment))
        until = time.monotonic() + LIMIT_S
        return [one.wait(max(0.0, until - time.monotonic())) for one in started]

    yield run
    for one in started:
        one.kill()
        one.wait()


@pytest.mark.parametrize("mode", ["", ", blocking"])
def test_operations_are_on_the_stream_that_is_given(ranks: Run, mode: str) -> None:
    assert ranks(f"operations{mode}", 2) == [0, 0]


def test_tensors_are_refused_by_name(ranks: Run) -> None:
    assert ranks("refusals", 2) == [0, 0]


def test_nccl_takes_the_id_of_a_group(ranks: Run) -> None:
    assert ranks("ids", 2) == [0, 0]


def test_a_rank_that_is_killed_in_a_collective_is_named_and_the_others_go_on(ranks: Run) -> None:
    assert ranks("loss", 3) == [0, 0, -signal.SIGKILL]
