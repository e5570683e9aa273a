"""A group of two processes:

    python3 two_processes.py 0 & python3 two_processes.py 1; wait
"""

import os
import sys

import muster

rank = int(sys.argv[1])
port = int(sys.argv[2]) if len(sys.argv) > 2 else 29400
# Rank 0 starts a server in its process. Rank 1 waits for it, and connects.
group = muster.StatelessProcessGroup.create(
    "127.0.0.1", port, rank, world_size=2, store_timeout=30
)
for peer, pid in enumerate(group.all_gather_obj(os.getpid(), timeout=10)):
    print(f"rank {rank}: rank {peer} has pid {pid}")
group.close()  # rank 0 waits until rank 1 has left, 10 s at most
