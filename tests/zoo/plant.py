"""Plants the bugs of this folder into a copy of the project.

plant.py --check     fails unless every edit fits the product's text
plant.py FOLDER      writes the copy; files that are already as they should be keep their times
plant.py --list      names the bugs

A bug is an edit of the product's text, so the product has no line for it. The edits stand in the
files *.txt of this folder, in paragraphs:

    bug NAME                what breaks is told in the next line, which is indented
      A sentence.
    in src/core/keys/table.cpp
    - a line of the product, which stands there once
    + if (planted(NAME)) return;
    + a line of the product, which stands there once

`- ` lines are replaced by `+ ` lines; indentation does not count. In a file of Python `+ ` lines
are indented as the first of the `- ` lines, and by what stands before them. More lines `in FILE`
follow, or `and` for a further edit of the same file. Bugs that share a line share a paragraph. `bug
NAME !`: the simulation has no story that could show it; the test suites have to find it. `bug NAME
?`: it is known that no test finds it; docs/reliability.md lists it.

All bugs are in one build, which plants none until the environment says MUSTER_PLANTED=NAME.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SWITCH = re.compile(r"\bplanted\((\w+)\)")
PLANTED = "src/base/planted.h"
IN_CPP = r"(::muster::base::planted == ::muster::base::Bug::\1)"
IN_PYTHON = r'(__import__("os").environ.get("MUSTER_PLANTED") == "\1")'
# Where the simulation goes, by its subjects; the rest of the product is not in it.
SIMULATED = {"server": ("src/core/", "src/client/protocol/", "src/wire/",
                        "src/server/tcpstore/conversation.", "src/server/tcpstore/request"),
             "job": ("src/launch/",)}


class Wrong(Exception):
    """An edit that does not fit, or that cannot be read."""


@dataclass
class Bug:
    name: str
    what: str
    page: str  # the file of this folder that has it, without .txt
    is_simulated: bool
    is_survivor: bool
    files: list = field(default_factory=list)

    def subject(self):
        """What the simulation is about that finds it; None if there is no such."""
        if not self.is_simulated:
            return None
        return next((subject for subject, folders in SIMULATED.items()
                     if all(file.startswith(folders) for file in self.files)), None)


@dataclass
class Edit:
    place: str  # for messages
    file: str
    old: list
    new: list


def read_page(path, bugs, edits):
    names, file, edit, bug = [], None, None, None

    def end_paragraph(place):
        nonlocal names, file, edit, bug
        for name in names:
            if not bugs[name].files:
                raise Wrong(f"{place}: nothing plants {name}")
        names, file, edit, bug = [], None, None, None

    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path.relative_to(ROOT)}:{number}"
        word, _, rest = line.partition(" ")
        if not line:
            end_paragraph(place)
        elif word == "#":
            continue
        elif word == "bug":
            name, _, mark = rest.partition(" ")
            if not re.fullmatch(r"[a-z]\w*", name) or mark not in ("", "!", "?"):
                raise Wrong(f"{place}: no name of a bug: {rest}")
            if name in bugs:
                raise Wrong(f"{place}: there is another bug {name}")
            bug = bugs[name] = Bug(name, "", path.stem, mark != "!", mark == "?")
            names.append(name)
        elif line.startswith("  ") and bug is not None and not bug.what:
            bug.what = line.strip()
        elif word == "in" or line == "and":
            file = rest if word == "in" else file
            if file is None or not names:
                raise Wrong(f"{place}: an edit without a file or a bug")
            edit = Edit(place, file, [], [])
            edits.append(edit)
        elif word == "-" and edit is not None and not edit.new:
            edit.old.append(rest)
        elif word == "+" and edit is not None and edit.old:
            for name in SWITCH.findall(rest):
                if name not in names:
                    raise Wrong(f"{place}: {name} is not a bug of this paragraph")
                if file not in bugs[name].files:
                    bugs[name].files.append(file)
            edit.new.append(rest)
        else:
            raise Wrong(f"{place}: not understood: {line}")
    end_paragraph(f"{path.relative_to(ROOT)}, at its end")


def read_bugs():
    """All bugs by name, and the edits of each file."""
    bugs, edits = {}, []
    for path in sorted(HERE.glob("*.txt")):
        read_page(path, bugs, edits)
    for bug in bugs.values():
        if not bug.what:
            raise Wrong(f"{bug.page}.txt: what does {bug.name} break?")
        bug.is_simulated = bug.subject() is not None
    by_file = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    return bugs, by_file


def planted_text(file, edits):
    """The file's text with all edits made."""
    path = ROOT / file
    if not path.is_file():
        raise Wrong(f"{edits[0].place}: there is no {file}")
    lines = path.read_text().splitlines()
    stripped = [line.strip() for line in lines]
    found = []
    for edit in edits:
        old = [line.strip() for line in edit.old]
        if not edit.new:
            raise Wrong(f"{edit.place}: what takes the place of these lines?")
        places = [at for at in range(len(lines)) if stripped[at:at + len(old)] == old]
        if len(places) != 1:
            raise Wrong(f"{edit.place}: {file} has these lines {len(places)} times, not once:\n  " +
                        "\n  ".join(old))
        found.append((places[0], places[0] + len(old), edit))
    found.sort(key=lambda entry: entry[0])
    is_python = file.endswith(".py")
    for (_, end, edit), (begin, _, other) in zip(found, found[1:]):
        if begin < end:
            raise Wrong(f"{edit.place} and {other.place} change the same line of {file}; "
                        "bugs that share a line share an edit")
    for begin, end, edit in reversed(found):
        margin = lines[begin][:len(lines[begin]) - len(stripped[begin])] if is_python else ""
        switch = IN_PYTHON if is_python else IN_CPP
        lines[begin:end] = [SWITCH.sub(switch, margin + line) for line in edit.new]
    if not is_python:
        first = next(at for at, line in enumerate(lines) if line.startswith("#include"))
        header = "base/planted.h"
        if file.startswith(("bindings/", "include/")):  # src is not in the path of who has these
            header = os.path.relpath(PLANTED, Path(file).parent)
        lines.insert(first, f'#include "{header}"')
    return "\n".join(lines) + "\n"


