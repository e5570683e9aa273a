"""The cases of jobs whose processes meet at the server, and have no store of their own."""

import inspect
import sys

import torch.distributed as dist

from stage import Caller, NotThere, Torchs, ends, expect, expect_sums, wait_until


def init_process_group_by_tcp(stage):
    expect_sums(ends(*stage.job()), 2)


def init_process_group_by_variables(stage):
    expect_sums(ends(*stage.job(method="env")), 2)


def init_process_group_with_a_store(stage):
    """On a prefix of its own, as those do that keep several groups apart."""
    store = dist.PrefixStore("a group", stage.store())
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    dist.barrier()
    expect(dist.get_world_size(dist.new_group([0])), 1)
    dist.destroy_process_group()


def two_jobs_at_once(stage):
    jobs = [stage.job(which=which) for which in range(2)]
    for job in jobs:
        expect_sums(ends(*job), 2)


def two_jobs_one_after_another(stage):
    for which in range(2):
        expect_sums(ends(*stage.job(which=which)), 2)


def two_attempts_of_a_job_at_one_port(stage):
    """Newer versions expect a new store for each attempt, and take the keys of the first one for
    those of the second."""
    if "attempt_" not in inspect.getsource(sys.modules["torch.distributed.rendezvous"]):
        raise NotThere("a prefix of each attempt")
    for attempt in range(2):
        expect_sums(ends(*stage.job(attempt=attempt)), 2, (attempt,))


def a_job_that_restarts_at_once(stage):
    """Its last run is over with its last connection, and has left nothing."""
    if isinstance(stage.server, Torchs):
        raise NotThere("a server that empties itself")
    for _ in range(2):
        expect_sums(ends(*stage.job()), 2)
        wait_until("the port is empty", lambda: stage.store().num_keys() == 0)


def torchrun(stage):
    expect_sums(ends(stage.torchrun("--nnodes=1", "--nproc_per_node=2")), 2)


def torchrun_on_two_nodes(stage):
    nodes = [stage.torchrun("--nnodes=2", "--nproc_per_node=1") for _ in range(2)]
    expect_sums(ends(*nodes), 2)


def two_torchruns_at_one_port(stage):
    """Their rendezvous have names of their own."""
    callers = [Caller(ends, stage.torchrun("--nnodes=1", "--nproc_per_node=1", run=run))
               for run in ("one", "two")]
    for caller in callers:
        caller.join()
        expect_sums(caller.result(), 1)


JOB_CASES = [
    init_process_group_by_tcp, init_process_group_by_variables, init_process_group_with_a_store,
    two_jobs_at_once, two_jobs_one_after_another, two_attempts_of_a_job_at_one_port,
    a_job_that_restarts_at_once, torchrun, torchrun_on_two_nodes, two_torchruns_at_one_port,
]
