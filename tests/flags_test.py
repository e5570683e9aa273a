"""Keeps the table of flags in docs/operations.md true, and the systemd unit in examples/systemd.

flags_test.py MUSTERD   compares them with `MUSTERD --help`: flag, form, default. Prints findings.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = "docs/operations.md"
UNIT = "examples/systemd/musterd.service"
OF_HELP = re.compile(r"^  (--[a-z-]+)(?: ([A-Z]+)(?:=(.*?))?)?(?: \(Env:\w+\))?(?:  +\S.*)?$",
                     re.MULTILINE)
OF_TABLE = re.compile(r"^\| `(--[a-z-]+)(?: ([A-Z]+))?` \| (.*?) \| (.+) \|$", re.MULTILINE)


def told(flag, form, default):
    return f"{flag} {form or 'without a value'}, default {default or 'none'}"


def flags_of_help(musterd):
    text = subprocess.run([musterd, "--help"], check=True, timeout=20, capture_output=True,
                          text=True).stdout
    return {told(*found) for found in OF_HELP.findall(text) if found[0] != "--version"}


def flags_of_document():
    text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    return {told(flag, form, default.strip("`"))
            for flag, form, default, meaning in OF_TABLE.findall(text)}


def unit_findings(musterd, flags):
    """What systemd says of the unit, where it is there; and whether musterd takes its flags."""
    text = (ROOT / UNIT).read_text(encoding="utf-8")
    names = {flag.split(" ")[0] for flag in flags}
    command = re.search(r"^ExecStart=(\S+)((?:.*\\\n)*.*)$", text, re.MULTILINE)
    for used in re.findall(r"--[a-z-]+", command.group(2)):
        if used not in names:
            yield f"{UNIT}: musterd has no flag {used}"
    if shutil.which("systemd-analyze") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder, "musterd.service")
        unit.write_text(text.replace(command.group(1), musterd), encoding="utf-8")
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], timeout=60,
                              capture_output=True, text=True, check=False).stderr
        for line in said.splitlines():
            if "musterd.service" in line:
                yield f"{UNIT}: {line}"
        exposure = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
            timeout=60, capture_output=True, text=True, check=False)
        if exposure.returncode != 0:
            yield f"{UNIT}: above 2.0: {exposure.stdout.splitlines()[-1:]}"


def main():
    musterd = str(Path(sys.argv[1]).resolve())
    in_help, in_document = flags_of_help(musterd), flags_of_document()
    found = [f"{DOCUMENT}: say what this flag does: {flag}" for flag in in_help - in_document]
    found += [f"{DOCUMENT}: musterd has no {flag}" for flag in in_document - in_help]
    found += unit_findings(musterd, in_help)
    if len(in_help) < 10:
        found.append("the help was not understood")
    print("\n".join(sorted(found)))
    sys.exit(1 if found else 0)


main()
