"""A program of torch that knows nothing of musterrun: all ranks add, and in the first attempt one
of them is killed after that. torch_test.py runs it.

torch_script.py [INIT_METHOD]   the ranks meet there, as they were told, or by torch's env://
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

method = {}
if len(sys.argv) > 1:
    method = {"init_method": sys.argv[1], "rank": int(os.environ["RANK"]),
              "world_size": int(os.environ["WORLD_SIZE"])}
dist.init_process_group("gloo", **method)
total = torch.ones(4) * (dist.get_rank() + 1)
dist.all_reduce(total)
restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
place = f"rank {dist.get_rank()} of {dist.get_world_size()}"
agent = os.environ["TORCHELASTIC_USE_AGENT_STORE"]
print(f"{place}: {int(total[0])} in {restart} by {agent}", flush=True)
dist.barrier()  # who is ended before could not tell
if restart == 0 and dist.get_rank() == 3:
    os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
