"""A program of PyTorch that knows nothing of Muster: torch finds its store by the environment."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")  # env://
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has {int(total)}", flush=True)
dist.destroy_process_group()
