"""Runs tests of vLLM that need GPUs, unchanged, on Muster's class, for others.py; on one GPU, too.

    gpu_tests.py SOURCE TIMES [--together NUMBER] [--of-vllm] [NAME...]

`gpu_worker` of its tests of groups, and those of test_pynccl.py whose ranks are all in one group:
vLLM's communicators of NVIDIA's NCCL, whose ids our class carries; one_gpu.py has what is replaced.
So many of a test run at once, each with a network of its own, for which this has to be root; ranks
that end while NCCL's threads still send may then leave others waiting. With `--of-vllm` the class
is vLLM's own. Prints a line of JSON for each test, as vllm_tests.py does.
"""

import argparse
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
import time
import types
from importlib import import_module

import one_gpu
from vllm_tests import in_child, without_gpus

LIMIT_S = 60
CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
OF_PYNCCL = (
    "test_pynccl", "test_pynccl_with_cudagraph", "test_pynccl_all_gather",
    "test_pynccl_all_gatherv", "test_pynccl_reduce_scatter", "test_pynccl_reduce_scatterv",
    "test_pynccl_send_recv", "test_pynccl_broadcast",
)


def own_network():
    """For this process and its children. The ports that tests choose are free there."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "this process may not have a network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def failures_of(test, times, together):
    """Why it failed, for each time that it did."""
    readers = []
    for number in range(together):
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            if together > 1:
                own_network()
            own_times = times // together + (number < times % together)
            failures = [why for _ in range(own_times) if (why := in_child(test, LIMIT_S))]
            with os.fdopen(write_end, "w") as pipe:
                json.dump(failures, pipe)
            os._exit(0)
        os.close(write_end)
        readers.append(os.fdopen(read_end))
    told = [reader.read() for reader in readers]
    for _ in readers:
        os.wait()
    return [why for each in told for why in (json.loads(each) if each else ["its process died"])]


def tests_at(source, is_of_vllm):
    """The name of each test, and what runs it once."""
    sys.path.insert(0, source)
    one_gpu.as_installed()
    one_gpu.share_device()
    if not is_of_vllm:
        import muster.compat.vllm

        muster.compat.vllm.patch()
    sys.modules["tests.utils"] = types.SimpleNamespace(multi_gpu_test=without_gpus)
    workers = import_module("tests.distributed.test_utils")
    pynccl = import_module("tests.distributed.test_pynccl")
    group_class = workers.StatelessProcessGroup
    assert group_class.__module__.startswith("vllm." if is_of_vllm else "muster."), group_class
    on_first = one_gpu.on_first(workers.PyNcclCommunicator)
    pynccl.PyNcclCommunicator = on_first
    one_gpu.on_groups(pynccl, group_class)

    def run_gpu_worker(communicator_class):
        workers.PyNcclCommunicator = communicator_class
        workers.test_stateless_process_group(workers.gpu_worker)

    return {"gpu_worker": lambda: run_gpu_worker(one_gpu.in_place(on_first)),
            "gpu_worker_not_in_place": lambda: run_gpu_worker(on_first),
            **{name: getattr(pynccl, name) for name in OF_PYNCCL}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("times", type=int)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--of-vllm", action="store_true")
    options = parser.parse_intermixed_args()
    output = os.dup(1)
    os.dup2(2, 1)  # what tests print is kept out of the way
    os.environ["VLLM_HOST_IP"] = "127.0.0.1"
    tests = tests_at(options.source, options.of_vllm)
    for name in options.names or ("gpu_worker", *OF_PYNCCL):
        began = time.monotonic()
        failures = failures_of(tests[name], options.times, options.together)
        told = {"test": f"vLLM's {name}", "times": options.times, "failures": failures[:3],
                "failed_count": len(failures), "seconds": time.monotonic() - began}
        os.write(output, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
