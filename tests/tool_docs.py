"""Test: what tells of the programs' flags and commands says what --help says.

tool_docs.py MUSTERCTL MUSTERD MUSTERRUN: the man pages have every flag and command of --help and no
others, and pass the checkers that are installed; exit codes are told in the same words everywhere;
bash completes flags and commands, the names that a server has and the values that an option takes;
the completion of zsh names the same.
Prints what differs; exits 1 if something does.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPLETIONS = ROOT / "tools/completion"
CODE = r"\d[\d+N]*|other"
TIMEOUT_S = 20

findings = []


def find(what):
    findings.append(what)


def same(what, expected, found):
    """Both ways: what is missing, and what nothing is known of."""
    for name in sorted(set(expected) - set(found)):
        find(f"{what}: {name} is missing")
    for name in sorted(set(found) - set(expected)):
        find(f"{what}: {name} is not in --help")


def said(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          **options)


class Help:
    """Flags and commands of a program, as its --help lists them."""

    def __init__(self, program, *command):
        told = said(program, *command, "--help")
        if told.returncode != 0:
            find(f"{program} --help: exit code {told.returncode}")
        text = told.stdout
        self.flags = {}  # each with whether it takes a value
        for line in self.part(text, "Options"):
            names, form = re.match(r"  (-[\w,-]*(?:, +-[\w-]+)*)( [A-Z]\S*)?", line).groups()
            self.flags.update({name: form is not None for name in re.split(", *", names)})
        self.long_flags = {flag for flag in self.flags if flag.startswith("--")}
        self.commands = [line.split()[0] for line in self.part(text, "Subcommands")]

    @staticmethod
    def part(text, title):
        found = re.search(rf"^{title}:\n((?:  .*\n)*)", text,
                          re.MULTILINE | re.IGNORECASE)
        return [line for line in found[1].splitlines() if line[2] != " "] if found else []


def flags_of_page(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def check_page(path, flags, commands):
    text = path.read_text(encoding="utf-8").replace(r"\-", "-")
    text = "\n".join(line for line in text.split("\n") if not line.startswith('.\\"'))
    same(path.name, flags, flags_of_page(text))
    section = re.search(r"^\.SH COMMANDS\n(.*?)^\.SH ", text, re.MULTILINE | re.DOTALL)
    told = re.findall(r'^\.TP\n\.BI? "?([a-z_]+)', section[1], re.MULTILINE) if section else []
    same(path.name, commands, told)
    checkers = {
        "groff": ["groff", "-man", "-ww", "-z", "-Tutf8", str(path)],
        "mandoc": ["mandoc", "-Tlint", "-Wwarning", str(path)],
    }
    for checker, command in checkers.items():
        if shutil.which(checker) is None:
            print(f"{path.name}: not checked by {checker}, which is not installed")
            continue
        told = said(*command)
        complaints = (told.stdout + told.stderr).strip()
        if told.returncode != 0 or complaints:
            find(f"{path.name}: {checker}: {complaints}")


def words(text):
    return re.sub(r"[^a-z0-9-]+", " ", text.lower()).strip()


def exit_codes_of_help(text):
    section = re.search(r"^Exit codes:\n((?:  .*\n)*)", text, re.MULTILINE)[1]
    return {code: words(told) for code, told in
            re.findall(rf"^  ({CODE}) +(.*(?:\n     .*)*)", section, re.MULTILINE)}


def exit_codes_of_page(path):
    text = path.read_text(encoding="utf-8").replace(r"\-", "-")
    section = re.search(r"^\.SH EXIT STATUS\n(.*?)^\.SH ", text, re.MULTILINE | re.DOTALL)[1]
    codes = re.findall(rf"\.TP\n\.B ({CODE})\n(.*?)(?=\.TP|\Z)", section, re.DOTALL)
    return {code: words(re.sub(r"^\.B ", "", told, flags=re.MULTILINE)) for code, told in codes}


def exit_codes_of_document(path):
    rows = re.findall(rf"^\| ({CODE}) \| ([^|]*) \|$", path.read_text(encoding="utf-8"),
                      re.MULTILINE)
    return {code: words(told) for code, told in rows}


def check_exit_codes(program, page, document=None):
    """Each is told in the same words wherever it is."""
    in_help = exit_codes_of_help(said(program, "--help").stdout)
    if len(in_help) < 5:
        find(f"{program} --help: its exit codes were read as {in_help}")
    others = {page.name: exit_codes_of_page(page)}
    if document is not None:
        others[document.name] = exit_codes_of_document(document)
    for name, told in others.items():
        for code in sorted(in_help.keys() | told.keys()):
            if told.get(code) != in_help.get(code):
                find(f"{name}: exit code {code}: {told.get(code)}; --help: {in_help.get(code)}")


def completed(line, program, environment=None):
    """What bash offers behind `line`; "(nothing)" where it is told not to offer files then."""
    script = """
      source "$1"
      COMP_LINE=$2 COMP_POINT=${#2} otherwise=''
      compopt() { if [[ $* == "+o default" ]]; then otherwise='(nothing)'; fi; }
      "_$4" "$3"
      printf '%s\\n' "${COMPREPLY[@]:-$otherwise}"
    """
    nowhere = {"MUSTER_SERVER": "unix:/nowhere/musterd"}
    name = Path(program).name
    told = said("bash", "-uc", script, "bash", str(COMPLETIONS / f"{name}.bash"), line, program,
                name, env={**os.environ, **(environment or nowhere)})
    if told.stderr:
        find(f"bash, at '{line}': {told.stderr}")
    return [name for name in told.stdout.split("\n") if name]


def offers(program, line, expected, environment=None):
    found = completed(line, program, environment)
    if sorted(found) != sorted(expected):
        find(f"bash, at '{line}': offers {found}, not {expected}")


def check_bash(musterctl, program, helps):
    offers(musterctl, "musterctl ", program.commands)
    offers(musterctl, "musterctl w", ["wait", "waiters", "whoami", "why"])
    offers(musterctl, "musterctl --json -n job7 why", ["why"])
    offers(musterctl, "musterctl --timeout ", [])
    offers(musterctl, "musterctl why ", [])
    offers(musterctl, "musterctl --on", [])
    offers(musterctl, "musterctl set --on", ["--only-if-absent"])
    for name, command in helps.items():
        same(f"bash, musterctl {name}", program.long_flags | command.long_flags,
             completed(f"musterctl {name} --", musterctl))


def check_bash_with_server(musterctl, musterd):
    """The names that are completed are those that the server has."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/socket"
        server = subprocess.Popen(
            [musterd, "--listen", address, "--log-level", "silent"], stdout=subprocess.PIPE)
        try:
            server.stdout.readline()  # it listens
            keys = ["rank0/a", "rank0/b:1", "rank0/b:2", "with space", "x\ny"]
            for key in keys:
                said(musterctl, "--server", address, "set", key, "")
            here = {"MUSTER_SERVER": address}
            offers(musterctl, "musterctl get rank0/", ["rank0/a", "rank0/b:1", "rank0/b:2"], here)
            offers(musterctl, "musterctl rm rank0/a rank0/b:", ["1", "2"], here)
            offers(musterctl, "musterctl wait w", [r"with\ space"], here)
            offers(musterctl, "musterctl get rank0/a ", [], here)
            offers(musterctl, "musterctl get x", [], here)
            offers(musterctl, "musterctl why ", [], here)
            offers(musterctl, f"musterctl -s {address} ls rank0/a", ["rank0/a"])
            offers(musterctl, f"musterctl --server={address} -n other ls ", [])
        finally:
            server.terminate()
            server.wait(TIMEOUT_S)


def check_bash_of_launcher(musterrun, program):
    """An option's value is not taken for the program, nor the program for a value."""
    for flag, has_value in program.flags.items():
        taken = completed(f"musterrun {flag} {'value ' if has_value else ''}--", musterrun)
        same(f"bash, musterrun {flag}", program.long_flags, taken)
        program_line = f"musterrun {flag} {'value ' if has_value else ''}true --"
        offers(musterrun, program_line, [])
    files, nothing = [], ["(nothing)"]
    levels = ["0", "1", "2", "3"]
    offers(musterrun, "musterrun --max_restarts 3 --nproc", ["--nproc", "--nproc-per-node"])
    offers(musterrun, "musterrun --max-restarts ", nothing)
    offers(musterrun, "musterrun -n ", ["auto", "cpu", "gpu"])
    offers(musterrun, "musterrun --compat ", ["composer", "torchrun"])
    offers(musterrun, "musterrun --compat=t", ["torchrun"])
    offers(musterrun, "musterrun --rdzv_backend ", ["static", "c10d"])
    offers(musterrun, "musterrun -r ", levels)
    offers(musterrun, "musterrun --tee=", levels)
    offers(musterrun, "musterrun --signals-to-handle SIGTERM,SIGUSR",
           ["SIGTERM,SIGUSR1", "SIGTERM,SIGUSR2"])
    offers(musterrun, "musterrun --signals-to-handle SIGK", nothing)
    for line in ("--stdout ", "--log-dir ", "", "./tr", "-- -t", "train.py -", "-- train.py --ve"):
        offers(musterrun, f"musterrun {line}", files)
    offers(musterrun, "musterrun -m ", nothing)
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder, "muster_train")
        command.touch(0o755)
        found = {"PATH": f"{folder}:{os.environ['PATH']}"}
        offers(musterrun, "musterrun -n 2 muster_t", [command.name], found)


