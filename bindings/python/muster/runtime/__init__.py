"""The runtime of a job: its processes learn their ranks, meet, form groups, agree on values, work
in turn, and exchange tensors and files.

    with muster.runtime.Runtime() as job:      # of this process's environment
        job.init()
        with job.local_rank_zero_first():
            download()                          # once on each node, then found by the others
        muster.runtime.all_reduce_tensor(job, gradients, "average")

Read :mod:`muster.runtime.job` first. docs/python.md tells what this has in place of which function
of composer, OLMo-core and ModelOpt. ``import muster`` does not import it.
"""

from muster.runtime.environment import Environment, FoundNumber, JobNumber, Rule
from muster.runtime.files import FileLock, LockOwner, SignalFolder
from muster.runtime.job import JobPlace, Mesh, RankGroup, Runtime
from muster.runtime.sampler import DistributedSampler
from muster.runtime.shared import State, SharedWorkspace, gathered_states, gathered_tensors
from muster.runtime.tensors import (
    ReduceOp,
    Tensor,
    Way,
    all_gather_tensor,
    all_reduce_tensor,
    broadcast_state_dict,
    broadcast_tensor,
    recv_tensor,
    recv_tensor_into,
    reduce_scatter_tensor,
    send_tensor,
)
from muster.runtime.turns import Progress, Turn
from muster.runtime.values import (
    all_reduce_value,
    broadcast_list,
    synchronize_flag,
    synchronize_over,
    synchronize_value,
)

__all__ = [
    "DistributedSampler", "Environment", "FileLock", "FoundNumber", "JobNumber", "JobPlace",
    "LockOwner", "Mesh", "Progress", "RankGroup", "ReduceOp", "Rule", "Runtime", "SignalFolder",
    "State", "Tensor", "Turn", "Way", "SharedWorkspace", "all_gather_tensor", "all_reduce_tensor",
    "all_reduce_value", "broadcast_list", "broadcast_state_dict", "broadcast_tensor",
    "gathered_states", "gathered_tensors", "recv_tensor", "recv_tensor_into",
    "reduce_scatter_tensor", "send_tensor", "synchronize_flag", "synchronize_over",
    "synchronize_value",
]
