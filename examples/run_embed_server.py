"""Runs embed_server with three workers, asks it for subgroups, and ends it.

run_embed_server.py EMBED_SERVER   Once by SIGTERM, once by the end of its input.
"""

import signal
import subprocess
import sys

REQUESTS = ["1 3", "2", "1 2 3", "4", "3 1"]
ANSWERS = {
    "request 1: worker 1 did its part; worker 3 did its part;",
    "request 2: worker 2 did its part;",
    "request 3: worker 1 did its part; worker 2 did its part; worker 3 did its part;",
    "request 4: there are no such workers",
    "request 5: worker 1 did its part; worker 3 did its part;",
}


def run(program, end):
    server = subprocess.Popen([program, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    try:
        ready = server.stdout.readline()
        server.stdin.write("".join(line + "\n" for line in REQUESTS))
        server.stdin.flush()
        answers = {server.stdout.readline().rstrip("\n") for _ in REQUESTS}
        end(server)
        last, _ = server.communicate(timeout=40)
    finally:
        server.kill()
    if (ready != "ready\n" or answers != ANSWERS or server.returncode != 0
            or last != "ended: 0 sessions left, 0 workers failed\n"):
        sys.exit(f"ended with {server.returncode}: {ready!r}, {answers}, {last!r}")


def by_signal(server):
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=40)


def by_end_of_input(_):
    pass  # communicate() closes it


run(sys.argv[1], by_signal)
run(sys.argv[1], by_end_of_input)
