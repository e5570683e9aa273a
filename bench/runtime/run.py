"""Measures calls of muster-runtime between processes, and the same by torch, in turns.

run.py BUILD [--tiny | --quick] [--peers] [--folder FOLDER] [QUESTION...]

Writes what it has found, in the form of muster_bench, to runtime_found.json in the folder of the
build, and makes the report of it. `tools/dev bench --runtime` runs it.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUESTIONS = ("synchronize_value", "all_reduce", "gather")
OF_TORCH = {"synchronize_value", "all_reduce"}
# Times that the programs take turns, each with new processes.
TURNS = {"tiny": 1, "quick": 2, "full": 5}
TINY = {"synchronize_value": ["--ranks", "2"],
        "all_reduce": ["--ranks", "2", "--bytes", "1024", "--bytes", "2097152"],
        "gather": ["--ranks", "3", "--bytes", "3145728"]}
PATIENCE_S = 300  # of one program


def field_of(path, name):
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(name) and ":" in line:
            return line.split(":", 1)[1].strip()
    return ""


def first_line_of(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[0]


def machine():
    return {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "processor": field_of("/proc/cpuinfo", "model name"),
            "cores": len(os.sched_getaffinity(0)),
            "is_virtual": "hypervisor" in field_of("/proc/cpuinfo", "flags"),
            "memory": field_of("/proc/meminfo", "MemTotal"),
            "system": f"{platform.system()} {platform.release()}",
            "load_at_start": f"{os.getloadavg()[0]:.2f}"}


class Found:
    def __init__(self):
        self.rows = {}
        self.not_measured = []

    def add(self, line):
        one = json.loads(line)
        name = json.dumps([one["question"], one["parameters"], one["subject"]])
        row = self.rows.setdefault(name, {**one, "rounds": []})
        row.pop("values", None)
        row["rounds"].append(one["values"])

    def measure(self, question, command):
        # Gloo of torch: over loopback, as muster-gloo's ranks, which meet at 127.0.0.1.
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        try:
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                  timeout=PATIENCE_S, env=environment)
        except (subprocess.SubprocessError, OSError) as error:
            program = next(Path(word).name for word in command if "_ranks" in word)
            why = f"{program}: {type(error).__name__}"
            if isinstance(error, subprocess.CalledProcessError):
                why = f"{program} ended with {error.returncode}"
            self.not_measured.append({"question": question, "why": why})
            return
        for line in done.stdout.splitlines():
            self.add(line)

    def sorted_rows(self):
        """Cases together, in the order of their parameters."""
        def place(row):
            return QUESTIONS.index(row["question"]), list(row["parameters"].values())
        return sorted(self.rows.values(), key=place)


def commands_of(asked, question):
    options = [question, "--rounds", "1", *(TINY[question] if asked.extent == "tiny" else [])]
    yield [str(Path(asked.build, "bench", "runtime_ranks")), *options]
    if asked.peers and question in OF_TORCH:
        yield [asked.python, str(HERE / "torch_ranks.py"), *options]


def programs(asked):
    versions = {"muster": first_line_of([Path(asked.build, "tools", "musterd"), "--version"])}
    if asked.peers:
        version = "import torch; print(torch.__version__)"
        versions["torch"] = "torch " + first_line_of([asked.python, "-c", version])
    return versions


def main():
    asked = arguments()
    found, seconds = Found(), {}
    head = {"machine": machine(), "programs": programs(asked), "extent": asked.extent}
    for question in asked.questions or QUESTIONS:
        print(question, file=sys.stderr, flush=True)
        began = time.monotonic()
        commands = list(commands_of(asked, question))
        for turn in range(TURNS[asked.extent]):
            for command in commands if turn % 2 == 0 else reversed(commands):
                found.measure(question, command)
        seconds[question] = time.monotonic() - began
    report = {**head, "seconds": seconds, "rows": found.sorted_rows(),
              "not_measured": found.not_measured}
    path = Path(asked.build, "runtime_found.json")
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")
    subprocess.run([sys.executable, str(HERE.parent / "runtime_report.py"), str(path),
                    asked.folder], check=True)
    print(f"The tables are in {asked.folder}/runtime.md")
    return 1 if found.not_measured else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="its folder")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=" ".join(QUESTIONS))
    parser.add_argument("--tiny", dest="extent", action="store_const", const="tiny",
                        default="full", help="seconds: does it work at all?")
    parser.add_argument("--quick", dest="extent", action="store_const", const="quick")
    parser.add_argument("--peers", action="store_true", help="also torch")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that finds torch")
    parser.add_argument("--folder", help="of the report; else docs/benchmarks for a full run of "
                        "everything, report in that of the build for any other one")
    asked = parser.parse_intermixed_args()
    unknown = set(asked.questions) - set(QUESTIONS)
    if unknown:
        parser.error(f"there is no question {' '.join(sorted(unknown))}: {' '.join(QUESTIONS)}")
    is_all = asked.extent == "full" and asked.peers and not asked.questions
    asked.folder = asked.folder or str(
        HERE.parents[1] / "docs" / "benchmarks" if is_all else Path(asked.build, "report"))
    return asked


if __name__ == "__main__":
    sys.exit(main())
