"""A plug-in with which vLLM's tests of several GPUs run on one, unchanged: for gpu_tests.py.

Of vLLM's source alone, ``as_installed`` makes up what its wheel would have. For its tests device 0
stands for every GPU, and each rank is a host of its own for NCCL, which then takes several ranks of
one GPU. The communicators are vLLM's, on NVIDIA's library.
"""

import importlib.util
import os
import sys
import types
from importlib import import_module

import torch
from torch.overrides import TorchFunctionMode

FIRST = torch.device("cuda:0")
# NCCL's, for ranks that share a GPU: small kernels, since all of them wait there at once.
SHARED = {"NCCL_DEBUG": "WARN", "NCCL_MAX_CTAS": "2", "NCCL_MNNVL_ENABLE": "0",
          "NCCL_NET": "Socket", "NCCL_NVLS_ENABLE": "0", "NCCL_RAS_ENABLE": "0",
          "NCCL_SOCKET_IFNAME": "lo"}


def as_installed():
    """Before anything of vLLM is imported: the extension that the module of CUDA imports, which has
    the kernels of models, and the platform, which vLLM finds by its wheel. Of ray, where there is
    none, the decorator of a test that is not run."""
    sys.modules["vllm._C"] = types.ModuleType("vllm._C")
    if importlib.util.find_spec("ray") is None:
        sys.modules["ray"] = types.SimpleNamespace(remote=lambda one: one)
    platforms = import_module("vllm.platforms")
    platforms._current_platform = import_module("vllm.platforms.cuda").CudaPlatform()


def share_device():
    """For all ranks, which are children of this process."""
    for name, value in SHARED.items():
        os.environ.setdefault(name, value)
    torch.cuda.device_count = lambda: 1  # asked before the ranks are forked, which CUDA may forbid
    set_device = torch.cuda.set_device
    torch.cuda.set_device = lambda _: set_device(FIRST)


def on_first(communicator_class):
    """vLLM's communicator, of a rank that is a host of its own, on the first device."""

    class OnFirst(communicator_class):
        def __init__(self, group, device, **more):
            os.environ["NCCL_HOSTID"] = f"rank {group.rank}"
            super().__init__(group, FIRST, **more)

    return OnFirst


def in_place(communicator_class):
    """What `gpu_worker` takes for granted: that the sum is in the tensor that was given. vLLM
    0.11.0 gives another one, so without this it fails at its last line, also on vLLM's own group.
    """

    class InPlace(communicator_class):
        def all_reduce(self, in_tensor, out_tensor=None, **more):
            into = in_tensor if out_tensor is None else out_tensor
            return super().all_reduce(in_tensor, into, **more)

    return InPlace


class FirstDevice(TorchFunctionMode):
    """Every device of CUDA that a call of torch names is the first."""

    def __torch_function__(self, function, kinds, arguments=(), named=None):
        if function is torch.Tensor.cuda:
            arguments, named = arguments[:1], {}
        arguments = [mapped(one) for one in arguments]
        return function(*arguments, **{name: mapped(one) for name, one in (named or {}).items()})


def mapped(one):
    if isinstance(one, (str, torch.device)) and str(one).startswith("cuda"):
        return FIRST
    return one


def on_groups(module, group_class):
    """In test_pynccl.py, whose ranks meet by torch: a group of this class in the place of torch's.
    """
    world = types.SimpleNamespace(device=FIRST)

    def initialize():
        FirstDevice().__enter__()  # to the end of this process, which is a rank
        world.cpu_group = group_class.create(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["RANK"]),
            int(os.environ["WORLD_SIZE"]))

    module.init_distributed_environment = initialize
    module.get_world_group = lambda: world
