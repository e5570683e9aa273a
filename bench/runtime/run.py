"""Measures calls of muster-runtime between processes, and the same by torch, in turns.

run.py BUILD [--tiny | --quick] [--peers] [--folder FOLDER] [QUESTION...]

`tools/dev bench --runtime` runs it.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # pylint: disable=wrong-import-position

QUESTIONS = ("synchronize_value", "all_reduce", "gather")
OF_TORCH = {"synchronize_value", "all_reduce"}
TINY = {"synchronize_value": ["--ranks", "2"],
        "all_reduce": ["--ranks", "2", "--bytes", "1024", "--bytes", "2097152"],
        "gather": ["--ranks", "3", "--bytes", "3145728"]}
PATIENCE_S = 300  # of one program


def measure(found, question, command):
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
        found.cannot(question, why)
        return
    for line in done.stdout.splitlines():
        found.add(json.loads(line))


def commands_of(asked, question):
    options = [question, "--rounds", "1", *(TINY[question] if asked.extent == "tiny" else [])]
    yield [str(Path(asked.build, "bench", "runtime_ranks")), *options]
    if asked.peers and question in OF_TORCH:
        yield [asked.python, str(HERE / "torch_ranks.py"), *options]


def main():
    asked = turns.arguments(__doc__, QUESTIONS)
    found = turns.Found("runtime", asked)
    for question in asked.questions or QUESTIONS:
        found.take_turns(question, [functools.partial(measure, found, question, command)
                                    for command in commands_of(asked, question)])
    return found.report()


if __name__ == "__main__":
    sys.exit(main())