def header_text(bugs):
    """base/planted.h of the copy."""
    rows = "".join(
        f'    {{Bug::{bug.name}, "{bug.name}", "{bug.subject() or ""}"}},\n'
        for bug in bugs.values())
    return f"""#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace muster::base {{

enum class Bug : std::uint16_t {{
  none,
  {", ".join(bugs)},
}};

struct PlantedBug {{
  Bug bug;
  const char* name;
  std::string_view subject;  ///< of the simulation that has to find it; empty: none
}};

inline constexpr PlantedBug planted_bugs[] = {{
{rows}}};

inline Bug bug_of_environment() {{
  const char* const name = std::getenv("MUSTER_PLANTED");
  if (name == nullptr) return Bug::none;
  for (const PlantedBug& entry : planted_bugs) {{
    if (std::string_view(entry.name) == name) return entry.bug;
  }}
  std::fprintf(stderr, "MUSTER_PLANTED=%s is not a planted bug\\n", name);
  std::abort();
}}

inline Bug planted = bug_of_environment();

}}  // namespace muster::base
"""


def files_of_project():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def write_if_other(path, content, mode=0o644):
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def plant(folder):
    """Writes the project with the bugs into the folder; returns the bugs by name."""
    bugs, edits = read_bugs()
    texts = {file: planted_text(file, of_file).encode() for file, of_file in edits.items()}
    texts[PLANTED] = header_text(bugs).encode()
    wanted = set(texts)
    for name in files_of_project():
        wanted.add(name)
        if name not in texts:
            path = ROOT / name
            write_if_other(folder / name, path.read_bytes(), path.stat().st_mode & 0o777)
    for name, text in texts.items():
        write_if_other(folder / name, text)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if str(path.relative_to(folder)) not in wanted:
            path.unlink()
    return bugs


def main(arguments):
    try:
        if arguments == ["--check"]:
            bugs, edits = read_bugs()
            for file, of_file in edits.items():
                planted_text(file, of_file)
            print(f"{len(bugs)} bugs in {len(edits)} files")
        elif arguments == ["--list"]:
            for bug in read_bugs()[0].values():
                print(f"{bug.page:16} {bug.name:34} {bug.what}")
        elif len(arguments) == 1 and not arguments[0].startswith("-"):
            plant(Path(arguments[0]))
        else:
            print(__doc__)
            return 2
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
