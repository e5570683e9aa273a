"""Runs in which programs take turns, each time with new processes, and what they come to.

What they find is collected in the form of muster_bench; turns_report.py makes the page of it.
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
# Times that the programs take turns.
TURNS = {"tiny": 1, "quick": 2, "full": 5}


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


def programs(asked):
    versions = {"muster": first_line_of([Path(asked.build, "tools", "musterd"), "--version"])}
    if asked.peers:
        version = "import torch; print(torch.__version__)"
        versions["torch"] = "torch " + first_line_of([asked.python, "-c", version])
    return versions


class Found:
    def __init__(self, page, asked):
        self.page = page
        self.asked = asked
        self.head = {"page": page, "machine": machine(), "programs": programs(asked),
                     "extent": asked.extent}
        self.seconds = {}
        self.rows = {}
        self.not_measured = []

    def add(self, one):
        name = json.dumps([one["question"], one["parameters"], one["subject"]])
        row = self.rows.setdefault(name, {**one, "rounds": []})
        row.pop("values", None)
        row["rounds"].append(one["values"])

    def cannot(self, question, why):
        self.not_measured.append({"question": question, "why": why})

    def take_turns(self, question, measures, count=None):
        """Calls each of them in each turn: every other time in the other order."""
        print(question, file=sys.stderr, flush=True)
        began = time.monotonic()
        for turn in range(count or TURNS[self.asked.extent]):
            for measure in measures if turn % 2 == 0 else reversed(measures):
                measure()
        self.seconds[question] = time.monotonic() - began

    def report(self):
        """Writes what was found, and the page of it. returns  an exit code"""
        questions = list(self.seconds)
        def place(row):  # cases together, in the order of their parameters
            return questions.index(row["question"]), list(row["parameters"].values())
        found = {**self.head, "seconds": self.seconds,
                 "rows": sorted(self.rows.values(), key=place), "not_measured": self.not_measured}
        path = Path(self.asked.build, f"{self.page}_found.json")
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")
        subprocess.run([sys.executable, str(HERE / "turns_report.py"), str(path),
                        self.asked.folder], check=True)
        print(f"The tables are in {self.asked.folder}/{self.page}.md")
        return 1 if self.not_measured else 0


def arguments(description, questions):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build", help="its folder")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=" ".join(questions))
    parser.add_argument("--tiny", dest="extent", action="store_const", const="tiny",
                        default="full", help="seconds: does it work at all?")
    parser.add_argument("--quick", dest="extent", action="store_const", const="quick")
    parser.add_argument("--peers", action="store_true", help="also torch")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that finds torch")
    parser.add_argument("--folder", help="of the report; else docs/benchmarks for a full run of "
                        "everything, report in that of the build for any other one")
    asked = parser.parse_intermixed_args()
    unknown = set(asked.questions) - set(questions)
    if unknown:
        parser.error(f"there is no question {' '.join(sorted(unknown))}: {' '.join(questions)}")
    is_all = asked.extent == "full" and asked.peers and not asked.questions
    asked.folder = asked.folder or str(
        HERE.parent / "docs" / "benchmarks" if is_all else Path(asked.build, "report"))
    return asked
