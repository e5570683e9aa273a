"""Runs programs of others that use vLLM's StatelessProcessGroup, unchanged, with Muster's class.

    users_tests.py SOURCE TIMES   of vLLM, whose own class is patched

TRL's `VLLMClient` makes a group with a server, and gives it weights; checkpoint-engine's
`DistributedNccl` makes one on a store, a muster.torch.Store, and has groups within it. In the place
of NCCL and CUDA there are stubs, which move tensors of the CPU by objects. For others.py; prints a
line of JSON for each.
"""

import ctypes
import http.server
import json
import os
import sys
import threading
import time
import types
from importlib import import_module

import torch

from vllm_tests import free_port, in_child, in_ranks

GROUP_RANKS = 4


class StubOfNccl:
    """In the place of PyNcclCommunicator: the same calls, by objects of the group."""

    def __init__(self, group, device=None):
        self.group, self.rank, self.world_size = group, group.rank, group.world_size
        self.comm, self.splits = ctypes.c_void_p(1), {1: list(range(group.world_size))}
        self.nccl = types.SimpleNamespace(ncclCommSplit=self.split, ncclCommDestroy=lambda _: None)

    def split(self, comm, color, key):
        colors = self.group.all_gather_obj(color)
        handle = max(self.splits) + 1
        self.splits[handle] = [rank for rank, one in enumerate(colors) if one == color]
        return ctypes.c_void_p(handle if color >= 0 else None)

    def everybodys(self, tensor):
        """Of the ranks of the communicator, which are those that call. By the whole group's
        streams, since its collectives are of all."""
        ranks, own = self.splits[self.comm.value], self.group.rank
        for rank in ranks:
            if rank != own:
                self.group.send_obj(tensor, rank)
        return [tensor if rank == own else self.group.recv_obj(rank) for rank in ranks]

    def all_reduce(self, in_tensor, op=None):
        return sum(self.everybodys(in_tensor))

    def all_gather(self, output, tensor):
        output.copy_(torch.cat([one.reshape(-1) for one in self.everybodys(tensor)]))

    def broadcast(self, tensor, src):
        tensor.copy_(self.everybodys(tensor)[src])


class Trainee(http.server.BaseHTTPRequestHandler):
    """What the client of TRL talks to: an inference server with one worker, rank 0."""

    weights, group, thread = None, None, None

    def do_GET(self):
        self.answer({"world_size": 1})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        name = self.path.strip("/")
        if name == "init_communicator":
            self.in_worker(lambda: self.join(asked))
        elif name == "update_named_param":
            self.in_worker(lambda: self.update(asked))
        elif name == "close_communicator":
            Trainee.thread.join()
            Trainee.group.group.store = None  # ends the server
        self.answer({"message": "done"})

    def in_worker(self, work):
        """Behind what it has been asked before."""
        before = Trainee.thread

        def run():
            if before is not None:
                before.join()
            work()

        Trainee.thread = threading.Thread(target=run)
        Trainee.thread.start()

    @staticmethod
    def join(asked):
        from vllm.distributed.utils import StatelessProcessGroup

        Trainee.group = StubOfNccl(StatelessProcessGroup.create(
            host="127.0.0.1", port=asked["port"], rank=0, world_size=asked["world_size"]))

    @staticmethod
    def update(asked):
        weights = torch.zeros(asked["shape"])
        Trainee.group.broadcast(weights, src=1)
        Trainee.group.group.barrier()
        Trainee.weights = {**(Trainee.weights or {}), asked["name"]: weights}

    def answer(self, told):
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def trls_client():
    from trl.extras.vllm_client import VLLMClient

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trainee)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = VLLMClient(f"http://127.0.0.1:{server.server_port}", group_port=free_port())
    client.init_communicator("cpu")
    model = torch.nn.Linear(4, 2)
    client.update_model_params(model)
    Trainee.thread.join()
    for name, weights in model.named_parameters():
        assert torch.equal(Trainee.weights[name], weights.data)
    client.close_communicator()


def as_rank_of_checkpoint_engine(address):
    from checkpoint_engine.distributed import vllm_nccl

    from muster.torch import Store

    vllm_nccl.current_stream = lambda: types.SimpleNamespace(synchronize=lambda: None)
    rank = int(os.environ["RANK"])
    store = Store(address, namespace="checkpoint", rank=rank, world_size=GROUP_RANKS)
    engine = vllm_nccl.DistributedNccl()
    engine.init_process_group(rank, GROUP_RANKS, store)
    engine.device = torch.device("cpu")
    found = [None] * GROUP_RANKS
    engine.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": rank} for rank in range(GROUP_RANKS)]
    half = engine.new_group([0, 1])
    if rank < 2:
        total = torch.ones(1) * (rank + 1)
        engine.all_reduce(total, group=half)
        assert total.item() == 3
        engine.destroy_process_group(half)
    weights = torch.full((3,), float(rank))
    engine.broadcast(weights, src=2)
    assert weights.tolist() == [2.0] * 3
    engine.barrier()
    engine.destroy_process_group()


def checkpoint_engines_group():
    import muster

    with muster.Server() as server:
        in_ranks(lambda: as_rank_of_checkpoint_engine(server.addresses[0]))


def main():
    source, times = sys.argv[1:]
    output = os.dup(1)
    os.dup2(2, 1)  # what tests print is kept out of the way
    sys.path.insert(0, source)
    import muster.compat.vllm

    muster.compat.vllm.patch()
    import_module("vllm.distributed.device_communicators.pynccl").PyNcclCommunicator = StubOfNccl
    torch.cuda.get_device_properties = lambda _: types.SimpleNamespace(uuid="none")
    torch.cuda.current_device = lambda: 0
    for name, test in (("TRL's VLLMClient", trls_client),
                       ("checkpoint-engine's DistributedNccl", checkpoint_engines_group)):
        began = time.monotonic()
        failures = [why for _ in range(int(times)) if (why := in_child(test, 60))]
        told = {"test": name, "times": int(times), "failures": failures[:3],
                "failed_count": len(failures), "seconds": time.monotonic() - began}
        os.write(output, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
