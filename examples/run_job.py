"""Runs an example of muster-runtime as its text says: musterd, and processes that are told their
places by the environment.

run_job.py (job | train_and_serve) PROGRAM MUSTERD   musterd listens at a port that the system
                                                     chooses
"""

import os
import re
import subprocess
import sys

PATIENCE_S = 30


def run_ranks(program, count, address):
    ranks = []
    for rank in range(count):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
                 "LOCAL_WORLD_SIZE": str(count), "MUSTER_STORE": address}
        ranks.append(subprocess.Popen([program], stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, **place}))
    try:
        return [(rank.communicate(timeout=PATIENCE_S)[0], rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def run_beside(musterd, program, count):
    with subprocess.Popen([musterd, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                          text=True) as server:
        try:
            for line in server.stderr:
                if found := re.search(r"127\.0\.0\.1:\d+", line):
                    return run_ranks(program, count, found[0])
            sys.exit("musterd does not say where it listens")
        finally:
            server.kill()


def check(name, ended, expected):
    status, output = ended
    if status != 0 or output != expected:
        sys.exit(f"{name} ended with {status}: {output!r}")


def run_job(program, musterd):
    alone = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, env={})
    check("alone it", (alone.returncode, alone.stdout),
          "rank 0 of 1, local rank 0: model=muster-7b, 1\n")
    for rank, (output, status) in enumerate(run_beside(musterd, program, 2)):
        check(f"rank {rank}", (status, output),
              f"rank {rank} of 2, local rank {rank}: model=muster-7b, 2\n")


def run_train_and_serve(program, musterd):
    for rank, (output, status) in enumerate(run_beside(musterd, program, 4)):
        serves = f"rank {rank} serves: the line is at 7 where x is 2\n"
        check(f"rank {rank}", (status, output), serves if rank >= 2 else "")


def main():
    name, program, musterd = sys.argv[1:]
    {"job": run_job, "train_and_serve": run_train_and_serve}[name](program, musterd)


main()