def check_zsh(name, commands, flags):
    path = COMPLETIONS / f"_{name}"
    text = path.read_text(encoding="utf-8")
    table = re.search(r"^  commands=\(\n(.*?)^  \)", text, re.MULTILINE | re.DOTALL)
    told = re.findall(r"^ *'([a-z_]+):", table[1], re.MULTILINE) if table else []
    same(path.name, commands, told)
    defined = re.search(r"^  options=\(\n.*", text, re.MULTILINE | re.DOTALL)[0]
    same(path.name, flags, re.findall(r"(?<!\w)--[a-z-]+[a-z]", defined))
    zsh = shutil.which("zsh")
    if zsh is None:
        print("zsh is not installed: its completion was compared by its text alone")
        return
    told = said(zsh, "-n", str(path))
    if told.returncode != 0:
        find(f"zsh: {told.stderr}")


def main():
    musterctl, musterd, musterrun = sys.argv[1:]
    program = Help(musterctl)
    helps = {name: Help(musterctl, name) for name in program.commands}
    if len(helps) < 11:
        find(f"--help of musterctl was read as {program.commands}")
    everything = program.long_flags.union(*(command.long_flags for command in helps.values()))
    check_page(ROOT / "docs/man/musterctl.1", everything, program.commands)
    check_page(ROOT / "docs/man/musterd.8", Help(musterd).long_flags, [])
    launcher = Help(musterrun)
    check_page(ROOT / "docs/man/musterrun.1", launcher.long_flags, [])
    check_exit_codes(musterctl, ROOT / "docs/man/musterctl.1")
    check_exit_codes(musterd, ROOT / "docs/man/musterd.8", ROOT / "docs/operations.md")
    check_exit_codes(musterrun, ROOT / "docs/man/musterrun.1", ROOT / "docs/musterrun.md")
    check_bash(musterctl, program, helps)
    check_bash_with_server(musterctl, musterd)
    check_bash_of_launcher(musterrun, launcher)
    check_zsh("musterctl", program.commands, everything)
    check_zsh("musterrun", [], launcher.long_flags)
    print("\n".join(findings) or "nothing differs")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
