"""Measures what stands in the place of others' classes, beside those, in turns.

drop_ins.py BUILD [--tiny | --quick] [--peers] [--folder FOLDER] [QUESTION...]

`tools/dev bench --drop-ins` runs it. A question is a function that takes turns, in QUESTIONS.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # pylint: disable=wrong-import-position

PATIENCE_S = 600
PROCESSES = {"tiny": (2,), "quick": (8, 32, 64), "full": (8, 32, 64)}
# By the number of processes: a call of the original takes so much longer.
CALLS = {"tiny": {2: 5}, "quick": {8: 100, 32: 20, 64: 5}, "full": {8: 500, 32: 60, 64: 20}}
OURS_MORE = 10  # times as many of ours: they take as much less

RANKS = {"tiny": (2,), "quick": (8, 32), "full": (8, 32)}
INITS = {"tiny": 2, "quick": 5, "full": 20}


def subjects_of(asked):
    return ["muster", *(["tcpstore"] if asked.peers else [])]


def run(found, question, subject, parameters, *command):
    """One program, whose output is what was measured."""
    environment = {**os.environ,
                   "PYTHONPATH": str(Path(found.asked.build, "bindings", "python"))}
    try:
        done = subprocess.run([found.asked.python, *map(str, command)], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                              env=environment)
    except (subprocess.SubprocessError, OSError) as error:
        found.cannot(question, f"{subject}: {type(error).__name__}")
        return
    found.add({"question": question, "parameters": parameters, "subject": subject,
               "values": json.loads(done.stdout)})


def vllm_group(found, _ends):
    """vLLM's StatelessProcessGroup."""
    asked = found.asked
    measures = []
    for call in ("barrier", "all_gather_obj", "send_recv"):
        for processes in PROCESSES[asked.extent]:
            for subject in subjects_of(asked):
                calls = CALLS[asked.extent][processes]
                calls *= OURS_MORE if subject == "muster" else 1
                measures.append(functools.partial(
                    run, found, "vllm_group", subject, {"call": call, "processes": processes},
                    HERE / "vllm.py", subject, call, processes, calls))
    found.take_turns("vllm_group", measures)


def init_process_group(found, _ends):
    """torch.distributed's, with a store of ours or torch's own. Needs torch for ours, too."""
    asked = found.asked
    found.take_turns("init_process_group", [
        functools.partial(run, found, "init_process_group", subject, {"ranks": ranks},
                          HERE / "init_group.py", subject, ranks, INITS[asked.extent])
        for ranks in RANKS[asked.extent] for subject in subjects_of(asked)])


QUESTIONS = {"vllm_group": vllm_group, "init_process_group": init_process_group}


def main():
    asked = turns.arguments(__doc__, tuple(QUESTIONS))
    found = turns.Found("drop_ins", asked)
    with contextlib.ExitStack() as ends:
        for question in asked.questions or QUESTIONS:
            QUESTIONS[question](found, ends)
    return found.report()


if __name__ == "__main__":
    sys.exit(main())
