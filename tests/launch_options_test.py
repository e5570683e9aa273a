"""Keeps the tables of docs/musterrun.md true.

launch_options_test.py MUSTERRUN   compares the options with `MUSTERRUN --help`: names, form,
default; and the variables with those that the source names, also those of the manual page. The
commands that are examples are taken. Prints findings.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = "docs/musterrun.md"
PAGE = "docs/man/musterrun.1"
SOURCE = "src/launch/rank_environment.cpp"
OF_GUARDIAN = {"MUSTER_HOST_PID"}  # what only the started process can know
TORCHRUN_OPTIONS = """
    --nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --standalone
    --max-restarts --monitor-interval --start-method --event-log-handler --role --module --no-python
    --run-path --log-dir --redirects --tee --local-ranks-filter --node-rank --master-addr
    --master-port --local-addr --logs-specs --numa-binding --signals-to-handle --virtual-local-rank
    --duplicate-stdout-filters --duplicate-stderr-filters --log-line-prefix-template""".split()
COMPOSER_OPTIONS = """
    --nproc --stdout --stderr --verbose --module_mode --command_mode --world_size --base_rank
    --node_rank --master_addr --master_port""".split()
OF_HELP = re.compile(r"^  (-[-\w,]+)(?: ([A-Z:]+)(?:=(\S+))?)?(?:  +\S.*)?$", re.MULTILINE)
OF_TABLE = re.compile(r"^\| (`-.*) \|$", re.MULTILINE)
OF_EXAMPLES = re.compile(r"(?:^ *|`)musterrun (-[^`\n]+)", re.MULTILINE)
OF_VARIABLES = re.compile(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| (?:[^|]+) \|$", re.MULTILINE)


def told(names, form, default):
    fallback = default or ("none" if form else "off")
    return f"{names} {form or 'without a value'}, default {fallback}"


def options_of_help(musterrun):
    text = subprocess.run([musterrun, "--help"], check=True, timeout=20, capture_output=True,
                          text=True).stdout
    return {told(*found) for found in OF_HELP.findall(text)
            if found[0] not in ("-h,--help", "--version")}


def rows_of_document(text):
    for row in OF_TABLE.findall(text):
        cells = row.split("|")
        quoted = re.findall(r"`([^`]+)`", cells[0])
        form = quoted[-1].partition(" ")[2]
        names = ",".join(name.partition(" ")[0] for name in quoted)
        yield names, form, *(cell.strip("` ") for cell in cells[1:4])


def refused_examples(musterrun):
    told = {"--help": subprocess.run([musterrun, "--help"], check=True, timeout=20,
                                     capture_output=True, text=True).stdout}
    for path in (DOCUMENT, PAGE, "README.md", "docs/operations.md", "docs/runtime.md"):
        told[path] = (ROOT / path).read_text(encoding="utf-8").replace(r"\-", "-")
    alone = {"PATH": os.environ["PATH"]}
    for where, text in told.items():
        for line in OF_EXAMPLES.findall(text.replace(r"\(aq", "'")):
            ended = subprocess.run([musterrun, "--dry-run", *shlex.split(line)], timeout=20,
                                   capture_output=True, text=True, check=False, env=alone)
            if ended.returncode != 0:
                yield f"{where}: musterrun {line}: {ended.stderr.strip()}"


def findings(musterrun):
    yield from refused_examples(musterrun)
    text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    rows = list(rows_of_document(text))
    in_document = {told(names, form, default) for names, form, default, _, _ in rows}
    in_help = options_of_help(musterrun)
    yield from (f"{DOCUMENT}: say what this option does: {each}" for each in in_help - in_document)
    yield from (f"{DOCUMENT}: musterrun has no {each}" for each in in_document - in_help)
    if len(in_help) < 40:
        yield "the help was not understood"
    composer = " ".join(row[3] for row in rows)
    torchrun = " ".join(row[4] for row in rows)
    for option, spellings, whose in ([(option, composer, "composer") for option in COMPOSER_OPTIONS]
                                     + [(option, torchrun, "torchrun")
                                        for option in TORCHRUN_OPTIONS]):
        if option not in re.findall(r"--[\w-]+", spellings):
            yield f"{DOCUMENT}: there is no row with {option} of {whose}"
    source = (ROOT / SOURCE).read_text(encoding="utf-8")
    body = source[source.index("void add_defaults"):]
    in_source = set(re.findall(r'"([A-Z_]{4,})"', body)) | {"TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                                            "NCCL_ASYNC_ERROR_HANDLING"}
    in_source |= OF_GUARDIAN
    cells = " ".join(OF_VARIABLES.findall(text))
    variables = set(re.findall("[A-Z_]+", cells))
    yield from (f"{DOCUMENT}: say what the variable is: {each}" for each in in_source - variables)
    yield from (f"{DOCUMENT}: ranks get no {each}" for each in variables - in_source)
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    part = re.search(r"^\.SS Variables of ranks\n(.*?)^\.SH ", page, re.MULTILINE | re.DOTALL)[1]
    of_page = set(re.findall(r"\b[A-Z_]{4,}\b", "".join(re.findall(r"^\.TP\n(.*\n)", part, re.M))))
    yield from (f"{PAGE}: say what the variable is: {each}" for each in in_source - of_page)
    yield from (f"{PAGE}: ranks get no {each}" for each in of_page - in_source)


def main():
    found = sorted(findings(str(Path(sys.argv[1]).resolve())))
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
