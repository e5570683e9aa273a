"""Muster below torch.distributed: a Store of its own, TCPStores that it serves, and torchrun's
rendezvous.

    store = muster.torch.Store("127.0.0.1:29400", namespace="job7", rank=rank, world_size=4)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=4)

    muster.torch.patch_tcpstore()  # for programs that construct TCPStore

    torchrun --rdzv-backend muster --rdzv-endpoint 127.0.0.1:29400 ...

Needs torch, 1.13 or later; nothing else of Muster does. docs/python.md, "With torch.distributed".
"""

from muster.torch._tcpstore import patch_tcpstore
from muster.torch.store import Store

__all__ = ["Store", "patch_tcpstore"]
