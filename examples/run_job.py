"""Runs the job as its text says: musterd and two processes, told their places by the environment.

run_job.py JOB MUSTERD   musterd listens at a port that the system chooses.
"""

import os
import re
import subprocess
import sys

PATIENCE_S = 30


def run_alone(job):
    done = subprocess.run([job], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, env={})
    return done.returncode, done.stdout


def run_ranks(job, address):
    ranks = []
    for rank in range(2):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                 "LOCAL_WORLD_SIZE": "2", "MUSTER_STORE": address}
        ranks.append(subprocess.Popen([job], stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, **place}))
    try:
        return [(rank.communicate(timeout=PATIENCE_S)[0], rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def main():
    job, musterd = sys.argv[1:]
    status, output = run_alone(job)
    if status != 0 or output != "rank 0 of 1, local rank 0: model=muster-7b, 1\n":
        sys.exit(f"alone it ended with {status}: {output!r}")
    with subprocess.Popen([musterd, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                          text=True) as server:
        try:
            for line in server.stderr:
                if found := re.search(r"127\.0\.0\.1:\d+", line):
                    break
            else:
                sys.exit("musterd does not say where it listens")
            ended = run_ranks(job, found[0])
        finally:
            server.kill()
    for rank, (output, status) in enumerate(ended):
        expected = f"rank {rank} of 2, local rank {rank}: model=muster-7b, 2\n"
        if status != 0 or output != expected:
            sys.exit(f"rank {rank} ended with {status}: {output!r}")


main()
