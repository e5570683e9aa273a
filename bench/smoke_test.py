"""Test: the benchmarks run, the shortest they can, and a report can be made of what they find.

smoke_test.py MUSTER_BENCH ECHO_SERVER MUSTERD MICRO_REPEAT RUNTIME_RANKS [--tls]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDS_PEERS = {"stateless_groups"}
OF_A_PAGE = {"encryption", "encrypted_strangers", "encrypted_reconnect", "tcpstore"}
OF_TCPSTORE = {f"tcpstore_{what}" for what in ("operations", "multi_set", "barrier", "wake_ups",
                                               "storm")}
GIVES_OTHERS = {"groups": {"start", "join", "barrier", "broadcast", "all_gather", "heartbeats"}}


def main():
    bench, echo_server, musterd, micro_repeat, runtime_ranks, *options = sys.argv[1:]
    programs = [bench, "--echo-server", echo_server, "--musterd", musterd]
    listed = subprocess.run([*programs, "--list"], check=True, capture_output=True, text=True)
    wanted = set()
    asked = {line.split()[0] for line in listed.stdout.splitlines()} - NEEDS_PEERS - OF_A_PAGE
    for question in asked:
        wanted |= GIVES_OTHERS.get(question, {question})
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "found.json")
        subprocess.run([*programs, "--extent", "tiny", "--output", str(found)], check=True)
        rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
        missing = wanted - {row["question"] for row in rows if row["subject"] == "muster"}
        if missing:
            print("nothing was measured of:", *sorted(missing))
            return 1
        subprocess.run([sys.executable, str(HERE / "report.py"), str(found), folder], check=True)
        report = Path(folder, "results.md").read_text(encoding="utf-8")
        if "## Targets" not in report or "## Barrier" not in report:
            print("the report lacks the targets, or a table")
            return 1
        if "--tls" in options:
            subprocess.run([*programs, "--extent", "tiny", "--output", str(found), "encryption"],
                           check=True)
            subprocess.run([sys.executable, str(HERE / "turns_report.py"), str(found), folder],
                           check=True)
            report = Path(folder, "encryption.md").read_text(encoding="utf-8")
            titles = ("## Targets", "## Operations", "## Strangers", "## All connections")
            if not all(title in report for title in titles):
                print("encryption.md lacks the targets, or a table")
                return 1
        subprocess.run([*programs, "--extent", "tiny", "--output", str(found), "tcpstore"],
                       check=True)
        rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
        missing = OF_TCPSTORE - {row["question"] for row in rows}
        if missing:
            print("nothing was measured of:", *sorted(missing))
            return 1
        subprocess.run([sys.executable, str(HERE / "turns_report.py"), str(found), folder],
                       check=True)
        build = Path(runtime_ranks).parents[1]
        for runs, page, titles in (("runtime", "runtime", ("## all_reduce", "## A gather")),
                                   ("launch", "musterrun", ("## A restart", "## A job that"))):
            subprocess.run([sys.executable, str(HERE / runs / "run.py"), str(build), "--tiny",
                            "--folder", folder], check=True)
            report = Path(folder, f"{page}.md").read_text(encoding="utf-8")
            if not all(title in report for title in ("## Targets", *titles)):
                print(f"{page}.md lacks the targets, or a table")
                return 1
    listed = subprocess.run([micro_repeat], check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines()[1:]:
        subprocess.run([micro_repeat, name, "3"], check=True, stdout=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
