"""Muster below torch.distributed: a Store of its own, and torchrun's rendezvous.

    store = muster.torch.Store("127.0.0.1:29400", namespace="job7", rank=rank, world_size=4)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=4)

    torchrun --rdzv-backend muster --rdzv-endpoint 127.0.0.1:29400 ...

Needs torch, 1.13 or later; nothing else of Muster does. docs/python.md, "With torch.distributed".
"""

from muster.torch.store import Store

__all__ = ["Store"]
