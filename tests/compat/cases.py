"""Programs of torch whose TCPStore is a musterd: each case, and how it ended.

    cases.py MUSTERD [--only CASE]... [--together NUMBER] [--list]
    cases.py --torch ...   the same against torch's own server, which shows that the cases are right

Prints a line for each case: ok; failed, and why; or `not there`, and what this version of torch
lacks. Exits with 1 if one has failed, with 77 if there is no torch. Each case has a server of its
own, and all of its processes end with it.
"""

import argparse
import ctypes
import functools
import importlib.util
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

LIMIT_S = 45  # of a case of a store; a case of jobs starts many programs
JOB_LIMIT_S = 150
SKIPPED = 77
LOG_BYTES = 4000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Ended(Exception):
    """This process shall end."""


def control(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def children():
    """Of this process; orphans below it become its children, too."""
    own = os.getpid()
    found = Path(f"/proc/{own}/task/{own}/children").read_text(encoding="ascii")
    return [int(pid) for pid in found.split()]


def name_of(pid):
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(command).decode(errors="replace").strip() or str(pid)
    except OSError:
        return str(pid)


def end_children():
    """returns  those that still ran"""
    ended = []
    while pids := children():
        for pid in pids:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                ended.append(name_of(pid))
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return ended


def in_process(work, *arguments):
    """returns  the process, and where it writes what the work returns, as JSON"""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(write_end)
        return pid, read_end
    control(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(read_end)
    try:
        said = work(*arguments)
    except BaseException as error:
        said = ["failed", f"{type(error).__name__}: {error}", traceback.format_exc()[-10_000:]]
    os.write(write_end, json.dumps(said).encode())
    os._exit(0)


def all_of(read_end):
    with open(read_end, "rb") as pipe:
        return pipe.read()


def play(case, stage):
    """What a case's process does. Its output is kept apart."""
    from stage import NotThere

    log = os.open(stage.folder / "case.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        case(stage)
    except NotThere as lacking:
        return ["not there", str(lacking), ""]
    return ["ok", "", ""]


def outcome_within(limit_s, pid, read_end):
    if not select.select([read_end], [], [], limit_s)[0]:
        return ["failed", f"not ended within {limit_s} s", ""]
    said = all_of(read_end)
    os.waitpid(pid, 0)
    return json.loads(said) if said else ["failed", "its process died", ""]


def run(case, limit_s, make_server):
    """A case with its server, and the end of both."""
    from stage import Stage

    def end(*_):
        raise Ended

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory(prefix="muster-compat-") as name:
        folder = Path(name)
        try:
            server = make_server(folder, getattr(case, "flags", ()))
            state, why, trace = outcome_within(
                limit_s, *in_process(play, case, Stage(server, folder)))
            if state == "ok":
                server.stop()
                if left := end_children():
                    state, why = "failed", f"it has left: {'; '.join(left)}"
        finally:
            end_children()
        return [state, why, trace + (logs_in(folder) if state == "failed" else "")]


def logs_in(folder):
    texts = {log.name: log.read_text(encoding="utf-8", errors="replace")[-LOG_BYTES:]
             for log in sorted(folder.glob("*.log"))}
    return "".join(f"--- {name}\n{text}\n" for name, text in texts.items() if text)


def report(case, began, said):
    state, why, details = json.loads(said) if said else ["failed", "its process died", ""]
    took = f" [{time.monotonic() - began:.1f} s]"
    if state == "ok":
        print(f"{case.__name__}: ok{took}", flush=True)
    elif state == "not there":
        print(f"not there: {case.__name__}: {why}", flush=True)
    else:
        print(f"{case.__name__}: failed: {why}{took}\n{details}", end="", flush=True)
    return state == "failed"


def run_all(cases, make_server, together):
    """returns  how many have failed"""
    waiting = list(cases)
    running = {}  # where a case's outcome is read -> case, process, when it began
    failed_count = 0
    try:
        while waiting or running:
            while waiting and len(running) < together:
                case, limit_s = waiting.pop(0)
                pid, read_end = in_process(run, case, limit_s, make_server)
                running[read_end] = case, pid, time.monotonic()
            for read_end in select.select(list(running), [], [])[0]:
                case, pid, began = running.pop(read_end)
                said = all_of(read_end)
                os.waitpid(pid, 0)
                failed_count += report(case, began, said)
    finally:
        for _, pid, _ in running.values():
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
    return failed_count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("musterd", nargs="?")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--together", type=int, default=4)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch")
        return SKIPPED
    import torch

    from job_cases import JOB_CASES
    from stage import Musterd, Torchs
    from store_cases import STORE_CASES

    cases = [(case, JOB_LIMIT_S) for case in JOB_CASES] + [(case, LIMIT_S) for case in STORE_CASES]
    cases = [case for case in cases if not options.only or case[0].__name__ in options.only]
    if options.list:
        print("\n".join(case.__name__ for case, _ in cases))
        return 0
    if not options.torch and options.musterd is None:
        parser.error("which musterd?")
    print(f"torch {torch.__version__}", flush=True)
    musterd = options.musterd and Path(options.musterd).resolve()
    make_server = Torchs if options.torch else functools.partial(Musterd, musterd)
    failed_count = run_all(cases, make_server, options.together)
    print(f"{len(cases)} cases, {failed_count} failed")
    return 1 if failed_count else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
