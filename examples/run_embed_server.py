"""Runs embed_server with three workers, asks it for subgroups, and ends it.

run_embed_server.py EMBED_SERVER   Once by SIGTERM, once by the end of its input; then with more
                                   requests than a session may have calls, and with a worker that
                                   is stopped.
"""

import os
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


def start(program):
    server = subprocess.Popen([program, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    if server.stdout.readline() != "ready\n":
        sys.exit("it does not become ready")
    return server


def a_worker_of(server):
    """The pid of one; it is stopped, so that it does not end."""
    with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii") as children:
        worker = int(children.read().split()[0])
    os.kill(worker, signal.SIGSTOP)
    return worker


def check(holds, what):
    if not holds:
        sys.exit("not so: " + what)


def many_requests(program):
    server = start(program)
    output, _ = server.communicate("1 2\n" * 3000, timeout=60)
    answers = [line for line in output.splitlines() if line.endswith("its part;")]
    check(len(answers) == 3000 and server.returncode == 0, "every request is answered")


def a_stopped_worker(program):
    """Does not keep the server from ending, nor is it left behind."""
    server = start(program)
    worker = a_worker_of(server)
    server.send_signal(signal.SIGTERM)
    check(server.wait(timeout=30) == 1, "it says that a worker failed")
    check(not os.path.exists(f"/proc/{worker}"), "the worker is gone")


def two_signals(program):
    server = start(program)
    worker = a_worker_of(server)
    server.send_signal(signal.SIGTERM)
    server.send_signal(signal.SIGINT)
    check(server.wait(timeout=4) == 1, "the second signal ends it at once")
    check(not os.path.exists(f"/proc/{worker}"), "the worker is gone")


run(sys.argv[1], by_signal)
run(sys.argv[1], by_end_of_input)
many_requests(sys.argv[1])
a_stopped_worker(sys.argv[1])
two_signals(sys.argv[1])
