"""Looks on a GPU at what only a GPU can show, and measures; needs nothing but a pack and Python.

gpu.py where                  the GPUs and the libnccl that are used
gpu.py list                   the checks, their parts, and how long they take at most
gpu.py check N...             checks of the ten, one after the other
gpu.py bandwidth [OPERATION]... all_reduce, broadcast, send_recv: NCCL alone and Muster
gpu.py creation               how long communicators of overlapping groups take to be made
gpu.py acceptance             the tests that run on doubles and on GPUs alike
gpu.py table [FOLDER]...      what was found, as tables; --write FILE puts them between the lines
                              `<!-- gpu: begin -->` and `<!-- gpu: end -->` of a file

Each verb ends within 500 s: what is not done by then is killed, and told as not run. What a verb
finds is kept as JSON in the folder of results, beside what was found before. Exits with 1 if
something does not hold, with 77 if there is no GPU or no NCCL, and says why.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import found
import report
from plan import BANDWIDTH, CHECKS, OPERATIONS, PARTS
from run import TIME_IS_UP, Child, Place, run_part

PACK = Path(__file__).resolve().parent
LIMIT_S = 500
ENDS_WITHIN_S = 15  # of the limit
ACCEPTANCE_SCALE = "0.2"
ACCEPTANCE_CASE_S = 240


class Verbs:
    """One run of a verb."""

    def __init__(self, options, manifest):
        self.options = options
        self.manifest = manifest
        self.machine = found.machine(PACK / "nccl_gpu", options.nccl, options.cuda,
                                     options.devices)
        until = time.monotonic() + options.limit - min(ENDS_WITHIN_S, options.limit / 10)
        self.place = Place(PACK, self.machine, options.small, until)
        self.failed = 0
        for line in self.machine.lines():
            print(line)

    def source(self):
        return {"machine": self.machine.as_json(), "state": self.manifest["state"],
                "is_small": self.options.small}

    def keep(self, stem, **result):
        folder = Path(self.options.results)
        folder.mkdir(parents=True, exist_ok=True)
        result = {**self.source(), "when": time.strftime("%Y-%m-%d %H:%M:%S"), **result}
        (folder / f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n",
                                             encoding="utf-8")

    def rows_before(self, stem):
        """What the same programs have found earlier, by key."""
        path = Path(self.options.results) / f"{stem}.json"
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if {name: before.get(name) for name in self.source()} != self.source():
            return {}
        return {row["key"]: row for row in before["rows"]}

    def tell(self, row):
        self.failed += row["outcome"] == "fails"
        print(f"{row['key']}: {report.outcome(row)}", flush=True)
        for line in row["log"]:
            print(f"    {line}", flush=True)

    def check(self, numbers):
        for number in dict.fromkeys(numbers):
            stem = report.stem_of_check(number)
            rows = self.rows_before(stem)
            for part in parts_of(number, self.options.only):
                row = run_part(self.place, part)
                self.tell(row)
                if row["why"] != TIME_IS_UP or part.key not in rows:
                    rows[part.key] = row
            self.keep(stem, rows=list(rows.values()))

    def bandwidth(self, operations):
        for operation in dict.fromkeys(operations or OPERATIONS):
            part = BANDWIDTH[operation]
            devices = len(self.machine.devices)
            if operation != "send_recv" and devices > part.ranks:
                part.ranks = devices
            row = run_part(self.place, part)
            self.tell({**row, "key": f"bandwidth {operation}"})
            self.keep(f"bandwidth-{operation}", rows=[row], ranks=part.ranks)

    def output_of(self, name, command, seconds, ranks, further):
        """(exit code or None where time was up, what it printed, its errors)."""
        environment = self.place.environment(ranks, None, further)
        with found.temporary_folder() as folder:
            child = Child([PACK / name, *command], environment, folder, name)
            try:
                code = child.process.wait(max(0.1, min(seconds, self.place.left_s())))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                child.end()
            return code, child.lines(), child.log()

    def creation(self):
        sizes = [3, 2, 2] if self.options.small else [4, 2, 5]
        code, lines, log = self.output_of(
            "communicators", ["creation", *map(str, sizes)], LIMIT_S, sizes[0],
            {"MUSTER_BENCH_DEVICES": str(len(self.machine.devices))})
        lines = [" ".join(line.split()) for line in lines if not line.startswith("NCCL")]
        if code != 0:
            self.failed += code is not None
            lines = [f"not run: {TIME_IS_UP}" if code is None else f"**ended with {code}**"] + log
        print("\n".join(lines))
        self.keep("creation", lines=lines)

    def acceptance(self):
        further = {"MUSTER_TEST_SCALE": os.environ.get("MUSTER_TEST_SCALE", ACCEPTANCE_SCALE)}
        if self.options.nccl or self.machine.nccl_path:
            further["NCCL_DOUBLE"] = self.machine.nccl_path
        if self.options.cuda:
            further["CUDA_DOUBLE"] = self.options.cuda
        code, lines, log = self.output_of("nccl_acceptance", ["--list-test-cases"],
                                          found.TIMEOUT_S, 1, further)
        names = [line for line in lines if not line.startswith(("[doctest]", "="))]
        if code != 0 or not names:
            sys.exit(f"nccl_acceptance names no tests; it ended with {code}: {log}")
        rows = []
        for name in names:
            rows.append(self.case(name, further))
            self.tell(rows[-1])
        self.keep("acceptance", rows=rows)

    def case(self, name, further):
        row = {"key": name, "outcome": "not_run", "why": TIME_IS_UP, "figures": {},
               "is_short": False, "log": []}
        if self.place.left_s() <= 0:
            return row
        began = time.monotonic()
        filtered = "--test-case=" + name.replace(",", "?")  # a comma would begin another name
        code, lines, log = self.output_of("nccl_acceptance", [filtered, "--no-colors=true"],
                                          ACCEPTANCE_CASE_S, sys.maxsize, further)
        row["seconds"] = round(time.monotonic() - began, 1)
        is_run = any("test cases: 1 |" in " ".join(line.split()) for line in lines)
        if code == 0 and is_run:
            row.update(outcome="holds", why="")
        elif code is not None or self.place.left_s() > 0:
            why = f"it ended with {code}" if code is not None else "it had not ended in time"
            row.update(outcome="fails", why=why, log=log)
        return row


def parts_of(check, only=""):
    return [part for part in PARTS if part.check == check and only in part.key]


def print_list():
    for number, what in CHECKS.items():
        seconds = sum(part.seconds for part in parts_of(number))
        print(f"check {number}: {what}; repeats for at most {seconds} s")
        for part in parts_of(number):
            print(f"    {part.key}: {part.must}")
    for operation in OPERATIONS:
        print(f"bandwidth {operation}: repeats for at most {BANDWIDTH[operation].seconds} s")
    print("creation\nacceptance")


def print_table(options):
    lines = list(report.table(report.Results(options.arguments or [options.results])))
    if options.write:
        report.write(Path(options.write), lines)
    else:
        print("\n".join(lines))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("where", "list", "check", "bandwidth", "creation",
                                         "acceptance", "table"))
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT")
    parser.add_argument("--nccl", default=os.environ.get("MUSTER_NCCL_LIBRARY", ""),
                        help="the path of libnccl.so.2 (MUSTER_NCCL_LIBRARY); else it is looked "
                        "for: by the dynamic linker, then in Python environments")
    parser.add_argument("--cuda", default=os.environ.get("MUSTER_CUDA_LIBRARY", ""),
                        help="the path of the driver's libcuda.so.1 (MUSTER_CUDA_LIBRARY)")
    parser.add_argument("--results", metavar="FOLDER",
                        default=os.environ.get("MUSTER_GPU_RESULTS", str(PACK / "results")),
                        help="where results are kept (MUSTER_GPU_RESULTS); else in the pack")
    parser.add_argument("--devices", type=int, default=0, metavar="N",
                        help="uses so many GPUs at most")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S",
                        help=f"the verb ends within so many seconds, at most {LIMIT_S}")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="of checks the parts whose names in `list` contain this")
    parser.add_argument("--small", action="store_true", help="small sizes and numbers")
    parser.add_argument("--write", metavar="FILE", help="puts the tables into it")
    options = parser.parse_intermixed_args()
    options.limit = min(options.limit, LIMIT_S)
    for name in ("nccl", "cuda"):  # what has no folder is looked for by the dynamic linker
        if "/" in getattr(options, name):
            setattr(options, name, os.path.abspath(getattr(options, name)))
    if options.verb == "check":
        known = {str(number) for number in CHECKS}
        if not options.arguments or not known.issuperset(options.arguments):
            parser.error(f"check takes numbers of {', '.join(known)}; see `list`")
        options.arguments = [int(text) for text in options.arguments]
        if not any(parts_of(number, options.only) for number in options.arguments):
            parser.error(f"no part of these checks has {options.only} in its name; see `list`")
    elif options.verb == "bandwidth" and not set(OPERATIONS).issuperset(options.arguments):
        parser.error(f"bandwidth takes {', '.join(OPERATIONS)}")
    elif options.verb not in ("bandwidth", "table") and options.arguments:
        parser.error(f"{options.verb} takes no argument")
    return options


def run_verb(options):
    if not (PACK / "manifest.json").exists():
        sys.exit(f"{PACK} is no pack; `tools/dev gpu pack` makes one")
    manifest = json.loads((PACK / "manifest.json").read_text(encoding="utf-8"))
    lacking = found.lacking_glibc(manifest["glibc"])
    if lacking:
        print(lacking, file=sys.stderr)
        return 2
    try:
        verbs = Verbs(options, manifest)
    except found.NoGpu as reason:
        print(f"no GPU to run on, or no NCCL: {reason}", file=sys.stderr)
        return found.SKIPPED
    if options.verb == "check":
        verbs.check(options.arguments)
    elif options.verb == "bandwidth":
        verbs.bandwidth(options.arguments)
    elif options.verb == "creation":
        verbs.creation()
    elif options.verb == "acceptance":
        verbs.acceptance()
    return 1 if verbs.failed else 0


def main():
    options = parsed()
    if options.verb == "list":
        print_list()
        return 0
    if options.verb == "table":
        print_table(options)
        return 0
    return run_verb(options)


if __name__ == "__main__":
    sys.exit(main())
