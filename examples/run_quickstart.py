"""Runs the quickstart as its text says: two processes, one command line each.

run_quickstart.py QUICKSTART   The port is any that nobody uses at the moment.
"""

import socket
import subprocess
import sys


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_pair(program, port):
    ranks = [
        subprocess.Popen([program, str(rank), "2", str(port)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        return [(rank.communicate(timeout=30), rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def main():
    # Between the choice of a port and its use somebody else may take it; then with another one.
    for _ in range(5):
        ended = run_pair(sys.argv[1], free_port())
        if not any("address_in_use" in errors for (_, errors), _ in ended):
            break
    for rank, ((output, errors), status) in enumerate(ended):
        expected = f"rank {rank} of 2: model=muster-7b\n"
        if status != 0 or output != expected:
            sys.exit(f"rank {rank} ended with {status}: {output!r}, {errors!r}")


main()
