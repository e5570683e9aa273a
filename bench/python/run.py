"""Measures calls from Python, beside Muster's own of C++, torch's TCPStore and redis-py, in turns.

run.py BUILD [--tiny | --quick] [--peers] [--folder FOLDER] [QUESTION...]

`tools/dev bench --python` runs it.
"""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # pylint: disable=wrong-import-position

QUESTIONS = ("python_calls", "python_barrier", "python_import")
CALLS = {"tiny": 100, "quick": 5_000, "full": 20_000}
PROCESSES = {"tiny": (2,), "quick": (2, 8), "full": (2, 8, 64)}
IMPORTS = {"tiny": 2, "quick": 10, "full": 30}
MODULES = {"muster": "muster", "tcpstore": "torch.distributed", "redis": "redis"}
PATIENCE_S = 300


class Servers:
    """One of each, on a port that is free, pinned to the last processor."""

    def __init__(self, asked, ends):
        self.addresses = {}
        self.ends = ends
        last = max(os.sched_getaffinity(0))
        self.pinned = ["taskset", "-c", str(last)]
        musterd = str(Path(asked.build, "tools", "musterd"))
        line = self.first_line([musterd, "--listen", "127.0.0.1:0", "--log-level", "warning"])
        self.addresses["muster"] = self.addresses["muster_cpp"] = line.split()[-1]
        if not asked.peers:
            return
        port = self.first_line([asked.python, str(HERE.parent / "tcpstore_server.py")]).strip()
        self.addresses["tcpstore"] = f"127.0.0.1:{port}"
        self.addresses["redis"] = self.start_redis()

    def start(self, command, **options):
        process = subprocess.Popen(self.pinned + command, text=True, **options)

        def end():
            process.kill()
            process.wait()
        self.ends.callback(end)
        return process

    def first_line(self, command):
        return self.start(command, stdout=subprocess.PIPE).stdout.readline()

    def start_redis(self):
        from socket import create_connection, create_server
        with create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        server = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        # redis-check-rdb of Debian's redis-tools is the server, too, by its name.
        self.start(["bash", "-c", f"exec -a redis-server {server} --port {port} --save '' "
                    "--bind 127.0.0.1"], stdout=subprocess.DEVNULL)
        for _ in range(200):
            with contextlib.suppress(OSError), create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        return f"127.0.0.1:{port}"


def command_of(asked, subject, *arguments):
    if subject == "muster_cpp":
        return [str(Path(asked.build, "bench", "python_calls")), *arguments]
    return [asked.python, str(HERE / "calls.py"), subject, *arguments]


def environment_of(asked):
    return {**os.environ, "PYTHONPATH": str(Path(asked.build, "bindings", "python"))}


def measure(found, servers, question, subject, parameters, calls):
    measure.number += 1
    command = command_of(found.asked, subject, servers.addresses[subject],
                         f"run{measure.number}", parameters["operation"],
                         str(parameters["processes"]), str(calls))
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S, env=environment_of(found.asked))
    except (subprocess.SubprocessError, OSError) as error:
        found.cannot(question, f"{subject}: {type(error).__name__}")
        return
    found.add({"question": question, "parameters": parameters, "subject": subject,
               "values": json.loads(done.stdout)})


measure.number = 0


def measure_import(found, subject):
    """The first import may read from the disk: the median of many counts."""
    count = IMPORTS[found.asked.extent]
    program = ("import time; began = time.perf_counter(); import " + MODULES[subject] +
               "; print((time.perf_counter() - began) * 1e3)")
    times = []
    for _ in range(count):
        done = subprocess.run([found.asked.python, "-c", program], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                              env=environment_of(found.asked))
        times.append(float(done.stdout))
    found.add({"question": "python_import", "parameters": {"of": "a process"}, "subject": subject,
               "values": {"wall_ms": sorted(times)[count // 2]}})


def subjects_of(asked):
    return ["muster_cpp", "muster", *(["tcpstore", "redis"] if asked.peers else [])]


def ask(found, servers, question):
    asked = found.asked
    calls = CALLS[asked.extent]
    if question == "python_import":
        found.take_turns(question, [functools.partial(measure_import, found, subject)
                                    for subject in subjects_of(asked)[1:]])
        return
    cases = [{"operation": operation, "processes": 1} for operation in ("get", "set", "add")]
    if question == "python_barrier":
        cases = [{"operation": "barrier", "processes": count} for count in PROCESSES[asked.extent]]
    found.take_turns(question, [
        functools.partial(measure, found, servers, question, subject, case,
                          max(50, calls // case["processes"] // 4)
                          if question == "python_barrier" else calls)
        for case in cases for subject in subjects_of(asked)])


def main():
    asked = turns.arguments(__doc__, QUESTIONS)
    found = turns.Found("python", asked)
    with contextlib.ExitStack() as ends:
        servers = Servers(asked, ends)
        for question in asked.questions or QUESTIONS:
            ask(found, servers, question)
    return found.report()


if __name__ == "__main__":
    sys.exit(main())
